/**
 * Collects an invoice now: retries its automatic collection at once, or creates one (docs/rules/payments.md, "Tried by hand"). A request
 * that finalized an invoice uses it too, so that its answer contains the outcome.
 */
import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { checkPayable } from '../../../core/payments/request.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { retryTransaction } from '../../../storage/postgres/pool/deadlock-retry.ts';
import { loadCoveredByCredits } from '../../credits/wallets/pay-with-credits.ts';
import type { ChangeAuthor } from '../../foundation/emit.ts';
import { loadCollection } from '../../invoicing/collection/find-payment-method.ts';
import { addCollection, findPendingCollection } from '../../invoicing/collection/plan-collection.ts';
import { lockInvoice } from '../../invoicing/invoices/lock-invoice.ts';
import { processPayment, resumePayment } from './process-payment.ts';

export async function attemptInvoice(
  stores: Stores,
  scope: Scope,
  { id, by }: { id: string; by: ChangeAuthor },
): Promise<PaymentModel> {
  const payment = await retryTransaction(stores, async (transaction) => {
    const { invoice, subscription } = await lockInvoice(transaction, scope, id);
    checkPayable(invoice);
    const pending = await findPendingCollection(transaction, invoice);
    if (pending) return pending;
    const covered = await loadCoveredByCredits(transaction, invoice, by.now);
    // A requested attempt charges any amount that is available, also a part of the invoice.
    const charge = await loadCollection(transaction, invoice, { subscription, covered, inPart: true });
    if (charge.collection === null)
      throw notAllowed(`there is nothing to charge: ${charge.obstacle.message}`, charge.obstacle.details);
    return addCollection(transaction, { invoice, collection: charge.collection, now: by.now });
  });
  return processPayment(stores, scope, { id: payment.id, by });
}

/** Tries the planned collection of the invoice at once; null if none is planned. */
export async function collectNow(
  stores: Stores,
  scope: Scope,
  { invoice_id, by }: { invoice_id: string; by: ChangeAuthor },
): Promise<PaymentModel | null> {
  const pending = await findPendingCollection(stores.postgres, { ...scope, id: invoice_id });
  return pending ? resumePayment(stores, scope, { id: pending.id, by }) : null;
}

/** Continues after a request that crashed: tries an untried collection, or returns the outcome of the first try without a second one. */
export async function ensureCollected(
  stores: Stores,
  scope: Scope,
  { invoice_id, by }: { invoice_id: string; by: ChangeAuthor },
): Promise<PaymentModel | null> {
  const [planned] = await PaymentModel.in(scope, stores.postgres)
    .where({ destination_id: invoice_id, is_automatic: true, status: 'published' })
    .orderBy('id', 'desc')
    .limit(1);
  const isUntried = planned?.payment_status === 'PENDING' && planned.attempt_count === 0;
  return isUntried ? resumePayment(stores, scope, { id: planned.id, by }) : (planned ?? null);
}
