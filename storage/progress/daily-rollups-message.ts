/** The log message that requests daily rollups (actions/metering/usage/make-daily-rollups.ts). */

import type { Database } from '../foundation/stores.ts';
import { enqueueMessage } from './outbox.ts';
import { EVERY_DAY, readDaysBefore } from './partition-progress.ts';
import { readProgress } from './slices.ts';

/**
 * Body of the control message: daily rollups for the UTC days (since 1970) before this one. `type` is an older name, because existing log
 * records use it and must remain readable.
 */
export type DailyRollupsMessage = { readonly type: 'day_rows'; readonly days_before: number };

/** Shard whose partition creates the rollups, as it runs the rebuilds. The rollups cover all tenants, so the message names none. */
const SHARD = 0;
const ALL_TENANTS = { tenant_id: '', environment_id: '' };

/** Requests rollups if any are missing; returns whether it did. */
export async function requestDailyRollups(database: Database, days_before: number): Promise<boolean> {
  const progress = await readProgress(database);
  const made = readDaysBefore(progress);
  if (progress.length === 0 || (made >= days_before && made !== EVERY_DAY)) return false;
  const message: DailyRollupsMessage = { type: 'day_rows', days_before };
  await enqueueMessage(database, ALL_TENANTS, message, SHARD);
  return true;
}
