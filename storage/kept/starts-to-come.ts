/** What begins later than now is in no answer of now, and ends it when it begins: it is read for this alone (noting.ts). */
import type { Scope } from '../../core/scope.ts';
import type { Database } from '../stores.ts';
import { currentNotes } from './noting.ts';

const STARTS = `
  select start_date from addon_associations
   where tenant_id = :tenant_id and environment_id = :environment_id and entity_id = any(:subscription_ids) and start_date > :now
  union all
  select start_date from subscription_line_items
   where tenant_id = :tenant_id and environment_id = :environment_id and subscription_id = any(:subscription_ids) and start_date > :now
  union all
  select start_date from subscriptions
   where tenant_id = :tenant_id and environment_id = :environment_id and customer_id = :customer_id and start_date > :now`;

export async function noteStartsToCome(
  database: Database,
  { tenant_id, environment_id }: Scope,
  of: { customer_id: string; subscription_ids: readonly string[]; now: Date },
): Promise<void> {
  if (currentNotes() === undefined) return;
  await database.raw(STARTS, { tenant_id, environment_id, ...of, subscription_ids: [...of.subscription_ids] });
}
