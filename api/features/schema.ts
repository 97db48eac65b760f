/** Requests and answers of features. */
import { z } from 'zod';
import { ALERT_CONDITIONS, featureShape } from '../../core/feature/record.ts';
import { featureInputShape } from '../../core/feature/request.ts';
import { filterShape, meterShape } from '../../core/meter/record.ts';
import { requiredKey } from '../../core/record.ts';
import { GroupAnswer } from '../groups/schema.ts';
import { type ListGrammar, listAnswer, listShape, matchAny } from '../http/list.ts';

const { name } = featureShape.shape;

/** `filters` are those of the feature's meter. */
export const UpdateFeature = featureInputShape
  .extend({
    name: name.optional(),
    filters: z.array(filterShape).optional().meta({ description: 'Those of its meter, replaced as a whole.' }),
  })
  .meta({
    id: 'UpdateFeatureRequest',
    example: { name: 'Calls of the API', unit_singular: 'call', unit_plural: 'calls' },
  });

export const CloneFeature = featureInputShape
  .pick({ description: true, metadata: true })
  .extend({
    name,
    lookup_key: requiredKey.meta({ description: 'That of the copy, its own among published features.' }),
  })
  .meta({ id: 'CloneFeatureRequest', example: { name: 'API calls, second', lookup_key: 'api_calls_2' } });

export const FeatureFilter = listShape({
  feature_ids: matchAny('features'),
  meter_ids: matchAny('meters'),
  lookup_key: z.string().optional().meta({ description: 'Exactly this key.' }),
  lookup_keys: matchAny('lookup keys'),
  name_contains: z.string().optional().meta({ description: 'A part of the name.' }),
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

// JSON numbers on the wire; their texts are short enough to be exact as numbers.
const ThresholdAnswer = z.object({
  threshold: z.number().meta({ description: 'Where the alert is raised.' }),
  condition: z
    .enum(ALERT_CONDITIONS)
    .nullable()
    .meta({ description: 'Whether it is raised above the threshold or below it.' }),
});

export const FeatureAnswer = featureShape
  .extend({
    reporting_unit: z
      .object({
        unit_singular: z.string().meta({ description: 'What one of it is called.' }),
        unit_plural: z.string().meta({ description: 'What several of it are called.' }),
        conversion_rate: z.number().meta({ description: 'Kept and answered; nothing here is computed with it.' }),
      })
      .nullable()
      .meta({ description: 'Another unit in which usage is shown; null when none is stated.' }),
    alert_settings: z
      .object({
        alert_enabled: z.boolean().meta({ description: 'Whether alerts are wanted.' }),
        critical: ThresholdAnswer.nullable().meta({ description: 'Where it is critical.' }),
        warning: ThresholdAnswer.nullable().meta({ description: 'Passed before the critical one.' }),
        info: ThresholdAnswer.nullable().meta({ description: 'Passed before the warning.' }),
      })
      .nullable()
      .meta({ description: 'Thresholds for alerts; null when none are stated.' }),
    meter: meterShape
      .nullable()
      .meta({ description: 'Of one feature that is asked for; of a list where `expand` names it.' }),
    group: GroupAnswer.nullable().meta({ description: 'The group that it belongs to.' }),
  })
  .meta({ id: 'FeatureResponse' });

export const FeatureListAnswer = listAnswer(FeatureAnswer, 'ListFeaturesResponse');
