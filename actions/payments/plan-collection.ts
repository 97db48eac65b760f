/**
 * An invoice that becomes final is collected where its subscription says so and there is something to charge: a payment is made in
 * the same transaction, and tried after its commit (docs/rules/payments.md, "Collected by itself").
 */

import { SYSTEM_USER } from '../../core/audit/record.ts';
import { Decimal } from '../../core/decimal.ts';
import { createdBy } from '../../core/stamp.ts';
import type { InvoiceModel } from '../../storage/models/invoice.ts';
import { PaymentModel } from '../../storage/models/payment.ts';
import type { SubscriptionModel } from '../../storage/models/subscription.ts';
import { newId } from '../../storage/new-id.ts';
import type { Database, Transaction } from '../../storage/stores.ts';
import { emit } from '../system-events/emit.ts';
import { payableWithCredits } from '../wallets/pay-with-credits.ts';
import { type Collection, collectionOf } from './way-to-pay.ts';

export async function planCollection(
  transaction: Transaction,
  { invoice, subscription, now }: { invoice: InvoiceModel; subscription: SubscriptionModel | null; now: Date },
): Promise<PaymentModel | null> {
  if (subscription?.collection_method !== 'charge_automatically') return null;
  if (new Decimal(invoice.amount_remaining).lte(0)) return null;
  const covered = await payableWithCredits(transaction, invoice, now);
  const { collection } = await collectionOf(transaction, invoice, { subscription, covered });
  return collection && addCollection(transaction, { invoice, collection, now });
}

/** What collects it, and waits to be tried. */
export async function pendingCollection(
  database: Database,
  invoice: Pick<InvoiceModel, 'id' | 'tenant_id' | 'environment_id'>,
): Promise<PaymentModel | undefined> {
  const [pending] = await PaymentModel.in(invoice, database).where({
    destination_id: invoice.id,
    is_automatic: true,
    payment_status: 'PENDING',
    status: 'published',
  });
  return pending;
}

type Adding = { readonly invoice: InvoiceModel; readonly collection: Collection; readonly now: Date };

export async function addCollection(
  transaction: Transaction,
  { invoice, collection, now }: Adding,
  payment_status: 'PENDING' | 'INITIATED' = 'PENDING',
): Promise<PaymentModel> {
  const id = newId('payment', now.getTime());
  const record = {
    ...collection,
    ...createdBy({ user_id: SYSTEM_USER, now }),
    id,
    idempotency_key: `collection of ${invoice.id}: ${id}`,
    customer_id: invoice.customer_id,
    destination_type: 'INVOICE',
    destination_id: invoice.id,
    invoice_number: invoice.invoice_number ?? null,
    currency: invoice.currency,
    payment_status,
    track_attempts: collection.payment_method_type !== 'CREDITS',
    is_automatic: true,
    next_attempt_at: now.toISOString(),
  };
  const conflict = 'this invoice is being collected already';
  const payment = await PaymentModel.add(invoice, record, { database: transaction, conflict });
  await emit(transaction, 'payment.created', { record: payment, by: { now } });
  return payment;
}
