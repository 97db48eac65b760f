/** Voids an invoice: it retains its number and its lines, and no longer bills its period (docs/rules/invoices.md, "Voiding"). */

import { toOwnKey } from '../../../core/credits/wallet/movement-key.ts';
import { Decimal, sumDecimals, ZERO } from '../../../core/foundation/decimal.ts';
import { notAllowed } from '../../../core/foundation/error.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { splitRefundable } from '../../../core/invoicing/credit-note/creditable.ts';
import { checkVoidable, planVoidedPayment } from '../../../core/invoicing/invoice/void.ts';
import { filterPartialCharges } from '../../../core/rating/partial-charges.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import { CheckoutSessionModel } from '../../../storage/models/payments/checkout-session.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { enqueueInvoiceAlertChecks } from '../../../storage/progress/alert-arrivals.ts';
import { checkNotBought, failPurchase } from '../../credits/wallets/pending-credits.ts';
import { returnCredits } from '../../credits/wallets/return-credits.ts';
import { emit } from '../../foundation/emit.ts';
import { runBillingTransaction } from '../../foundation/transaction.ts';
import {
  gatherInvoicedLines,
  type InvoicedLine,
  partialCharges,
} from '../../invoicing/billing/gather-closed-charges.ts';
import { voidOpenPayments } from '../../invoicing/collection/void-open-payments.ts';
import { gatherChangesWithin, returnOffsets, voidChangesWithin } from '../../invoicing/invoices/changes-within.ts';
import { computeWithin } from '../../invoicing/invoices/compute-invoice.ts';
import { computeRest } from '../../invoicing/invoices/credit-rest.ts';
import { listLineCorrections } from '../../invoicing/invoices/credits-of-lines.ts';
import { type LockedInvoice, lockInvoice } from '../../invoicing/invoices/lock-invoice.ts';
import { toScope } from '../../rating/billable-items.ts';
import { returnRedemptions } from '../../rating/coupons/redeem.ts';
import { activateAfterLowered, activateIncompleteSubscription } from '../effects.ts';

type VoidInvoiceInput = { id: string; metadata: Record<string, string> | null; author: Author };

export async function voidInvoice(
  stores: Stores,
  scope: Scope,
  { id, metadata, author }: VoidInvoiceInput,
): Promise<InvoiceModel> {
  return runBillingTransaction(stores, async (transaction) => {
    const locked = await lockInvoice(transaction, scope, id);
    await checkNoOpenCheckout(locked.invoice, transaction);
    await checkNothingCorrected(locked.invoice, transaction);
    const { voided, lowered } = await voidLocked(stores, transaction, { ...locked, metadata, author });
    // An incomplete subscription that waits for this invoice becomes active. If its period is billed again, the new invoice requests the
    // payment.
    if (locked.invoice.invoice_status === 'FINALIZED')
      await activateIncompleteSubscription(stores, transaction, { ...locked, invoice: voided, by: author });
    // The lowered invoices are processed after the voided one, because both may belong to one subscription, which is then read again.
    await activateAfterLowered(stores, transaction, { lowered, by: author });
    return voided;
  });
}

/**
 * Refuses to void an invoice with an open checkout, because an incomplete subscription would become active without a
 * payment.
 */
async function checkNoOpenCheckout(invoice: InvoiceModel, transaction: Transaction): Promise<void> {
  const session = await CheckoutSessionModel.findOpen(invoice, { checkout_invoice_id: invoice.id }, transaction);
  if (session)
    throw notAllowed('a checkout of this invoice is open: archive its session, which voids the invoice', {
      checkout_session_id: session.id,
    });
}

type VoidLockedInput = LockedInvoice & Omit<VoidInvoiceInput, 'id'>;

/**
 * A voided invoice, and the open invoices that the returned credits lowered (`lowered`). The caller applies the effects of the lower
 * amounts.
 */
type VoidedInvoice = { readonly voided: InvoiceModel; readonly lowered: readonly InvoiceModel[] };

/** Voids the invoice. The caller has locked the subscription, too: a change reads the billed amounts under its lock. */
export async function voidLocked(
  stores: Stores,
  transaction: Transaction,
  { invoice, subscription, metadata, author }: VoidLockedInput,
): Promise<VoidedInvoice> {
  checkVoidable(invoice);
  await checkNotBought(transaction, invoice);
  const ids = await listLineIds(invoice, transaction);
  await checkCreditsNothing(invoice, transaction);
  const changesWithin = await gatherChangesWithin(transaction, invoice, ids);
  const lessened = subscription ? await gatherOffsetLines(invoice, subscription, transaction) : [];
  checkOffsetLinesOpen(lessened);
  const changes = {
    invoice_status: 'VOIDED' as const,
    voided_at: author.now.toISOString(),
    ...planVoidedPayment(invoice),
    ...(metadata ? { metadata: { ...invoice.metadata, ...metadata } } : {}),
  };
  await creditVoided(transaction, invoice, { changesWithin, author });
  await voidChangesWithin(transaction, changesWithin, author);
  const voided = await InvoiceModel.change(invoice, changes, { by: author, database: transaction });
  await returnRedemptions(voided, { transaction, author });
  await emit(transaction, 'invoice.update.voided', { record: voided, by: author });
  await enqueueInvoiceAlertChecks(transaction, voided);
  await voidOpenPayments(transaction, { invoice: voided, by: author });
  const withIt = changesWithin.map((change) => change.id);
  const lowered = subscription
    ? await returnOffsets(transaction, { invoice: voided, subscription, changes: withIt, author })
    : [];
  await failPurchase(transaction, { invoice: voided, by: author });
  const open = await listLineCorrections(invoice, ids, { invoice_status: 'DRAFT', database: transaction });
  const recomputed = [...lessened.map(({ line }) => line), ...open];
  for (const invoice_id of new Set(recomputed.map((line) => line.invoice_id))) {
    const input = { scope: toScope(invoice), invoice_id, now: author.now };
    const { invoice: draft } = await computeWithin(stores, transaction, input);
    if (draft.is_manually_edited)
      throw notAllowed('the invoice that says the difference was edited by hand: recalculate that one first', {
        invoice_id,
      });
  }
  return { voided, lowered };
}

