/**
 * Charges the opening invoice of a subscription at once, after the commit that created it, so that the response contains the outcome
 * (docs/rules/payments.md, "Openings").
 */
import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { deleteUndoneEffects } from '../../../storage/models/foundation/request-effects.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import type { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { runBillingTransaction } from '../../foundation/transaction.ts';
import { loadWithLines } from '../../invoicing/records/invoice-records.ts';
import type { OpenedSubscription } from '../invoices/open-and-activate.ts';
import { collectNow, ensureCollected } from './attempt-invoice.ts';
import { cancelCharge } from './process-payment.ts';
import { undoOpening } from './undo-opening.ts';

type CollectOpeningInput = { readonly opened: OpenedSubscription; readonly author: Author };

/** Returns the subscription after the charge; unchanged if nothing was charged. */
export async function collectOpening(
  stores: Stores,
  scope: Scope,
  { opened, author }: CollectOpeningInput,
): Promise<OpenedSubscription> {
  const payment = await collectOpeningInvoice(stores, scope, { opened, author });
  return payment ? reloadOpened(stores, scope, opened) : opened;
}

/**
 * Charges a created subscription. With `error_if_incomplete`, a failed charge undoes the creation, and the request is
 * answered with the error.
 */
export async function collectCreation(
  stores: Stores,
  scope: Scope,
  { opened, author }: CollectOpeningInput,
): Promise<OpenedSubscription> {
  const invoice_id = opened.latest_invoice?.id;
  const tried = invoice_id ? await ensureCollected(stores, scope, { invoice_id, by: author }) : null;
  if (!tried) return opened;
  const { payment, reason } = await cancelUnconfirmed(stores, tried, { ...opened, author });
  const after = await reloadOpened(stores, scope, opened);
  const { payment_behavior, subscription_status, id } = after.subscription;
  const isRefused = payment_behavior === 'error_if_incomplete' && subscription_status === 'incomplete';
  if (!isRefused || payment.payment_status === 'PROCESSING') return after;
  await undoCreation(stores, scope, { id, invoice_id: after.latest_invoice!.id, author });
  throw notAllowed(`the opening invoice could not be paid, and payment_behavior is error_if_incomplete`, {
    field: 'payment_behavior',
    reason,
    payment_id: payment.id,
  });
}

/**
 * Cancels a charge that needs the customer's confirmation: with `error_if_incomplete` the request does not wait for the
 * customer.
 */
async function cancelUnconfirmed(
  stores: Stores,
  payment: PaymentModel,
  { subscription, author }: { subscription: SubscriptionModel; author: Author },
): Promise<{ payment: PaymentModel; reason: string | null | undefined }> {
  const waits = payment.payment_status === 'PROCESSING' && payment.payment_url;
  if (!waits || subscription.payment_behavior !== 'error_if_incomplete')
    return { payment, reason: payment.error_message };
  const reason = 'authentication_required: the customer has to confirm the charge';
  return { payment: await cancelCharge(stores, payment, author), reason };
}

type ResumeOpeningInput = { readonly id: string; readonly invoice_id: string | null; readonly author: Author };

/**
 * Continues the creation of a subscription whose request crashed after its commit: charges the opening invoice unless that was already
 * tried. With `error_if_incomplete` a failed charge still undoes the creation.
 */
export async function resumeSubscriptionCreation(
  stores: Stores,
  scope: Scope,
  { author, ...made }: ResumeOpeningInput,
): Promise<OpenedSubscription> {
  return collectCreation(stores, scope, { opened: await loadOpened(stores, scope, made), author });
}

export async function resumeOpening(
  stores: Stores,
  scope: Scope,
  { author, ...made }: ResumeOpeningInput,
): Promise<OpenedSubscription> {
  return collectOpening(stores, scope, { opened: await loadOpened(stores, scope, made), author });
}

async function loadOpened(
  { postgres: database }: Stores,
  scope: Scope,
  { id, invoice_id }: Omit<ResumeOpeningInput, 'author'>,
) {
  const subscription = await SubscriptionModel.fetch(scope, id, { database });
  if (invoice_id === null) return { subscription, latest_invoice: null };
  const invoice = await InvoiceModel.fetch(scope, invoice_id, { database });
  return { subscription, latest_invoice: await loadWithLines(invoice, database) };
}

async function collectOpeningInvoice(
  stores: Stores,
  scope: Scope,
  { opened, author }: CollectOpeningInput,
): Promise<PaymentModel | null> {
  const invoice_id = opened.latest_invoice?.id;
  return invoice_id ? collectNow(stores, scope, { invoice_id, by: author }) : null;
}

async function reloadOpened(
  { postgres }: Stores,
  scope: Scope,
  { subscription, latest_invoice }: OpenedSubscription,
): Promise<OpenedSubscription> {
  const invoice = await InvoiceModel.fetch(scope, latest_invoice!.id, { database: postgres });
  return {
    subscription: await SubscriptionModel.fetch(scope, subscription.id, { database: postgres }),
    latest_invoice: await loadWithLines(invoice, postgres),
  };
}

async function undoCreation(
  stores: Stores,
  scope: Scope,
  undone: { id: string; invoice_id: string; author: Author },
): Promise<void> {
  await runBillingTransaction(stores, async (transaction) => {
    const reason = 'its opening invoice could not be paid';
    await undoOpening(stores, transaction, { ...undone, scope, reason });
    await deleteUndoneEffects(transaction);
  });
}
