/**
 * Subscriptions on one invoice: the invoiced one, and the children grouped under it (docs/rules/subscriptions.md, "Families"). A recomputed
 * draft, and an invoice that replaces a void one, include the subscriptions of the original, even if some have joined or left the group
 * since.
 */

import type { Period } from '../../../core/foundation/time/period.ts';
import type { ReferencePoint } from '../../../core/rating/charges.ts';
import type { ComputedFrom } from '../../../core/rating/computed-from.ts';
import { duePeriods } from '../../../core/rating/due.ts';
import { deriveEndInstant } from '../../../core/subscriptions/propagation.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { buildChildrenQuery, SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { currentPeriod, toBilledSubscription } from '../../rating/billable-items.ts';

type InvoiceGroupTarget = {
  readonly subscription: SubscriptionModel;
  readonly period: Period;
  readonly reference: ReferencePoint;
};

export type InvoiceBefore = {
  readonly invoice: { readonly id: string };
  readonly line_items: readonly {
    readonly subscription_id?: string | null | undefined;
    readonly subscription_line_item_id?: string | null | undefined;
    readonly parent_line_item_id?: string | null | undefined;
    readonly computed_from?: Pick<ComputedFrom, 'window_start' | 'chain'> | null | undefined;
  }[];
};

export async function loadInvoiceGroup(
  database: Database,
  { subscription, period }: Omit<InvoiceGroupTarget, 'reference'>,
  { reference, before }: Pick<InvoiceGroupTarget, 'reference'> & { readonly before: InvoiceBefore | null },
): Promise<[SubscriptionModel, ...SubscriptionModel[]]> {
  const group = before
    ? await loadInvoicedBefore(database, subscription, before)
    : await loadGroupMembers(database, { subscription, period, reference });
  return [subscription, ...group];
}

async function loadInvoicedBefore(database: Database, subscription: SubscriptionModel, { line_items }: InvoiceBefore) {
  const ids = line_items.map(({ subscription_id }) => subscription_id).filter((id) => id !== subscription.id);
  const others = await SubscriptionModel.byId(subscription, ids, database);
  return [...others.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

/**
 * Loads the children with charges on the parent's invoice for `period`: those whose period has the same start or end, and those that ended
 * within `period`. A final invoice that ends `period` early includes only children that have ended; all others continue as standalone
 * subscriptions.
 */
async function loadGroupMembers(database: Database, { subscription, period, reference }: InvoiceGroupTarget) {
  if (subscription.subscription_type !== 'PARENT' || reference === 'late') return [];
  const children = await buildChildrenQuery(
    subscription,
    { parents: [subscription], type: 'grouped_invoicing' },
    database,
  );
  // A child that ended after its parent is omitted here, because it gets an invoice of its own.
  const last = toBilledSubscription(subscription).end_ms === period.end || reference === 'cancel' ? period.end : null;
  return children.filter((child) => {
    if (child.subscription_status === 'cancelled')
      return deriveEndInstant(child) > period.start && (last === null || deriveEndInstant(child) <= last);
    // Derives the periods of the child as of the end of this period, because the scheduler may not have closed them yet.
    const due = duePeriods(toBilledSubscription(child), currentPeriod(child), period.end);
    const own = due.filter(({ closed }) => closed.end > period.start);
    if (own.some(({ next }) => next === null)) return true;
    return (
      reference === 'period_start' || (reference !== 'cancel' && own.some(({ closed }) => closed.end === period.end))
    );
  });
}
