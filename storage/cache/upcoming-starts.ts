/**
 * Reads future starts of subscriptions, line items and add-ons only to record them as dependencies
 * (postgres/interceptors/dependency-recorder.ts): a current answer does not include them, but becomes outdated when they begin.
 */
import type { Scope } from '../../core/foundation/scope.ts';
import { listBatched } from '../concurrency/batched.ts';
import type { GatherContext } from './gather-batch-loader.ts';

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

/** Reads upcoming starts; `ids` are ids of customers and subscriptions. */
export async function readUpcomingStarts(
  { database, now }: GatherContext,
  { tenant_id, environment_id }: Scope,
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return;
  const query = {
    key: JSON.stringify(['upcoming starts', tenant_id, environment_id, now]),
    values: ids,
    getKey: (start: UpcomingStart) => start.of,
  };
  await listBatched(database, query, async (all) => {
    const { rows } = await database.raw(STARTS, { tenant_id, environment_id, now, ids: [...all] });
    return rows as UpcomingStart[];
  });
}
