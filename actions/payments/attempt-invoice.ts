/**
 * Tries to collect an invoice now: its automatic collection goes on at once, or one is made (docs/rules/payments.md, "Tried by hand").
 * A request that has made an invoice final asks for the same, so that it can answer what came of it.
 */
import { Decimal } from '../../core/decimal.ts';
import { notAllowed } from '../../core/error.ts';
import { checkPayable } from '../../core/payment/request.ts';
import type { Scope } from '../../core/scope.ts';
import { createdBy } from '../../core/stamp.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import { PaymentModel } from '../../storage/models/payment.ts';
import type { SubscriptionModel } from '../../storage/models/subscription.ts';
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

/** A postpaid wallet pays what it can, and what is left is charged; the answer is what came of the last of these. */
export async function attemptInvoice(
  stores: Stores,
  scope: Scope,
  asked: { id: string; by: By },
): Promise<PaymentModel> {
  const { by } = asked;
  const credits = await planned(stores, scope, asked, async (transaction, invoice) => {
    const payable = await payableWithCredits(transaction, invoice, by.now);
    return payable && addCreditPayment(transaction, { invoice, ...payable, by });
  });
  const paid = credits && (await processPayment(stores, scope, { id: credits.id, by }));
  if (paid && new Decimal(await remainingOf(stores, scope, asked.id)).lte(0)) return paid;
  const collection = await planned(stores, scope, asked, async (transaction, invoice, subscription) => {
    const who = { customer_id: invoice.customer_id, subscription: subscription ?? {} };
    const collected = await wayToCollect(transaction, invoice, who);
    if (collected.way)
      return (
        (await pendingCollection(transaction, invoice)) ??
        addCollection(transaction, { invoice, way: collected.way, now: by.now })
      );
    if (paid) return null;
    throw notAllowed(`there is nothing to charge: ${collected.obstacle.message}`, collected.obstacle.details);
  });
  return collection ? processPayment(stores, scope, { id: collection.id, by }) : paid!;
}

type Plan = (
  transaction: Transaction,
  invoice: InvoiceModel,
  subscription: SubscriptionModel | null,
) => Promise<PaymentModel | null>;

/** Of an invoice that can be paid, held while it is decided how. */
function planned({ postgres }: Stores, scope: Scope, { id }: { id: string }, plan: Plan): Promise<PaymentModel | null> {
  return postgres.transaction(async (transaction) => {
    const { invoice, subscription } = await holdInvoice(transaction, scope, id);
    checkPayable(invoice);
    return plan(transaction, invoice, subscription);
  });
}

async function remainingOf({ postgres }: Stores, scope: Scope, id: string): Promise<string> {
  return (await InvoiceModel.fetch(scope, id, { database: postgres })).amount_remaining;
}

/** So much of the invoice is taken from the wallet. */
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
