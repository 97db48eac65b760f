/**
 * Which subscriptions stand on one invoice: its own, and those of the parent's group (docs/rules/subscriptions.md,
 * "Families"). A draft that is computed again says of whom it did before, whoever has joined or left the group since.
 */
import type { ReferencePoint } from '../../core/billing/charges.ts';
import { endedAt } from '../../core/subscription/followed.ts';
import { instantOf } from '../../core/time/instant.ts';
import type { Period } from '../../core/time/period.ts';
import { InvoiceLineItemModel } from '../../storage/models/invoice-line-item.ts';
import { childrenOf, SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Database } from '../../storage/stores.ts';
import { billedSubscription } from './billable-items.ts';

type BillingTarget = {
  readonly subscription: SubscriptionModel;
  readonly period: Period;
  readonly reference: ReferencePoint;
  /** The invoice that is computed anew. */
  readonly invoice_id?: string;
};

export async function invoicedTogether(
  database: Database,
  target: BillingTarget,
): Promise<[SubscriptionModel, ...SubscriptionModel[]]> {
  const { subscription, invoice_id } = target;
  const group = invoice_id ? await saidBefore(database, target) : await groupOf(database, target);
  return [subscription, ...group];
}

async function saidBefore(database: Database, { subscription, invoice_id }: BillingTarget) {
  const asked = { column: 'invoice_id', value: invoice_id!, where: { status: 'published' } };
  const lines = await InvoiceLineItemModel.listOf(subscription, asked, database);
  const ids = lines.map(({ subscription_id }) => subscription_id).filter((id) => id !== subscription.id);
  const others = await SubscriptionModel.byId(subscription, ids, database);
  return [...others.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

/**
 * Those whose period ends with this one, or began with it. What ended within it owes its arrears here; of an invoice that
 * ends the parent's own period early these alone are, for the others go on by themselves.
 */
async function groupOf(database: Database, { subscription, period, reference }: BillingTarget) {
  if (subscription.subscription_type !== 'PARENT') return [];
  const children = await childrenOf(subscription, { parents: [subscription], type: 'grouped_invoicing' }, database);
  // What ended behind the end of the parent is not cut there: it is invoiced by itself.
  const last = billedSubscription(subscription).end_ms === period.end || reference === 'cancel' ? period.end : null;
  return children.filter((child) => {
    if (child.subscription_status === 'cancelled')
      return endedAt(child) > period.start && (last === null || endedAt(child) <= last);
    const endsWithIt = instantOf(child.current_period_end) === period.end;
    return reference === 'period_start' || (reference !== 'cancel' && endsWithIt);
  });
}
