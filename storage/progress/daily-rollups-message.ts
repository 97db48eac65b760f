/** The message in the log by which daily rollups are made (actions/usage/make-daily-rollups.ts). */

import type { Database } from '../stores.ts';
import { enqueueMessage } from './outbox.ts';
import { EVERY_DAY, readDaysBefore } from './slice-state.ts';
import { readProgress } from './slices.ts';

/**
 * The body of the control message: daily rollups for the UTC days (since 1970) before this one. Its kind is the older word
 * for them: records that say so are in logs, and must still be read.
 */
export type DailyRollupsMessage = { readonly type: 'day_rows'; readonly days_before: number };

/** The partition of the first shard does it, as it does the rebuilds: of all tenants, so it carries the name of none. */
const SHARD = 0;
const ALL_TENANTS = { tenant_id: '', environment_id: '' };

/** Asks for it where there are such days; answers whether there are. */
export async function requestDailyRollups(database: Database, days_before: number): Promise<boolean> {
  const progress = await readProgress(database);
  const made = readDaysBefore(progress);
  if (progress.length === 0 || (made >= days_before && made !== EVERY_DAY)) return false;
  const message: DailyRollupsMessage = { type: 'day_rows', days_before };
  await enqueueMessage(database, ALL_TENANTS, message, SHARD);
  return true;
}
