/**
 * Propagates a change of a parent to its children, each with an event of its own (docs/rules/subscriptions.md, "Families"). Called in the
 * transaction that holds the lock on the parent, after the parent has its final state.
 */

import { formatMs, toInstant } from '../../../core/foundation/time/instant.ts';
import { duePeriod } from '../../../core/rating/due.ts';
import { deriveEndInstant, planInheritedChanges } from '../../../core/subscriptions/propagation.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { buildChildrenQuery, SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import type { ChangeAuthor } from '../../foundation/emit.ts';
import { emit } from '../../foundation/emit.ts';
import { draftFinalInvoice, finalizeOpening } from '../../invoicing/invoices/draft-invoice.ts';
import { currentPeriod, toBilledSubscription } from '../../rating/billable-items.ts';
import { removeFromGroup } from '../../subscriptions/group.ts';
import { endWithCredits } from './end-with-credits.ts';

type ParentPropagation = { readonly parent: SubscriptionModel; readonly by: ChangeAuthor };

export async function propagateToChildren(
  stores: Stores,
  transaction: Transaction,
  following: ParentPropagation,
): Promise<void> {
  if (following.parent.subscription_type !== 'PARENT') return;
  await propagateToInherited(transaction, following);
  await propagateToGroup(stores, transaction, following);
}

/** Copies the parent's state, period and end to inherited subscriptions. */
async function propagateToInherited(transaction: Transaction, { parent, by }: ParentPropagation): Promise<void> {
  const inheritedSubscriptions = await buildChildrenQuery(
    parent,
    { parents: [parent], type: 'INHERITED' },
    transaction,
  ).forUpdate();
  for (const inherited of inheritedSubscriptions) {
    const changes = planInheritedChanges(inherited, parent, by.now.getTime());
    if (changes === null) continue;
    const record = await SubscriptionModel.change(inherited, changes, { by, database: transaction });
    const isOver = record.subscription_status === 'cancelled';
    const hasBegun = inherited.subscription_status !== 'active' && record.subscription_status === 'active';
    const name = isOver ? 'subscription.cancelled' : hasBegun ? 'subscription.activated' : 'subscription.updated';
    await emit(transaction, name, { record, by });
  }
}

/**
 * Advances the periods of grouped subscriptions with the parent's. After the parent's end they are billed separately.
 */
async function propagateToGroup(
  stores: Stores,
  transaction: Transaction,
  { parent, by }: ParentPropagation,
): Promise<void> {
  const children = await buildChildrenQuery(parent, { parents: [parent], type: 'grouped_invoicing' }, transaction)
    .whereNot('subscription_status', 'cancelled')
    .forUpdate();
  if (parent.subscription_status === 'cancelled') await invoiceEnded(stores, transaction, { parent, by });
  for (const child of children) {
    const moved = await advanceChild(transaction, { child, parent, by });
    if (moved.subscription_status === 'cancelled' || parent.subscription_status !== 'cancelled') continue;
    const [alone] = await removeFromGroup([moved], by, transaction);
    // The parent's last invoice has no charges after the parent's end. A child with a period that begins at that end therefore gets an
    // opening invoice of its own.
    if (moved !== child || toInstant(moved.current_period_start) === deriveEndInstant(parent))
      await openAlone(stores, transaction, { child: alone!, by });
  }
}

/**
 * Drafts the final invoices of cancelled child subscriptions whose end is later than the period that the parent has
 * invoiced. The parent was cancelled, so no later invoice of it will charge them.
 */
async function invoiceEnded(
  stores: Stores,
  transaction: Transaction,
  { parent, by }: ParentPropagation,
): Promise<void> {
  const children = await buildChildrenQuery(parent, { parents: [parent], type: 'grouped_invoicing' }, transaction)
    .where('subscription_status', 'cancelled')
    .forUpdate();
  const invoiced = toInstant(parent.current_period_start);
  for (const child of children) {
    if (deriveEndInstant(child) <= invoiced) continue;
    // The child is passed without its end, as if its period continued, and is then invoiced up to its end.
    const unended = Object.assign(child.$clone(), { cancel_at: null, cancel_at_period_end: false, end_date: null });
    const last = { subscription: unended, effective_date: formatMs(deriveEndInstant(child)), now: by.now };
    // Charges on the parent's last invoice are not charged again.
    if (await draftFinalInvoice(stores, transaction, last)) await removeFromGroup([child], by, transaction);
  }
}

/** Advances the child to the period after the one that the parent has invoiced. */
async function advanceChild(
  transaction: Transaction,
  { child, parent, by }: ParentPropagation & { child: SubscriptionModel },
): Promise<SubscriptionModel> {
  if (child.opens_at) {
    // The child is on the opening invoice of its parent.
    if (parent.opens_at) return child;
    return changeChild(transaction, { child, changes: { opens_at: null }, by, name: 'subscription.updated' });
  }
  if (child.subscription_status === 'trialing')
    // If the parent is cancelled, the child ends its trial like a standalone subscription.
    return parent.subscription_status === 'cancelled' ? child : endChildTrial(transaction, { child, parent, by });
  if (child.subscription_status === 'incomplete' && parent.subscription_status === 'active')
    return changeChild(transaction, { child, changes: PAID, by, name: 'subscription.activated' });
  const invoicedUntil =
    parent.subscription_status === 'cancelled' ? deriveEndInstant(parent) : toInstant(parent.current_period_start);
  const due = duePeriod(toBilledSubscription(child), currentPeriod(child), invoicedUntil);
  if (due === null) return child;
  if (due.next === null) return endWithCredits(transaction, { subscription: child, at: due.closed.end, by });
  const { start, end } = due.next;
  const changes = { current_period_start: formatMs(start), current_period_end: formatMs(end) };
  return changeChild(transaction, { child, changes, by, name: 'subscription.updated' });
}

/** Fields of a child that becomes active, because the invoice of its parent, which has the child's charges, was paid. */
const PAID = { subscription_status: 'active' } as const;

/**
 * Ends the trial of a child together with its parent's. The child's advance charges are on the invoice with which the parent's trial ended.
 */
async function endChildTrial(
  transaction: Transaction,
  { child, parent, by }: ParentPropagation & { child: SubscriptionModel },
): Promise<SubscriptionModel> {
  if (parent.subscription_status === 'trialing') return child;
  const { current_period_start, current_period_end, subscription_status } = parent;
  const { end_ms } = toBilledSubscription(child);
  if (end_ms !== null && end_ms <= toInstant(current_period_start))
    return endWithCredits(transaction, { subscription: child, at: end_ms, by });
  const changes = { current_period_start, current_period_end, subscription_status };
  const name = subscription_status === 'active' ? 'subscription.activated' : 'subscription.updated';
  return changeChild(transaction, { child, changes, by, name });
}

async function changeChild(
  transaction: Transaction,
  {
    child,
    changes,
    by,
    name,
  }: {
    child: SubscriptionModel;
    changes: Partial<SubscriptionModel>;
    by: ChangeAuthor;
    name: 'subscription.updated' | 'subscription.activated';
  },
): Promise<SubscriptionModel> {
  const record = await SubscriptionModel.change(child, changes, { by, database: transaction });
  await emit(transaction, name, { record, by });
  return record;
}

async function openAlone(
  stores: Stores,
  transaction: Transaction,
  { child, by }: { child: SubscriptionModel; by: ChangeAuthor },
): Promise<void> {
  const opening = { subscription: child, period: currentPeriod(child), now: by.now };
  await finalizeOpening(stores, transaction, { ...opening, reason: 'SUBSCRIPTION_CREATE' });
}
