/**
 * What follows when nothing of an invoice remains to be paid: what else would pay it is void, credits that were bought with it come, and a
 * subscription that waits for it becomes active (docs/rules/subscriptions.md, "States"; docs/rules/payments.md, "What becomes of the invoice").
 */
import { Decimal } from '../../core/decimal.ts';
import type { BillingReason } from '../../core/invoice/record.ts';
import { stateAfter } from '../../core/subscription/moves.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';
import { voidOpenPayments } from '../payments/void-open-payments.ts';
import { familyFollows } from '../subscriptions/follow-parent.ts';
import { type Change, emit } from '../system-events/emit.ts';
import { completePurchase } from '../wallets/pending-credits.ts';
import type { HeldInvoice } from './hold-invoice.ts';

/** Whatever has brought down what remains of the invoice: a payment, or a credit note. */
export async function settlePaid(
  stores: Stores,
  transaction: Transaction,
  { invoice, subscription, by }: HeldInvoice & { by: Change['by'] },
): Promise<void> {
  if (new Decimal(invoice.amount_remaining).gt(0)) return;
  await voidOpenPayments(transaction, { invoice, by });
  await completePurchase(transaction, { invoice, by });
  if (!subscription || !(await isWaitedFor(transaction, { invoice, subscription }))) return;
  const subscription_status = stateAfter('pay', subscription.subscription_status);
  if (subscription_status === undefined) return;
  const activated = await SubscriptionModel.change(
    subscription,
    { subscription_status },
    { by, database: transaction },
  );
  await emit(transaction, 'subscription.activated', { record: activated, by });
  await familyFollows(stores, transaction, { parent: activated, by });
}

/** What a subscription that is incomplete waits for: an invoice that opened it, or the last one that a renewal left unpaid. */
const OPENS: readonly BillingReason[] = ['SUBSCRIPTION_CREATE', 'SUBSCRIPTION_TRIAL_END', 'SUBSCRIPTION_UPDATE'];
const RENEWS: readonly BillingReason[] = ['SUBSCRIPTION_CYCLE', 'THRESHOLD_BILLING'];

async function isWaitedFor(
  transaction: Transaction,
  { invoice, subscription }: { invoice: InvoiceModel; subscription: SubscriptionModel },
): Promise<boolean> {
  if (subscription.subscription_status !== 'incomplete') return false;
  if (OPENS.includes(invoice.billing_reason)) return true;
  if (!RENEWS.includes(invoice.billing_reason)) return false;
  const [unpaid] = await InvoiceModel.in(subscription, transaction)
    .where({ subscription_id: subscription.id, invoice_status: 'FINALIZED', status: 'published' })
    .where('amount_remaining', '>', 0)
    .limit(1);
  return unpaid === undefined;
}
