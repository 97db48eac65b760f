/** Requests and answers of features. */
import { z } from 'zod';
import { ALERT_CONDITIONS, featureShape } from '../../../core/catalog/feature/record.ts';
import { featureInputShape } from '../../../core/catalog/feature/request.ts';
import { requiredKey } from '../../../core/foundation/record.ts';
import { filterShape, meterShape } from '../../../core/metering/meter/record.ts';
import { type ListGrammar, listAnswer, listShape, matchAny } from '../../http/list.ts';
import { GroupAnswer } from '../groups/schema.ts';

const { name } = featureShape.shape;

/** Request to change a feature. Its `filters` replace those of the feature's meter. */
export const UpdateFeature = featureInputShape
  .extend({
    name: name.optional(),
    filters: z
      .array(filterShape)
      .optional()
      .meta({ description: 'Filters of the feature’s meter. They replace all previous ones.' }),
  })
  .meta({
    id: 'UpdateFeatureRequest',
    example: { name: 'Calls of the API', unit_singular: 'call', unit_plural: 'calls' },
  });

export const CloneFeature = featureInputShape
  .pick({ description: true, metadata: true })
  .extend({
    name,
    lookup_key: requiredKey.meta({ description: 'Lookup key of the copy, unique among published features.' }),
  })
  .meta({ id: 'CloneFeatureRequest', example: { name: 'API calls, second', lookup_key: 'api_calls_2' } });

export const FeatureFilter = listShape({
  feature_ids: matchAny('features'),
  meter_ids: matchAny('meters'),
  lookup_key: z.string().optional().meta({ description: 'Exact lookup key.' }),
  lookup_keys: matchAny('lookup keys'),
  name_contains: z.string().optional().meta({ description: 'Part of the name.' }),
}).meta({ id: 'FeatureFilter', example: { name_contains: 'calls', limit: 10 } });
export type FeatureFilter = z.output<typeof FeatureFilter>;

export const featureGrammar: ListGrammar = {
  columns: {
    id: 'string',
    name: 'string',
    lookup_key: 'string',
    description: 'string',
    type: 'string',
    meter_id: 'string',
    unit_singular: 'string',
    unit_plural: 'string',
    group_id: 'string',
    status: 'string',
    created_at: 'date',
    updated_at: 'date',
    created_by: 'string',
    updated_by: 'string',
  },
  expand: ['meters'],
};

// Thresholds are JSON numbers. Their texts are short, so the numbers are exact.
const ThresholdAnswer = z.object({
  threshold: z.number().meta({ description: 'Threshold of the alert.' }),
  condition: z
    .enum(ALERT_CONDITIONS)
    .nullable()
    .meta({ description: 'Direction of the alert: above or below the threshold.' }),
});

export const FeatureAnswer = featureShape
  .extend({
    reporting_unit: z
      .object({
        unit_singular: z.string().meta({ description: 'Name of one unit.' }),
        unit_plural: z.string().meta({ description: 'Name of several units.' }),
        conversion_rate: z
          .number()
          .meta({ description: 'Conversion rate. It is stored and returned, and nothing is computed with it.' }),
      })
      .nullable()
      .meta({ description: 'Another unit in which usage is shown; null if none.' }),
    alert_settings: z
      .object({
        alert_enabled: z.boolean().meta({ description: 'True if the alert is enabled.' }),
        critical: ThresholdAnswer.nullable().meta({ description: 'Critical threshold; null if none.' }),
        warning: ThresholdAnswer.nullable().meta({
          description: 'Warning threshold, which is reached before the critical one; null if none.',
        }),
        info: ThresholdAnswer.nullable().meta({
          description: 'Info threshold, which is reached before the warning one; null if none.',
        }),
      })
      .nullable()
      .meta({ description: 'Alert thresholds of the feature; null if none.' }),
    meter: meterShape
      .nullable()
      .meta({ description: 'Meter of a single feature; in a list only if `expand` names it. Null otherwise.' }),
    group: GroupAnswer.nullable().meta({ description: 'Group of the feature; null if none.' }),
  })
  .meta({ id: 'FeatureResponse' });

export const FeatureListAnswer = listAnswer(FeatureAnswer, 'ListFeaturesResponse');
