/** Whether everything that was accepted has had its effect: the question of every test that looks at the end of something. */

import type { Database } from '../../storage/foundation/stores.ts';
import type { EventLog } from '../../storage/log/log.ts';
import { requestDailyRollups } from '../../storage/progress/daily-rollups-message.ts';

/**
 * Nothing is on its way into the log, in it, or behind it. A message goes from the outbox to the log, and what is
 * processed may leave one in the outbox: looked at once each, in whichever order, one could pass by unseen.
 */
export async function isSettled(postgres: Database, isProcessed: () => Promise<boolean>): Promise<boolean> {
  return (await isNothingOpen(postgres)) && (await isProcessed()) && (await isNothingOpen(postgres));
}

export async function isLogProcessed(log: EventLog): Promise<boolean> {
  return (await log.lag()).every(({ unprocessed_records }) => unprocessed_records === 0);
}

/** A lock for reading whose time is over holds nobody up: whoever had it was killed. */
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

/** Asks for the daily rollups of all days before this one (days since 1970) until they are there, as the scheduler does. */
export async function untilDailyRollups(
  postgres: Database,
  days_before: number,
  settled: () => Promise<void>,
): Promise<void> {
  while (await requestDailyRollups(postgres, days_before)) await settled();
}
