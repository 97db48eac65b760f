/**
 * What the scheduler looks for across all tenants: subscriptions with a period that is over, drafts that have rested.
 * The answers are only candidates, page by page in order of id; whoever acts on one takes its lock and looks again.
 */
import type { Scope } from '../core/scope.ts';
import type { Database } from './stores.ts';

export type Due = Scope & { readonly id: string };

const PAGE = 500;

export function dueSubscriptions(database: Database, now: Date): AsyncGenerator<Due> {
  return pages((after) =>
    database('subscriptions')
      .where('status', 'published')
      .whereIn('subscription_status', ['active', 'trialing'])
      .where((over) => {
        void over.where('current_period_end', '<=', now).orWhere('cancel_at', '<=', now).orWhere('end_date', '<=', now);
      })
      .where('id', '>', after)
      .orderBy('id')
      .limit(PAGE)
      .select('id', 'tenant_id', 'environment_id'),
  );
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
