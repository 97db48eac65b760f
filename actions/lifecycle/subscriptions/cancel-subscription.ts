/**
 * Cancels a subscription now, at the end of its period or on a date (docs/rules/subscriptions.md, "Cancellation";
 * core/subscriptions/cancellation.ts). An immediate cancellation ends the line items and invoices the arrears, unless the request says
 * skip. The scheduler executes a scheduled one.
 */
import { buildStateError, invalid, notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { formatMs, toInstant } from '../../../core/foundation/time/instant.ts';
import type { InvoiceWithLines } from '../../../core/invoicing/invoice/record.ts';
import { type CancellationRequest, planCancellation } from '../../../core/subscriptions/cancellation.ts';
import type { CANCEL_INVOICE_POLICIES, PRORATION_BEHAVIORS } from '../../../core/subscriptions/record.ts';
import { checkVersion } from '../../../core/subscriptions/version.ts';
import type { Database, Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { CheckoutSessionModel } from '../../../storage/models/payments/checkout-session.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import { SubscriptionScheduleModel } from '../../../storage/models/subscriptions/subscription-schedule.ts';
import { emit } from '../../foundation/emit.ts';
import { previewChange } from '../../foundation/preview.ts';
import { runBillingTransaction } from '../../foundation/transaction.ts';
import { gatherInvoicedLines, invoicedUntil } from '../../invoicing/billing/gather-closed-charges.ts';
import { creditOverbilled, draftFinalInvoice, draftPeriodsBefore } from '../../invoicing/invoices/draft-invoice.ts';
import { loadPayer } from '../../subscriptions/load-payer.ts';
import { addSchedule, closeSchedule } from '../../subscriptions/schedules.ts';
import { closeDuePeriods } from '../billing/close-period.ts';
import { activateAfterLowered } from '../effects.ts';
import { catchUpSubscription } from './caught-up.ts';
import { type CreditedUnusedTime, checkOnePeriod, creditUnused } from './credit-unused.ts';
import { lockWithParent } from './lock-with-parent.ts';
import { computeOpenDrafts } from './open-drafts.ts';
import { propagateToChildren } from './propagate-to-children.ts';

type CancelRequest = CancellationRequest & {
  id: string;
  /** The version that the caller has read, if the request names it. */
  version?: number | null | undefined;
  invoice_policy: (typeof CANCEL_INVOICE_POLICIES)[number];
  proration_behavior: (typeof PRORATION_BEHAVIORS)[number];
  reason: string | null;
  author: Author;
};

export type CancelledSubscription = {
  subscription: SubscriptionModel;
  effective_date: string;
  invoice: InvoiceWithLines | null;
  /** Credited advance charges; null without a credit. */
  credited: CreditedUnusedTime | null;
};

export async function cancelSubscription(
  stores: Stores,
  scope: Scope,
  request: CancelRequest,
): Promise<CancelledSubscription> {
  return runBillingTransaction(stores, planCancelling(stores, scope, request));
}

/** Previews the cancellation with its final invoice and its credits. */
export async function previewCancellation<Answer>(
  stores: Stores,
  scope: Scope,
  { request, show }: CancellationPreview<Answer>,
): Promise<Answer> {
  return previewChange(stores, { change: planCancelling(stores, scope, request), show });
}

type CancellationPreview<Answer> = {
  readonly request: CancelRequest;
  readonly show: (cancelled: CancelledSubscription, database: Database) => Promise<Answer>;
};

/** Returns the transaction of a request to cancel. */
function planCancelling(stores: Stores, scope: Scope, request: CancelRequest) {
  return async (transaction: Transaction): Promise<CancelledSubscription> => {
    await checkNoOpenCheckout(transaction, scope, request.id);
    return cancelWithin(stores, transaction, { scope, request });
  };
}

/** Refuses to cancel a subscription with an open checkout, whose invoice and page would remain open. */
async function checkNoOpenCheckout(transaction: Transaction, scope: Scope, subscription_id: string): Promise<void> {
  const session = await CheckoutSessionModel.findOpen(scope, { subscription_id }, transaction);
  if (session)
    throw notAllowed('a checkout of this subscription is open: archive its session, which cancels the subscription', {
      checkout_session_id: session.id,
    });
}

/** Cancels a subscription in a transaction that the caller also uses for other writes. */
export async function cancelWithin(
  stores: Stores,
  transaction: Transaction,
  { scope, request }: { scope: Scope; request: CancelRequest },
): Promise<CancelledSubscription> {
  const { id, author } = request;
  const stored = await lockWithParent(scope, id, transaction);
  checkVersion(request.version, stored);
  const running = await bringUpToDate(stores, transaction, { subscription: stored, request });
  const { effective_date, changes } = planCancellation(running, request, author.now.getTime());
  const isOver = changes.subscription_status === 'cancelled';
  if (isOver) await checkNotInvoiced(transaction, running, { request, effective_date });
  if (!isOver) await schedule(transaction, running, { request, effective_date });
  const credited = isOver ? await creditIfRequested(transaction, running, { request, effective_date }) : null;
  // The amount owed by a grouped subscription is on the next invoice of its parent.
  const isGrouped = running.subscription_type === 'grouped_invoicing';
  const final = { subscription: running, effective_date, now: author.now };
  // An incomplete subscription grants nothing until it is paid, so it owes only its opening invoice.
  const isInvoiced = isOver && !isGrouped && running.subscription_status !== 'incomplete';
  const isSkipped = request.invoice_policy === 'skip';
  if (isInvoiced && isSkipped) await draftPeriodsBefore(stores, transaction, final);
  const invoice = isInvoiced && !isSkipped ? await draftFinalInvoice(stores, transaction, final) : null;
  const isCredited = isOver && (isSkipped || running.subscription_status === 'incomplete');
  const lowered = isCredited
    ? await creditOverbilled(stores, transaction, { ...final, payer_id: await loadPayer(running, transaction) })
    : [];
  const forgiven = isOver && isGrouped && request.invoice_policy === 'skip' ? ALONE : {};
  const by = { by: author, database: transaction };
  const subscription = await SubscriptionModel.change(running, { ...changes, ...forgiven }, by);
  if (isOver) await endLineItems(scope, { subscription, author }, transaction);
  if (isOver) await closeSchedule(transaction, subscription, { by: author });
  if (!isGrouped) await computeOpenDrafts(stores, transaction, { subscription, now: author.now });
  await emit(transaction, 'subscription.updated', { record: subscription, by: author });
  if (isOver) await emit(transaction, 'subscription.cancelled', { record: subscription, by: author });
  await propagateToChildren(stores, transaction, { parent: subscription, by: author });
  // Called after the end is stored, so that a subscription whose invoice the credits have paid does not become active again.
  const settled = credited?.settled.flatMap((one) => one.lowered) ?? [];
  await activateAfterLowered(stores, transaction, { lowered: [...settled, ...lowered], by: author });
  return { subscription, effective_date, invoice, credited };
}

/**
 * Does the due work that the scheduler has not done yet, up to a backdated `cancel_at` or else up to now, and returns the resulting
 * subscription.
 */
async function bringUpToDate(
  stores: Stores,
  transaction: Transaction,
  { subscription, request }: { subscription: SubscriptionModel; request: CancelRequest },
): Promise<SubscriptionModel> {
  const { cancel_at, author } = request;
  const { now } = author;
  const open = await catchUpSubscription(stores, transaction, { subscription, at: cancel_at, now });
  const isBackdated = request.cancellation_type === 'immediate' && cancel_at;
  const before = isBackdated ? toInstant(cancel_at) : undefined;
  return closeDuePeriods(stores, transaction, { subscription: open, now, before });
}

/** Refuses a cancellation before the instant up to which progressive billing has invoiced usage, because that usage stays charged. */
async function checkNotInvoiced(
  transaction: Transaction,
  running: SubscriptionModel,
  { request, effective_date }: AcceptedCancellation,
): Promise<void> {
  if (!request.cancel_at) return;
  const until = invoicedUntil(await gatherInvoicedLines(transaction, running));
  if (until !== null && toInstant(effective_date) < until)
    throw invalid('cancel_at', `must not lie before ${formatMs(until)}: usage until then is invoiced`);
}

/** Fields of a subscription that is no longer invoiced with its parent. */
const ALONE = { subscription_type: 'STANDALONE', parent_subscription_id: null } as const;

type AcceptedCancellation = { request: CancelRequest; effective_date: string };

/** Schedules a change. A subscription has at most one scheduled change, which can be cancelled until it happens. */
async function schedule(
  transaction: Transaction,
  running: SubscriptionModel,
  { request, effective_date }: AcceptedCancellation,
): Promise<void> {
  const { cancellation_type, reason, proration_behavior, author } = request;
  const pending = await SubscriptionScheduleModel.findPending(running, running.id, transaction);
  if (pending)
    throw buildStateError('cancellation_type', `a ${pending.schedule_type} is scheduled already: undo it first`, {
      id: pending.id,
    });
  const at = toInstant(effective_date);
  if (proration_behavior === 'create_prorations') await checkOnePeriod(transaction, { subscription: running, at });
  await addSchedule(transaction, running, {
    schedule_type: 'cancellation',
    scheduled_at: effective_date,
    configuration: { cancellation_type, reason, proration_behavior },
    metadata: null,
    author,
  });
}

const NOT_PAID: readonly SubscriptionModel['subscription_status'][] = ['trialing', 'incomplete'];

/**
 * Credits the unused time if requested. Nothing is credited for a trial, which was not charged, or for an incomplete subscription, which
 * was not paid.
 */
async function creditIfRequested(
  transaction: Transaction,
  running: SubscriptionModel,
  { request, effective_date }: AcceptedCancellation,
): Promise<CreditedUnusedTime | null> {
  if (request.proration_behavior === 'none' || NOT_PAID.includes(running.subscription_status)) return null;
  const unused = { subscription: running, at: toInstant(effective_date), author: request.author };
  await checkOnePeriod(transaction, unused);
  return creditUnused(transaction, unused);
}

async function endLineItems(
  scope: Scope,
  { subscription, author }: { subscription: SubscriptionModel; author: Author },
  transaction: Transaction,
): Promise<void> {
  const { id, end_date } = subscription;
  await SubscriptionLineItemModel.endAll(scope, { subscription_id: id, at: end_date!, by: author }, transaction);
}