/** Gathers the lines of other invoices that charge less because this invoice charged a part of their usage before. */
async function gatherOffsetLines(
  invoice: InvoiceModel,
  subscription: SubscriptionModel,
  transaction: Transaction,
): Promise<InvoicedLine[]> {
  if (invoice.billing_reason !== 'THRESHOLD_BILLING') return [];
  const lines = await gatherInvoicedLines(transaction, subscription);
  const parts = partialCharges(lines.filter(({ line }) => line.invoice_id === invoice.id));
  return lines.filter(
    ({ is_partial, line, service }) =>
      !is_partial && filterPartialCharges(parts, line.subscription_line_item_id ?? '', service).length > 0,
  );
}

/**
 * Refuses to void a threshold invoice whose amounts a final invoice has subtracted: its usage would be free. A draft is recomputed instead.
 */
function checkOffsetLinesOpen(lessened: readonly InvoicedLine[]): void {
  const closed = lessened.find(({ invoice_status }) => invoice_status !== 'DRAFT');
  if (closed)
    throw notAllowed('the invoice of its period charges the difference to this one: void that one first', {
      invoice_id: closed.line.invoice_id,
    });
}

/**
 * Refuses to void an invoice that credits unused time or returned prepaid credits. The credit has lowered a debt or is
 * in a wallet already, so the customer would get it twice.
 */
async function checkCreditsNothing(invoice: InvoiceModel, transaction: Transaction): Promise<void> {
  const isReturned = new Decimal(invoice.total_prepaid_credits_applied).isNegative();
  if (invoice.invoice_status === 'FINALIZED' && (isReturned || computeRest(invoice).gt(0)))
    throw notAllowed('this invoice gave something back already: it cannot be voided');
  const [credit] = await InvoiceLineItemModel.in(invoice, transaction)
    .where({ invoice_id: invoice.id, price_type: 'FIXED' })
    .whereNotNull('subscription_line_item_id')
    .where('amount', '<', 0)
    .limit(1);
  if (credit) throw notAllowed('an invoice that credits unused time cannot be voided: change the subscription back');
}

/**
 * Refuses to void the invoice if later invoices have credited some of its usage, because it would be credited twice. An
 * immediate rebilling is allowed: it charges the credited amount again (`listLaterCorrections` in
 * actions/invoicing/billing/gather-billing.ts).
 */
async function checkNothingCorrected(invoice: InvoiceModel, transaction: Transaction): Promise<void> {
  if (invoice.invoice_status === 'DRAFT') return;
  const corrections = await listLineCorrections(invoice, await listLineIds(invoice, transaction), {
    invoice_status: 'FINALIZED',
    database: transaction,
  });
  for (const [line, of] of groupBy(corrections, ({ parent_line_item_id }) => parent_line_item_id))
    if (line !== null && sumDecimals(of.map(({ amount }) => new Decimal(amount))).isNegative())
      throw notAllowed(
        'a later invoice gave back a part of what this one charged: void that one first, or recalculate this one',
        { invoice_id: of.at(-1)!.invoice_id },
      );
}

async function listLineIds(invoice: InvoiceModel, transaction: Transaction): Promise<string[]> {
  const lines = await InvoiceLineItemModel.in(invoice, transaction).where({ invoice_id: invoice.id }).select('id');
  return lines.map(({ id }) => id);
}

type CreditVoidedInput = { readonly changesWithin: readonly InvoiceModel[]; readonly author: Author };

/** Puts payments and used prepaid credits back into wallets, less earlier refunds; an invoice is refunded once. */
async function creditVoided(
  transaction: Transaction,
  invoice: InvoiceModel,
  { changesWithin, author }: CreditVoidedInput,
): Promise<void> {
  const { id, invoice_number } = invoice;
  const { prepaid, rest } = splitRefundable(invoice);
  // The changes that are voided with the invoice have already returned a part of its credits to the lots.
  const returned = sumDecimals(
    changesWithin.map((change) => new Decimal(change.total_prepaid_credits_applied).negated()),
  );
  await returnCredits(transaction, invoice, {
    prepaid: Decimal.max(ZERO, prepaid.minus(returned)),
    rest,
    transaction_reason: 'INVOICE_VOID_REFUND',
    reference_type: 'INVOICE',
    reference_id: id,
    idempotency_key: toOwnKey('void', id),
    description: `Invoice ${invoice_number ?? id} is void`,
    metadata: null,
    author,
  });
}
