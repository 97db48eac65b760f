/** Fields of a feature in a request or in a row of an imported file. */

import { optionalKey } from '../../foundation/record.ts';
import { createMeterShape } from '../../metering/meter/record.ts';
import { featureShape } from './record.ts';

export const featureInputShape = featureShape
  .pick({
    description: true,
    metadata: true,
    unit_singular: true,
    unit_plural: true,
    reporting_unit: true,
    alert_settings: true,
    group_id: true,
  })
  .partial();

const { name, type, meter_id, lookup_key } = featureShape.shape;

export const CreateFeature = featureInputShape
  .extend({
    name,
    type, // "" and null mean that the key is derived from the name.
    lookup_key: optionalKey.default(null).meta(lookup_key.meta()!),
    meter_id: meter_id.optional(),
    meter: createMeterShape.nullish().meta({
      description: 'Meter that is created with the feature. An alternative to `meter_id`; both together are refused.',
    }),
  })
  .meta({
    id: 'CreateFeatureRequest',
    example: {
      name: 'API calls',
      type: 'metered',
      meter: { name: 'API calls', event_name: 'api_call', aggregation: { type: 'COUNT' } },
    },
  });
