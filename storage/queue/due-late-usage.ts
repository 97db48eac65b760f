/** Ended subscriptions whose late usage is to be checked (storage/progress/late-usage.ts). */
import type { Scope } from '../../core/foundation/scope.ts';
import type { Database } from '../foundation/stores.ts';
import {
  buildEarliestQuery,
  type DueQuery,
  type DueRecord,
  type Instant,
  listRoundRobin,
  narrowToEnvironments,
} from './due-billing.ts';

/** Lists the due checks, the longest waiting first. */
export async function listDueLateUsage(
  database: Database,
  { now, ...filter }: DueQuery & { now: Date },
): Promise<DueRecord[]> {
  const due = buildDueQuery(database).where('due_at', '<=', now);
  return listRoundRobin(database, narrowToEnvironments(due, 'late', filter), { by: ['due_at'], ...filter });
}

/** Finds the earliest instant at which late usage of this environment is to be checked. */
export function nextLateUsage(database: Database, scope: Scope): Instant {
  return buildEarliestQuery(database, scope, { of: () => buildDueQuery(database), columns: ['due_at'] });
}

/**
 * Builds a query of due checks. A draft includes late usage by itself, so a subscription with lines on a draft, its own
 * or its parent's, waits until it is final.
 */
function buildDueQuery(database: Database) {
  const late_usage = database('late_usage as told')
    .join('subscriptions as ended', {
      'ended.id': 'told.subscription_id',
      'ended.tenant_id': 'told.tenant_id',
      'ended.environment_id': 'told.environment_id',
    })
    .whereNotExists((draft) => {
      void draft
        .from('invoices')
        .whereRaw('invoices.tenant_id = told.tenant_id and invoices.environment_id = told.environment_id')
        .whereRaw('invoices.subscription_id in (ended.id, ended.parent_subscription_id)')
        .where({ 'invoices.invoice_status': 'DRAFT', 'invoices.status': 'published' })
        .select('invoices.id');
    })
    .groupBy('told.subscription_id', 'told.tenant_id', 'told.environment_id')
    .select('told.subscription_id as id', 'told.tenant_id', 'told.environment_id')
    .min({ due_at: 'told.due_at' });
  return database.from(late_usage.as('late'));
}
