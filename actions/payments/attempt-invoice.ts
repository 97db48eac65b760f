/**
 * Tries to collect an invoice now: its automatic collection goes on at once, or one is made (docs/rules/payments.md, "Tried by hand").
 * A request that has made an invoice final asks for the same, so that it can answer what came of it.
 */
import { notAllowed } from '../../core/error.ts';
import { checkPayable } from '../../core/payment/request.ts';
import type { Scope } from '../../core/scope.ts';
import { PaymentModel } from '../../storage/models/payment.ts';
import { transactionBehindOthers } from '../../storage/postgres/behind-others.ts';
import type { Stores } from '../../storage/stores.ts';
import { lockInvoice } from '../invoices/lock-invoice.ts';
import { payableWithCredits } from '../wallets/pay-with-credits.ts';
import type { By } from './change-invoice-payment.ts';
import { addCollection, pendingCollection } from './plan-collection.ts';
import { processPayment, pursuePayment } from './pursue-payment.ts';
import { collectionOf } from './way-to-pay.ts';

export async function attemptInvoice(
  stores: Stores,
  scope: Scope,
  { id, by }: { id: string; by: By },
): Promise<PaymentModel> {
  const payment = await transactionBehindOthers(stores, async (transaction) => {
    const { invoice, subscription } = await lockInvoice(transaction, scope, id);
    checkPayable(invoice);
    const pending = await pendingCollection(transaction, invoice);
    if (pending) return pending;
    const covered = await payableWithCredits(transaction, invoice, by.now);
    // Whoever asks for it has what there is, also of a part.
    const asked = await collectionOf(transaction, invoice, { subscription, covered, inPart: true });
    if (asked.collection === null)
      throw notAllowed(`there is nothing to charge: ${asked.obstacle.message}`, asked.obstacle.details);
    return addCollection(transaction, { invoice, collection: asked.collection, now: by.now });
  });
  return processPayment(stores, scope, { id: payment.id, by });
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
