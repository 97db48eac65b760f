/**
 * Makes a draft final with its computed amounts, an invoice number and a due date; its lines never change afterwards. Numbers have no
 * gaps (docs/rules/invoices.md, "Numbers"), because the finalizing transaction takes them: the counter's row is locked until the
 * transaction ends, and a rollback returns the number.
 *
 * This module does not recompute the draft. The scheduler recomputes it just before it finalizes (finalize-due-invoices.ts). A manual
 * finalization uses the draft unchanged, and later events go to the next invoice (docs/rules/invoices.md, "Late events").
 */
import { type FarthingError, notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import type { InvoiceWithLines } from '../../../core/invoicing/invoice/record.ts';
import { mapBatched } from '../../../storage/concurrency/batched.ts';
import type { Database, Transaction } from '../../../storage/foundation/stores.ts';
import { type FinalizationTerms, loadFinalizationTerms } from '../../../storage/models/invoicing/finalization-terms.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { isTaxing } from '../../catalog/taxes/rates-in-force.ts';
import {
  debitPrepaid,
  listPayingWallets,
  lockPrepaidWallets,
  type PayingWallet,
} from '../../credits/wallets/prepaid-wallets.ts';
import { applyFinalAdjustments, isTaxedOrCredited } from '../billing/tax-final.ts';
import { takeNextNumbers } from '../documents/next-numbers.ts';
import { loadInvoiceLines } from '../records/invoice-records.ts';
import { creditRest } from './credit-rest.ts';
import { returnCredits } from './return-credits.ts';
import { type ReadyDraft, writeFinal } from './write-final.ts';

/** Final invoice. `lowered` are other open invoices of the customer, from which a negative amount of this invoice was deducted. */
type FinalizedInvoice = { readonly invoice: InvoiceWithLines; readonly lowered: readonly InvoiceModel[] };

/** Finalizes the invoice in the transaction of the caller. */
export async function finalizeWithin(
  transaction: Transaction,
  scope: Scope,
  { invoice_id, ...how }: { invoice_id: string } & Omit<FinalizeReadyInput, 'ready'>,
): Promise<FinalizedInvoice> {
  const ready = [await loadReady(transaction, scope, invoice_id)];
  const { invoices, lowered } = await finalizeReady(transaction, scope, { ready, ...how });
  return { invoice: invoices[0]!, lowered };
}

type FinalizedInvoices = { readonly invoices: InvoiceWithLines[]; readonly lowered: readonly InvoiceModel[] };

type FinalizeReadyInput = {
  readonly ready: readonly ReadyDraft[];
  readonly now: Date;
  /** Terms that the caller has read. */
  readonly terms?: FinalizationTerms | undefined;
};

/** Finalizes all drafts or none. Invoice numbers follow the order of `ready`. */
export async function finalizeReady(
  transaction: Transaction,
  scope: Scope,
  { ready, now, terms: known }: FinalizeReadyInput,
): Promise<FinalizedInvoices> {
  if (ready.length === 0) return { invoices: [], lowered: [] };
  for (const one of ready) checkFinalizable(one, now);
  const { config, is_seller_unknown } = known ?? (await loadFinalizationTerms(scope, transaction));
  if (is_seller_unknown) throw buildSellerError();
  const taxed = await applyAdjustmentsToAll(transaction, scope, { ready, now });
  const lowered: InvoiceModel[] = [];
  // The invoices are processed one after another, because two of them may share a wallet.
  for (const one of taxed) {
    const { line_items } = one;
    await returnCredits(transaction, { ...one.invoice, ...one.changes }, { line_items, author: { user_id: '', now } });
    lowered.push(...(await creditRest(transaction, one, now)));
  }
  // The numbers are taken last, because their counter stays locked until the commit.
  const numbers = await takeNextNumbers(transaction, scope, { series: 'invoice', config, count: ready.length, now });
  const numbered = taxed.map((one, index) => ({ ...one, invoice_number: numbers[index]! }));
  const invoices = await writeFinal(transaction, scope, { numbered, due_date_days: config.due_date_days, now });
  return { invoices, lowered };
}

async function loadReady(transaction: Transaction, scope: Scope, id: string): Promise<ReadyDraft> {
  const invoice = await InvoiceModel.fetch(scope, id, { database: transaction, lock: true });
  const [line_items, subscription] = [
    await loadInvoiceLines(invoice, transaction),
    await loadSubscription(invoice, transaction),
  ];
  return { invoice, line_items, subscription };
}

/**
 * Applies the adjustments. Invoices are processed in batches, except those that prepaid credits pay: each of these needs the balance that
 * the previous invoice left in the wallet.
 */
async function applyAdjustmentsToAll(
  transaction: Transaction,
  scope: Scope,
  { ready, now }: { ready: readonly ReadyDraft[]; now: Date },
): Promise<ReadyDraft[]> {
  const lockedWallets = await lockPrepaidWallets(
    transaction,
    scope,
    ready.map(({ invoice }) => invoice),
  );
  const payers = new Set(lockedWallets.map(({ customer_id }) => customer_id));
  const isPaid = ({ invoice }: ReadyDraft) => payers.has(invoice.customer_id);
  const settled = new Map<ReadyDraft, ReadyDraft>();
  // In a large batch a single query finds out whether any tax rate exists, before rates are queried per invoice.
  const taxing = ready.length === 1 || (await isTaxing(transaction, scope));
  const asks = (one: ReadyDraft) => taxing || one.line_items.some(isTaxedOrCredited);
  const alone = ready.filter((one) => !isPaid(one) && asks(one));
  const made = await mapBatched(transaction, alone, (one) => applyAdjustments(transaction, one, { now }));
  for (const one of ready) if (!isPaid(one) && !asks(one)) settled.set(one, one);
  for (const [index, one] of alone.entries()) settled.set(one, made[index]!);
  for (const one of ready.filter(isPaid)) {
    const wallets = await listPayingWallets(
      transaction,
      { ...one.invoice, ...one.changes },
      { locked: lockedWallets, now },
    );
    settled.set(one, await applyAdjustments(transaction, one, { wallets, now }));
  }
  return ready.map((one) => settled.get(one)!);
}

/** Applies credits and taxes at finalization. */
async function applyAdjustments(
  transaction: Transaction,
  { changes, ...draft }: ReadyDraft,
  { wallets = [], now }: { wallets?: readonly PayingWallet[]; now: Date },
): Promise<ReadyDraft> {
  const author = { user_id: '', now };
  const prepaid = wallets.map((one) => one.prepaid);
  const taxed = await applyFinalAdjustments(transaction, { ...draft, prepaid }, author);
  await debitPrepaid(transaction, draft.invoice, { wallets, author, ...taxed });
  return { ...draft, line_items: taxed.line_items, changes: { ...changes, ...taxed.changes } };
}

/** Error of an invoice that would name no seller (docs/rules/documents.md, "The seller"). */
function buildSellerError(): FarthingError {
  return notAllowed(
    'the seller has no name: set it with PUT /tenants/update (name, billing_details), or `company` of the setting invoice_pdf_config, before an invoice of a production environment becomes final',
  );
}

function checkFinalizable({ invoice, changes }: ReadyDraft, now: Date): void {
  const last_computed_at = changes?.last_computed_at ?? invoice.last_computed_at;
  if (invoice.invoice_status !== 'DRAFT')
    throw notAllowed(`an invoice that is ${invoice.invoice_status} cannot be finalized`, { id: invoice.id });
  if (invoice.invoice_type !== 'SUBSCRIPTION') return;
  if (!last_computed_at) throw notAllowed('a draft that was never computed cannot be finalized');
  // An invoice that was computed before the end of its period would lack usage (docs/rules/invoices.md, "From draft to final").
  if (invoice.billing_reason !== 'SUBSCRIPTION_CYCLE' || !invoice.period_end) return;
  // A manually edited invoice is not computed again, so only the end of its period must be reached.
  if (invoice.is_manually_edited && toInstant(invoice.period_end) <= now.getTime()) return;
  if (toInstant(last_computed_at) < toInstant(invoice.period_end))
    throw notAllowed('this invoice was computed before its period ended', {
      last_computed_at,
      period_end: invoice.period_end,
    });
}

async function loadSubscription(invoice: InvoiceModel, database: Database): Promise<SubscriptionModel | null> {
  if (!invoice.subscription_id) return null;
  return SubscriptionModel.fetch(invoice, invoice.subscription_id, { database });
}
