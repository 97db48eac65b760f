/**
 * Ends a checkout session without a payment and undoes what it created: the subscription is cancelled, the invoice is
 * void, and a page that is paid later is refunded (docs/rules/checkout.md, "Without a payment"). One transaction writes
 * all of it. Payments of the invoice need the same lock, so a session is either paid or ended.
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { OPEN_CHECKOUTS } from '../../../core/payments/checkout/record.ts';
import { OPEN } from '../../../core/payments/moves.ts';
import { SYSTEM_USER } from '../../../core/platform/audit/record.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { CheckoutSessionModel } from '../../../storage/models/payments/checkout-session.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { type ChangeAuthor, emit } from '../../foundation/emit.ts';
import { runBillingTransaction } from '../../foundation/transaction.ts';
import { lockInvoice } from '../../invoicing/invoices/lock-invoice.ts';
import { activateAfterLowered } from '../effects.ts';
import { voidLocked } from '../invoices/void-invoice.ts';
import { undoOpening } from '../payments/undo-opening.ts';
import { lockWithParent } from '../subscriptions/lock-with-parent.ts';
import { emitCheckout } from './complete-checkout.ts';

type CheckoutEnd = Pick<CheckoutSessionModel, 'failure_reason'> &
  Partial<Pick<CheckoutSessionModel, 'cancelled_at' | 'status'>> & {
    readonly checkout_status: 'failed' | 'expired';
    readonly author: Author;
  };

/**
 * Result of ending a checkout. `is_paid_now`: the session stays open, because another payment of the invoice is in progress and may pay it.
 * `was_over`: the session had ended before.
 */
type EndedCheckout = 'ended' | 'was_over' | 'is_paid_now';

export async function endCheckout(
  stores: Stores,
  scope: Scope,
  { id, author, ...changes }: CheckoutEnd & { readonly id: string },
): Promise<EndedCheckout> {
  return runBillingTransaction(stores, async (transaction) => {
    const seen = await CheckoutSessionModel.fetch(scope, id, { database: transaction });
    const { checkout_invoice_id: invoice_id, subscription_id } = seen;
    if (!isOpen(seen) || !invoice_id) return 'was_over';
    const subscription = subscription_id ? await lockWithParent(scope, subscription_id, transaction) : null;
    const locked = await lockInvoice(transaction, scope, invoice_id);
    const session = await CheckoutSessionModel.fetch(scope, id, { database: transaction, lock: true });
    if (!isOpen(session)) return 'was_over';
    if (locked.invoice.payment_status === 'PROCESSING') return 'is_paid_now';
    const isVoided = locked.invoice.invoice_status === 'FINALIZED' && !session.is_invoice_retained;
    if (isVoided && subscription?.subscription_status === 'incomplete') {
      const reason = 'its checkout was not paid';
      await undoOpening(stores, transaction, { scope, id: subscription.id, invoice_id, reason, author });
    } else if (isVoided) {
      const { lowered } = await voidLocked(stores, transaction, { ...locked, metadata: null, author });
      await activateAfterLowered(stores, transaction, { lowered, by: author });
    }
    await voidPage(transaction, session, author);
    const record = await CheckoutSessionModel.change(session, changes, { by: author, database: transaction });
    await emitCheckout(transaction, `checkout.session.${changes.checkout_status}`, { record, by: author });
    return 'ended';
  });
}

function isOpen({ checkout_status }: CheckoutSessionModel): boolean {
  return OPEN_CHECKOUTS.includes(checkout_status);
}

/** Voids the payment of the page and makes it due, so that the scheduler closes the page at its provider. */
async function voidPage(
  transaction: Transaction,
  { checkout_payment_id, ...scope }: CheckoutSessionModel,
  by: ChangeAuthor,
): Promise<void> {
  const payment = await PaymentModel.fetch(scope, checkout_payment_id!, { database: transaction, lock: true });
  if (!OPEN.includes(payment.payment_status)) return;
  const now = by.now.toISOString();
  const changes = { payment_status: 'VOIDED' as const, voided_at: now, next_attempt_at: now, payment_url: null };
  const record = await PaymentModel.change(payment, changes, { by, database: transaction });
  await emit(transaction, 'payment.updated', { record, by });
}

/**
 * Ends the session of a page that can no longer be paid. Returns false if the session stays open, because another payment of the invoice is
 * in progress.
 */
export async function endCheckoutOfPayment(
  stores: Stores,
  { checkout_session_id: id, ...payment }: PaymentModel,
  by: ChangeAuthor,
): Promise<boolean> {
  if (!id) return true;
  const { expires_at } = await CheckoutSessionModel.fetch(payment, id, { database: stores.postgres });
  const isExpired = Date.parse(expires_at) <= by.now.getTime();
  const ended = await endCheckout(stores, payment, {
    id,
    checkout_status: isExpired ? 'expired' : 'failed',
    failure_reason: isExpired ? 'nobody has paid while the page was open' : (payment.error_message ?? WITHDRAWN),
    author: { user_id: SYSTEM_USER, ...by },
  });
  return ended !== 'is_paid_now';
}

const WITHDRAWN = 'the payment of the page was voided';
