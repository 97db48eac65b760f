/** Requests and answers of meters. */
import { z } from 'zod';
import { createMeterShape, meterShape } from '../../core/meter/record.ts';
import { type ListGrammar, listAnswer, listShape, matchAny } from '../http/list.ts';

export const CreateMeter = createMeterShape.meta({ id: 'CreateMeterRequest' });
export const UpdateMeter = meterShape
  .pick({ filters: true })
  .meta({ id: 'UpdateMeterRequest', example: { filters: [{ key: 'region', values: ['eu', 'us'] }] } });
export const MeterAnswer = meterShape.meta({ id: 'MeterResponse' });

/** One meter asked for by itself also says how far its counting is: an addition of ours. */
export const MeterDetailAnswer = meterShape
  .extend({
    state: z.enum(['backfilling', 'live', 'stopped']).meta({
      description: 'backfilling: the events that came before the meter, or its change, are still being counted.',
    }),
    backfill: z
      .object({
        days_done: z.int().meta({ description: 'How many days are counted.' }),
        days: z.int().nullable().meta({ description: 'How many there are; null until it is known.' }),
        live_at: z.string().nullable().meta({ description: 'Since when all are counted; null before.' }),
      })
      .meta({ description: 'Days with events that are counted, of how many; days is null until it is known.' }),
  })
  .meta({ id: 'MeterDetailResponse' });

export const MeterFilter = listShape({
  meter_ids: matchAny('meters'),
  event_name: z.string().trim().optional().meta({ description: 'The name of the events that are counted.' }),
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
