/**
 * Bills the period of a subscription's invoice again (docs/rules/invoices.md, "Billing again"): a new draft replaces a void invoice, or a
 * draft is recomputed in place from current usage.
 */
import { alreadyExists, invalid, notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import type { InvoiceWithLines } from '../../../core/invoicing/invoice/record.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { copyInvoiceRates } from '../../catalog/taxes/attach-rates.ts';
import { runBillingTransaction } from '../../foundation/transaction.ts';
import { computeWithin, deriveReference } from '../../invoicing/invoices/compute-invoice.ts';
import { draftRebilledInvoice } from '../../invoicing/invoices/draft-invoice.ts';
import { finalizeWithin } from '../../invoicing/invoices/finalize-invoice.ts';
import { lockInvoice } from '../../invoicing/invoices/lock-invoice.ts';
import { loadInvoiceLines } from '../../invoicing/records/invoice-records.ts';
import { toScope } from '../../rating/billable-items.ts';
import { activateAfterLowered, activateIfNothingDue } from '../effects.ts';
import { voidLocked } from './void-invoice.ts';

type Recalculation = { readonly id: string; readonly finalize: boolean; readonly author: Author };

/** Recalculates an invoice. If it is not void yet, it is voided first. */
export async function recalculateInvoice(
  stores: Stores,
  scope: Scope,
  { id, finalize, author }: Recalculation,
): Promise<InvoiceWithLines> {
  return runBillingTransaction(stores, async (transaction) => {
    const locked = await lockInvoice(transaction, scope, id);
    const { subscription, billed } = deriveRebilling(locked.invoice, locked.subscription);
    const before = { invoice: locked.invoice, line_items: await loadInvoiceLines(locked.invoice, transaction) };
    const { voided, lowered } =
      locked.invoice.invoice_status === 'VOIDED'
        ? { voided: locked.invoice, lowered: [] }
        : await voidLocked(stores, transaction, { ...locked, metadata: null, author });
    await checkNotBilled(voided, transaction);
    const rebilled = { subscription, ...billed, before, now: author.now };
    const draft = await draftRebilledInvoice(stores, transaction, rebilled);
    if (draft === null) throw notAllowed('there is nothing to bill in the period of this invoice');
    const entity = { entity_type: 'invoice', entity_id: draft.id } as const;
    const attaching = { scope, transaction, author, entity, start_date: author.now.toISOString() };
    await copyInvoiceRates(voided.id, attaching);
    const by = { by: author, database: transaction };
    await InvoiceModel.change(voided, { recalculated_invoice_id: draft.id }, by);
    return finalizeIfRequested(stores, transaction, { draft, finalize, lowered, author });
  });
}

/** Derives how to bill the period again. Throws for a manual invoice, or one whose charges cannot be derived from a period. */
function deriveRebilling(invoice: InvoiceModel, subscription: SubscriptionModel | null) {
  const { invoice_type, billing_reason, period_start, period_end, recalculated_invoice_id } = invoice;
  if (recalculated_invoice_id)
    throw notAllowed(`the period of this invoice is billed again by ${recalculated_invoice_id}: recalculate that one`, {
      recalculated_invoice_id,
    });
  if (invoice_type !== 'SUBSCRIPTION' || !subscription || !period_start || !period_end)
    throw invalid('id', 'names no invoice of a period of a subscription');
  const period = { start: toInstant(period_start), end: toInstant(period_end) };
  const reference = deriveReference(invoice, period, subscription);
  if (reference === undefined)
    throw invalid('id', `names an invoice of ${billing_reason}, which follows from no period`);
  return { subscription, billed: { period, reference, reason: billing_reason, payer_id: invoice.customer_id } };
}

/** Throws if another invoice, such as a manual one, already bills this period for the same reason. */
async function checkNotBilled(voided: InvoiceModel, transaction: Transaction): Promise<void> {
  const { subscription_id, period_start, period_end, billing_reason } = voided;
  const [other] = await InvoiceModel.in(voided, transaction)
    .where({ subscription_id, period_start, period_end, billing_reason, status: 'published' } as never)
    .whereNot('invoice_status', 'VOIDED')
    .limit(1);
  if (other) throw alreadyExists('the period of this invoice is billed by another one', { invoice_id: other.id });
}

/** Recomputes a draft in place from current usage, even if it was edited. */
export async function recalculateDraft(
  stores: Stores,
  scope: Scope,
  { id, finalize, author }: Recalculation,
): Promise<InvoiceWithLines> {
  return runBillingTransaction(stores, async (transaction) => {
    const { invoice } = await lockInvoice(transaction, scope, id);
    const { invoice_type, invoice_status, period_start, period_end } = invoice;
    if (invoice_type !== 'SUBSCRIPTION' || !period_start || !period_end)
      throw invalid('id', 'names no invoice of a period of a subscription');
    if (invoice_status !== 'DRAFT')
      throw notAllowed(`an invoice that is ${invoice_status} cannot be recalculated in its place`, { id });
    const input = { scope, invoice_id: id, now: author.now, recompute: true };
    const { invoice: draft } = await computeWithin(stores, transaction, input);
    return finalizeIfRequested(stores, transaction, { draft, finalize, lowered: [], author });
  });
}

type RequestedFinalization = {
  readonly draft: InvoiceWithLines;
  readonly finalize: boolean;
  /**
   * Open invoices that credits lowered when the replaced invoice was voided. Their effects are applied only after the new invoice is
   * written.
   */
  readonly lowered: readonly InvoiceModel[];
  readonly author: Author;
};

/** Finalizes the invoice if requested. An invoice of 0 is skipped and never final. */
async function finalizeIfRequested(
  stores: Stores,
  transaction: Transaction,
  { draft, finalize, lowered, author }: RequestedFinalization,
): Promise<InvoiceWithLines> {
  const input = { invoice_id: draft.id, now: author.now };
  const isFinal = finalize && draft.invoice_status === 'DRAFT';
  const made = isFinal ? await finalizeWithin(transaction, toScope(draft), input) : { invoice: draft, lowered: [] };
  await activateAfterLowered(stores, transaction, { lowered: [...lowered, ...made.lowered], by: author });
  await activateIfNothingDue(stores, transaction, { scope: toScope(draft), invoice_id: draft.id, by: author });
  return made.invoice;
}
