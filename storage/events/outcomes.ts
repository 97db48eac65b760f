/** Outcomes of events that were not stored or not counted: duplicates, conflicts, dead letters, unusable values. */
import { z } from 'zod';
import type { Scope } from '../../core/foundation/scope.ts';
import { type ClickHouseClient, defineStatement, SMALL_ANSWER } from '../clickhouse/clickhouse.ts';

export const OutcomeRow = z.object({
  event_id: z.string(),
  outcome: z.enum(['duplicate', 'conflict', 'dead_letter', 'unusable']),
  meter_id: z.string(),
  reason: z.string(),
  received_at_us: z.coerce.number(),
  /** The received bytes, for conflicts and dead letters. */
  body: z.string(),
});
export type OutcomeRow = z.infer<typeof OutcomeRow>;

/** Lists the outcomes of an id, oldest first; only the latest thousand if it was sent repeatedly. */
export function listEventOutcomes(clickhouse: ClickHouseClient, scope: Scope, event_id: string): Promise<OutcomeRow[]> {
  return selectOutcomes.run(clickhouse, { ...scope, event_id }, { settings: SMALL_ANSWER });
}

const selectOutcomes = defineStatement({
  name: 'outcomes of an event',
  sql: `select * from (
          select event_id, outcome, meter_id, reason, toString(toUnixTimestamp64Micro(received_at)) as received_at_us, body,
                 received_at, offset, position
            from event_outcomes
           where tenant_id = {tenant_id:String} and environment_id = {environment_id:String} and event_id = {event_id:String}
           order by received_at desc, offset desc, position desc limit 1000)
        order by received_at, offset, position`,
  params: z.object({ tenant_id: z.string(), environment_id: z.string(), event_id: z.string() }),
  row: OutcomeRow,
});
