/**
 * Tries to collect an invoice now: its automatic collection goes on at once, or one is made (docs/rules/payments.md, "Tried by hand").
 * A request that has made an invoice final asks for the same, so that it can answer what came of it.
 */
import type { Decimal } from '../../core/decimal.ts';
import { notAllowed } from '../../core/error.ts';
import { checkPayable } from '../../core/payment/request.ts';
import type { Scope } from '../../core/scope.ts';
import { createdBy } from '../../core/stamp.ts';
import type { InvoiceModel } from '../../storage/models/invoice.ts';
import { PaymentModel } from '../../storage/models/payment.ts';
import type { WalletModel } from '../../storage/models/wallet.ts';
import { newId } from '../../storage/new-id.ts';
import type { Database, Stores, Transaction } from '../../storage/stores.ts';
import { holdInvoice } from '../invoices/hold-invoice.ts';
import { emit } from '../system-events/emit.ts';
import { payableWithCredits } from '../wallets/pay-with-credits.ts';
import type { By } from './change-invoice-payment.ts';
import { addCollection } from './plan-collection.ts';
import { processPayment, pursuePayment } from './pursue-payment.ts';
import { wayToCollect } from './way-to-pay.ts';

export async function attemptInvoice(
  stores: Stores,
  scope: Scope,
  { id, by }: { id: string; by: By },
): Promise<PaymentModel> {
  const payment = await stores.postgres.transaction(async (transaction) => {
    const { invoice, subscription } = await holdInvoice(transaction, scope, id);
    checkPayable(invoice);
    const pending = await pendingCollection(transaction, invoice);
    const asked = { customer_id: invoice.customer_id, subscription: subscription ?? {} };
    const collected = await wayToCollect(transaction, invoice, asked);
    const credits = collected.way === null && !pending ? await payableWithCredits(transaction, invoice, by.now) : null;
    if (credits) return addCreditPayment(transaction, { invoice, ...credits, by });
    if (collected.way === null)
      throw notAllowed(`there is nothing to charge: ${collected.obstacle.message}`, collected.obstacle.details);
    return pending ?? addCollection(transaction, { invoice, way: collected.way, now: by.now });
  });
  return processPayment(stores, scope, { id: payment.id, by });
}

/** A postpaid wallet pays what it can, where there is nothing else to charge. */
async function addCreditPayment(
  transaction: Transaction,
  { invoice, wallet, amount, by }: { invoice: InvoiceModel; wallet: WalletModel; amount: Decimal; by: By },
): Promise<PaymentModel> {
  const id = newId('payment', by.now.getTime());
  const record = {
    ...createdBy({ user_id: 'user_id' in by ? by.user_id : '', now: by.now }),
    id,
    idempotency_key: `credits-${id}`,
    customer_id: invoice.customer_id,
    destination_type: 'INVOICE',
    destination_id: invoice.id,
    invoice_number: invoice.invoice_number ?? null,
    payment_method_type: 'CREDITS',
    payment_method_id: wallet.id,
    amount: amount.toFixed(),
    currency: invoice.currency,
    payment_status: 'PENDING',
    track_attempts: false,
  };
  const payment = await PaymentModel.add(invoice, record, { database: transaction });
  await emit(transaction, 'payment.created', { record: payment, by });
  return payment;
}

/** What was planned with the invoice is tried at once; null where nothing was. */
export async function collectNow(
  stores: Stores,
  scope: Scope,
  { invoice_id, by }: { invoice_id: string; by: By },
): Promise<PaymentModel | null> {
  const pending = await pendingCollection(stores.postgres, { ...scope, id: invoice_id });
  return pending ? pursuePayment(stores, scope, { id: pending.id, by }) : null;
}

/** The same where a request that has died may have tried it: what came of that, and no second try. */
export async function collectOnce(
  stores: Stores,
  scope: Scope,
  { invoice_id, by }: { invoice_id: string; by: By },
): Promise<PaymentModel | null> {
  const [planned] = await PaymentModel.in(scope, stores.postgres)
    .where({ destination_id: invoice_id, is_automatic: true, status: 'published' })
    .orderBy('id', 'desc')
    .limit(1);
  const isUntried = planned?.payment_status === 'PENDING' && planned.attempt_count === 0;
  return isUntried ? pursuePayment(stores, scope, { id: planned.id, by }) : (planned ?? null);
}

async function pendingCollection(
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
