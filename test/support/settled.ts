/** Waits until all accepted events have had their effect. */

import type { Database } from '../../storage/foundation/stores.ts';
import type { EventLog } from '../../storage/log/log.ts';
import { requestDailyRollups } from '../../storage/progress/daily-rollups-message.ts';

/**
 * Whether no message is in the outbox, in the log or in progress. A message moves from the outbox to the log, and
 * processing it may add another to the outbox. So the outbox is checked before and after the log.
 */
export async function isSettled(postgres: Database, isProcessed: () => Promise<boolean>): Promise<boolean> {
  return (await isNothingOpen(postgres)) && (await isProcessed()) && (await isNothingOpen(postgres));
}

export async function isLogProcessed(log: EventLog): Promise<boolean> {
  return (await log.lag()).every(({ unprocessed_records }) => unprocessed_records === 0);
}

/** Whether the bucket rows of a partition are locked. An expired read lock does not count: its owner was killed. */
const GATE = `(gate is not null and not (gate like 'reading:%' and gate_until < extract(epoch from now())))`;

async function isNothingOpen(postgres: Database): Promise<boolean> {
  const { rows } = await postgres.raw(
    `select (select count(*) from log_outbox)
          + (select count(*) from meter_versions where state in ('announced', 'backfilling'))
          + (select count(*) from event_corrections where state = 'requested')
          + (select count(*) from bucket_rebuilds where done_at is null)
          + (select count(*) from slices where phase <> 'idle' or ${GATE}) as open`,
  );
  return rows[0].open === '0';
}

/**
 * Requests the daily rollups of all days before this one (days since 1970), as the scheduler does, until they exist.
 */
export async function untilDailyRollups(
  postgres: Database,
  days_before: number,
  settled: () => Promise<void>,
): Promise<void> {
  while (await requestDailyRollups(postgres, days_before)) await settled();
}
