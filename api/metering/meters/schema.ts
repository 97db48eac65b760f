import { z } from 'zod';
import { createMeterShape, meterShape } from '../../../core/metering/meter/record.ts';
import { type ListGrammar, listAnswer, listShape, matchAny } from '../../http/list.ts';

export const CreateMeter = createMeterShape.meta({ id: 'CreateMeterRequest' });
export const UpdateMeter = meterShape
  .pick({ filters: true })
  .meta({ id: 'UpdateMeterRequest', example: { filters: [{ key: 'region', values: ['eu', 'us'] }] } });
export const MeterAnswer = meterShape.meta({ id: 'MeterResponse' });

/** A single meter also shows its counting progress; this is an extension of the published API. */
export const MeterDetailAnswer = meterShape
  .extend({
    state: z.enum(['backfilling', 'live', 'stopped']).meta({
      description:
        'Counting state. backfilling: events from before the meter, or before its last change, are still being counted.',
    }),
    backfill: z
      .object({
        days_done: z.int().meta({ description: 'Number of days counted.' }),
        days: z.int().nullable().meta({ description: 'Total number of days; null until it is known.' }),
        live_at: z.string().nullable().meta({ description: 'Instant at which all events were counted; null before.' }),
      })
      .meta({ description: 'Progress over the days that have events.' }),
  })
  .meta({ id: 'MeterDetailResponse' });

export const MeterFilter = listShape({
  meter_ids: matchAny('meters'),
  event_name: z.string().trim().optional().meta({ description: 'Name of the counted events.' }),
});
export type MeterFilter = z.output<typeof MeterFilter>;
export const MeterListAnswer = listAnswer(MeterAnswer, 'ListMetersResponse');

export const meterGrammar: ListGrammar = {
  columns: {
    id: 'string',
    name: 'string',
    event_name: 'string',
    reset_usage: 'string',
    created_at: 'date',
    updated_at: 'date',
  },
};
