/**
 * An invoice that becomes final is collected where its subscription says so and there is something to charge: a payment is made in
 * the same transaction, and tried after its commit (docs/rules/payments.md, "Collected by itself").
 */

import { SYSTEM_USER } from '../../core/audit/record.ts';
import { Decimal } from '../../core/decimal.ts';
import type { Scope } from '../../core/scope.ts';
import { createdBy } from '../../core/stamp.ts';
import type { InvoiceModel } from '../../storage/models/invoice.ts';
import { PaymentModel } from '../../storage/models/payment.ts';
import { withMethods } from '../../storage/models/payment-method.ts';
import { sideBySide } from '../../storage/models/side-by-side.ts';
import type { SubscriptionModel } from '../../storage/models/subscription.ts';
import { newId } from '../../storage/new-id.ts';
import type { Database, Transaction } from '../../storage/stores.ts';
import { emit } from '../system-events/emit.ts';
import { type WayToCollect, wayToCollect } from './way-to-pay.ts';

type Collected = { readonly invoice: InvoiceModel; readonly subscription: SubscriptionModel | null };

/** Of several that become final together, in one environment. Most have nothing to be charged to: who has is asked once for all. */
export async function planCollections(
  transaction: Transaction,
  scope: Scope,
  { all, now }: { all: readonly Collected[]; now: Date },
): Promise<void> {
  const due = all.filter(isToBeCollected);
  if (due.length < 2) return void (await Promise.all(due.map((one) => planCollection(transaction, { ...one, now }))));
  const payers = due.map(({ invoice }) => invoice.customer_id);
  const able = await withMethods(scope, payers, transaction);
  const hasWay = ({ invoice, subscription }: Collected) =>
    Boolean(subscription?.gateway_payment_method_id) || able.has(invoice.customer_id);
  await sideBySide(transaction, due.filter(hasWay), (one) => planCollection(transaction, { ...one, now }));
}

function isToBeCollected({ invoice, subscription }: Collected): boolean {
  return subscription?.collection_method === 'charge_automatically' && new Decimal(invoice.amount_remaining).gt(0);
}

async function planCollection(
  transaction: Transaction,
  { invoice, subscription, now }: Collected & { readonly now: Date },
): Promise<PaymentModel | null> {
  if (!subscription) return null;
  const { way } = await wayToCollect(transaction, invoice, { customer_id: invoice.customer_id, subscription });
  return way && addCollection(transaction, { invoice, way, now });
}

/** Whether the subscription would be charged for what it is invoiced. */
export async function isCollected(database: Database, subscription: SubscriptionModel): Promise<boolean> {
  if (subscription.collection_method !== 'charge_automatically') return false;
  const customer_id = subscription.invoicing_customer_id ?? subscription.customer_id;
  return (await wayToCollect(database, subscription, { customer_id, subscription })).way !== null;
}

export async function addCollection(
  transaction: Transaction,
  { invoice, way, now }: { invoice: InvoiceModel; way: WayToCollect; now: Date },
): Promise<PaymentModel> {
  const id = newId('payment', now.getTime());
  const record = {
    ...way,
    ...createdBy({ user_id: SYSTEM_USER, now }),
    id,
    idempotency_key: `collection of ${invoice.id}: ${id}`,
    customer_id: invoice.customer_id,
    destination_type: 'INVOICE',
    destination_id: invoice.id,
    invoice_number: invoice.invoice_number ?? null,
    amount: invoice.amount_remaining,
    currency: invoice.currency,
    payment_status: 'PENDING',
    is_automatic: true,
    next_attempt_at: now.toISOString(),
  };
  const conflict = 'this invoice is being collected already';
  const payment = await PaymentModel.add(invoice, record, { database: transaction, conflict });
  await emit(transaction, 'payment.created', { record: payment, by: { now } });
  return payment;
}
