/**
 * What the scheduler looks for across all tenants: subscriptions with a period that is over, drafts that have rested.
 * The answers are only candidates; whoever acts on one takes its lock and looks again.
 */
import type { Scope } from '../core/scope.ts';
import type { Database } from './stores.ts';

export type Due = Scope & { readonly id: string };

const PAGE = 500;

/** So many at most are billed before it is asked anew who is due: that long whoever falls due meanwhile waits for the others. */
const ROUND = 100;

/**
 * The next to be billed, but for those that this run has left: tenants take turns, each with those first whose period ended
 * first, so that however much is due of one the others have their invoices.
 */
export async function dueSubscriptions(
  database: Database,
  { now, left }: { now: Date; left: readonly string[] },
): Promise<Due[]> {
  const due = database('subscriptions')
    .where('status', 'published')
    .whereIn('subscription_status', ['active', 'trialing'])
    .where((over) => {
      void over.where('current_period_end', '<=', now).orWhere('cancel_at', '<=', now).orWhere('end_date', '<=', now);
    })
    .whereRaw('id <> all(?)', [left as never])
    .select(
      'id',
      'tenant_id',
      'environment_id',
      database.raw('row_number() over (partition by tenant_id order by current_period_end, id) as turn'),
    );
  return database.from(due.as('due')).orderBy(['turn', 'id']).limit(ROUND).select('id', 'tenant_id', 'environment_id');
}

export function dueDrafts(database: Database, computedBefore: Date): AsyncGenerator<Due> {
  return pages((after) =>
    database('invoices')
      .where({ invoice_status: 'DRAFT', status: 'published' })
      .where('last_computed_at', '<=', computedBefore)
      .where('id', '>', after)
      .orderBy('id')
      .limit(PAGE)
      .select('id', 'tenant_id', 'environment_id'),
  );
}

async function* pages(fetchPage: (after: string) => PromiseLike<Due[]>): AsyncGenerator<Due> {
  for (let after = ''; ; ) {
    const page = await fetchPage(after);
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    after = last.id;
  }
}
