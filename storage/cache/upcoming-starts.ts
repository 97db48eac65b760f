/**
 * Reads future starts only as dependencies (postgres/interceptors/dependency-recorder.ts): a current answer does not include them, but
 * becomes outdated when they begin.
 */
import type { Scope } from '../../core/foundation/scope.ts';
import { listBatched } from '../concurrency/batched.ts';
import type { Database } from '../foundation/stores.ts';
import { currentRecorder } from '../postgres/interceptors/dependency-recorder.ts';

type UpcomingStart = { readonly of: string; readonly start_date: string };

const STARTS = `
  select entity_id as of, start_date from addon_associations
   where tenant_id = :tenant_id and environment_id = :environment_id and entity_id = any(:ids) and start_date > :now
  union all
  select subscription_id, start_date from subscription_line_items
   where tenant_id = :tenant_id and environment_id = :environment_id and subscription_id = any(:ids) and start_date > :now
  union all
  select customer_id, start_date from subscriptions
   where tenant_id = :tenant_id and environment_id = :environment_id and customer_id = any(:ids) and start_date > :now`;

export async function recordUpcomingStarts(
  database: Database,
  { tenant_id, environment_id }: Scope,
  of: { customer_id: string; subscription_ids: readonly string[]; now: Date },
): Promise<void> {
  if (currentRecorder() === undefined) return;
  const query = {
    key: JSON.stringify(['starts to come', tenant_id, environment_id, of.now]),
    values: [of.customer_id, ...of.subscription_ids],
    getKey: (start: UpcomingStart) => start.of,
  };
  await listBatched(database, query, async (ids) => {
    const { rows } = await database.raw(STARTS, { tenant_id, environment_id, now: of.now, ids: [...ids] });
    return rows as UpcomingStart[];
  });
}
