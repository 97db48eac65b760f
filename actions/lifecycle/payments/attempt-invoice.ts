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
import { addCollectionPayment, findPendingCollectionPayment } from '../../invoicing/collection/create-collection.ts';
import { loadCollection } from '../../invoicing/collection/find-payment-method.ts';
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
    const pending = await findPendingCollectionPayment(transaction, invoice);
    if (pending) return pending;
    const covered = await loadCoveredByCredits(transaction, invoice, by.now);
    // A requested attempt charges any available amount, even if it covers only a part of the invoice.
    const found = await loadCollection(transaction, invoice, { subscription, covered, allows_partial: true });
    if (found.collection === null)
      throw notAllowed(`there is nothing to charge: ${found.obstacle.message}`, found.obstacle.details);
    return addCollectionPayment(transaction, { invoice, collection: found.collection, now: by.now });
  });
  return processPayment(stores, scope, { id: payment.id, by });
}

/** Processes the pending collection of the invoice at once; null if there is none. */
export async function collectNow(
  stores: Stores,
  scope: Scope,
  { invoice_id, by }: { invoice_id: string; by: ChangeAuthor },
): Promise<PaymentModel | null> {
  const pending = await findPendingCollectionPayment(stores.postgres, { ...scope, id: invoice_id });
  return pending ? resumePayment(stores, scope, { id: pending.id, by }) : null;
}

/**
 * Continues after a request that may have crashed: attempts the automatic payment if that was not done yet, otherwise returns it with the
 * outcome of its attempts.
 */
export async function ensureCollected(
  stores: Stores,
  scope: Scope,
  { invoice_id, by }: { invoice_id: string; by: ChangeAuthor },
): Promise<PaymentModel | null> {
  const [collection] = await PaymentModel.in(scope, stores.postgres)
    .where({ destination_id: invoice_id, is_automatic: true, status: 'published' })
    .orderBy('id', 'desc')
    .limit(1);
  const isUntried = collection?.payment_status === 'PENDING' && collection.attempt_count === 0;
  return isUntried ? resumePayment(stores, scope, { id: collection.id, by }) : (collection ?? null);
}
