/**
 * Creates the invoices of a subscription: the draft of an ended period, the opening invoice of advance charges, and the last one of a
 * cancellation. Each runs in the transaction that locks the subscription and moves it on, so that a crash leaves both or neither. A second
 * worker finds the existing invoice (unique per period and reason).
 */

import { toInstant } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import type { BillingReason, InvoiceWithLines } from '../../../core/invoicing/invoice/record.ts';
import type { ReferencePoint } from '../../../core/rating/charges.ts';
import { duePeriods } from '../../../core/rating/due.ts';
import { buildInvoicePlan } from '../../../core/rating/plan-invoice.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Database, Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { CouponApplicationModel } from '../../../storage/models/invoicing/coupon-application.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { inSpan } from '../../../tracing/spans.ts';
import { emit } from '../../foundation/emit.ts';
import { type BillableItem, billedSubscription, currentPeriod, toScope } from '../../rating/billable-items.ts';
import { type PlannedInvoice, planFromStores } from '../billing/gather-billing.ts';
import type { InvoiceBefore } from '../billing/invoice-group.ts';
import { invoiceParts, invoiceRecord, loadNextBillingSequence, loadWithLines } from '../records/invoice-records.ts';
import { finalizeWithin } from './finalize-invoice.ts';

export type DraftRequest = {
  readonly subscription: SubscriptionModel;
  readonly period: Period;
  readonly reference: ReferencePoint;
  readonly reason: BillingReason;
  /** The invoiced customer, if it is not the subscription's own payer. */
  readonly payer_id?: string;
  /** The void invoice that this one replaces; it includes the same subscriptions. */
  readonly before?: InvoiceBefore;
  /** Receives a draft that results from the plan alone. */
  readonly onPlanned?: (invoice: InvoiceWithLines, planned: PlannedInvoice) => void;
  readonly is_settled?: boolean;
  /** The invoice charges nothing; it only credits amounts that were overbilled before. */
  readonly forgives_charges?: boolean;
};

/**
 * The draft of the period, an existing invoice, or null if it would have no lines. With `untilComplete`, returns 'waiting' and writes
 * nothing while events from before the period's end are in the pipeline.
 */
export async function draftInvoice(
  stores: Stores,
  transaction: Transaction,
  request: DraftRequest & { readonly now: Date; readonly untilComplete?: boolean },
): Promise<InvoiceWithLines | 'waiting' | null> {
  const { subscription, period, reason, now } = request;
  const existing = await findExistingInvoice(request, transaction);
  if (existing) return loadWithLines(existing, transaction);

  const planned = await planFromStores(stores, transaction, request);
  if (request.untilComplete && !isComplete(planned, period)) return 'waiting';
  const { plan } = planned;
  if (plan.lines.length === 0) return null;

  const computed = invoiceRecord({ subscription, period, reason, plan }, newId('invoice', now.getTime()), now);
  // No invoice is expected after the end.
  if (request.reference === 'late' && computed.invoice_status === 'SKIPPED') return null;
  const made = { ...computed, customer_id: request.payer_id ?? computed.customer_id };
  const record =
    request.untilComplete || isCounted(planned, now) ? made : { ...made, invoice_status: 'DRAFT' as const };
  const parts = invoiceParts(plan, record, now);
  const write = () => addInvoice(transaction, subscription, { record, ...parts, now });
  const drafted = await inSpan(
    'invoice.write',
    { attributes: { invoice_id: record.id, lines: plan.lines.length } },
    write,
  );
  // A draft with coupons is not reported, because every computation applies them again.
  if (parts.coupon_applications.length === 0) request.onPlanned?.(drafted, planned);
  return drafted;
}

/** Stores a planned invoice with the next number of the subscription's own sequence. */
export async function addInvoice(
  transaction: Transaction,
  subscription: SubscriptionModel,
  {
    record,
    lines,
    coupon_applications,
    now,
  }: { record: ReturnType<typeof invoiceRecord>; now: Date } & Omit<ReturnType<typeof invoiceParts>, 'taxes'>,
): Promise<InvoiceWithLines> {
  const invoice = await InvoiceModel.add(
    toScope(subscription),
    { ...record, billing_sequence: await loadNextBillingSequence(subscription, transaction) },
    { database: transaction, conflict: 'this period of the subscription has an invoice already' },
  );
  const line_items = await InvoiceLineItemModel.addAll(subscription, lines, { database: transaction });
  await CouponApplicationModel.addAll(subscription, coupon_applications, { database: transaction });
  const drafted = Object.assign(invoice, { line_items });
  // A skipped invoice is not a draft.
  if (invoice.invoice_status === 'DRAFT') await emit(transaction, 'invoice.drafted', { record: drafted, by: { now } });
  return drafted;
}

/** Whether the usage includes every event sent before the period's end. */
export function isComplete(planned: PlannedInvoice, period: Period): boolean {
  return planned.usage_as_of_ms === null || planned.usage_as_of_ms >= period.end;
}

/**
 * Whether the usage includes every event sent before now. Otherwise an amount of 0 may still grow: the invoice rests as a draft and is
 * computed again (docs/rules/invoices.md, "Nothing to pay").
 */
export function isCounted(planned: PlannedInvoice, now: Date): boolean {
  return planned.usage_as_of_ms === null || planned.usage_as_of_ms >= now.getTime();
}

/**
 * Creates the opening invoice: the advance charges of the first period, due at once because no event can change them
 * (docs/rules/subscriptions.md, "The opening"). A trial opens with an invoice of 0, which counts as paid.
 */
export async function openSubscription(
  stores: Stores,
  transaction: Transaction,
  subscription: SubscriptionModel,
  now: Date,
): Promise<void> {
  if (subscription.subscription_status === 'trialing') return openTrial(transaction, subscription, now);
  const period = currentPeriod(subscription);
  await draftAndFinalize(stores, transaction, {
    subscription,
    period,
    reference: 'period_start',
    reason: 'SUBSCRIPTION_CREATE',
    now,
  });
}

/** An invoice of advance charges alone needs no rest between draft and final. */
export async function draftAndFinalize(
  stores: Stores,
  transaction: Transaction,
  request: DraftRequest & { readonly now: Date },
): Promise<void> {
  const invoice = await draftInvoice(stores, transaction, request);
  if (invoice === null || invoice === 'waiting' || invoice.invoice_status !== 'DRAFT') return;
  await finalizeWithin(transaction, toScope(request.subscription), { invoice_id: invoice.id, now: request.now });
}

/**
 * Drafts the last invoice of a cancellation: the arrears from the start of the running period to the effective date
 * (docs/rules/invoices.md, "What stands on which invoice"). Called inside the cancelling transaction. The draft rests like any other and
 * includes late events when it becomes final. Earlier periods that the scheduler has not billed yet get their usual invoices.
 */
export async function draftFinalInvoice(
  stores: Stores,
  transaction: Transaction,
  request: { subscription: SubscriptionModel; effective_date: string; now: Date },
): Promise<InvoiceWithLines | null> {
  const { subscription, now } = request;
  const effective = toInstant(request.effective_date);
  const start = await draftPeriodsBefore(stores, transaction, request);
  // If the end equals the period start, the invoice is still drafted: it may contain a credit that no later invoice could use.
  if (effective < start) return null;
  const period = { start, end: effective };
  const invoice = await draftInvoice(stores, transaction, { subscription, period, ...CANCELLATION, now });
  return invoice === 'waiting' ? null : invoice;
}

const CANCELLATION = { reference: 'cancel', reason: 'PRORATION' } as const;

/**
 * A subscription that ends without an invoice of its arrears still credits overbilled usage (docs/rules/invoices.md, "Before the period is
 * over"). The invoice is final at once, because a recomputation would charge the arrears.
 */
export async function creditOverbilled(
  stores: Stores,
  transaction: Transaction,
  {
    subscription,
    effective_date,
    payer_id,
    now,
  }: { subscription: SubscriptionModel; payer_id: string } & {
    effective_date: string;
    now: Date;
  },
): Promise<void> {
  const start = currentPeriod(subscription).start;
  const end = toInstant(effective_date);
  if (end < start) return;
  const last = { subscription, period: { start, end }, ...CANCELLATION, payer_id, forgives_charges: true };
  await draftAndFinalize(stores, transaction, { ...last, now });
}

/**
 * Drafts the invoices of earlier periods that are over, and returns the start of the running one. A cancellation cannot forgive these
 * periods.
 */
export async function draftPeriodsBefore(
  stores: Stores,
  transaction: Transaction,
  { subscription, effective_date, now }: { subscription: SubscriptionModel; effective_date: string; now: Date },
): Promise<number> {
  const effective = toInstant(effective_date);
  // No advance charge extends beyond the end, because a manual finalization uses the draft unchanged.
  const ended = Object.assign(subscription.$clone(), { cancel_at: effective_date });
  let start = currentPeriod(subscription).start;
  for (const { closed } of duePeriods(billedSubscription(subscription), currentPeriod(subscription), effective)) {
    const cycle = { reference: 'period_end', reason: 'SUBSCRIPTION_CYCLE' } as const;
    await draftInvoice(stores, transaction, { subscription: ended, period: closed, ...cycle, now });
    start = closed.end;
  }
  return start;
}

async function openTrial(transaction: Transaction, subscription: SubscriptionModel, now: Date): Promise<void> {
  const period = currentPeriod(subscription);
  const plan = buildInvoicePlan<BillableItem>([], { currency: subscription.currency });
  const reason = 'SUBSCRIPTION_TRIAL_START';
  const id = newId('invoice', now.getTime());
  const record = invoiceRecord({ subscription, period, reason, plan }, id, now);
  const invoice = await InvoiceModel.add(
    toScope(subscription),
    { ...record, billing_sequence: await loadNextBillingSequence(subscription, transaction) },
    { database: transaction, conflict: 'this trial has an invoice already' },
  );
  await emit(transaction, 'invoice.drafted', { record: Object.assign(invoice, { line_items: [] }), by: { now } });
  await finalizeWithin(transaction, toScope(subscription), { invoice_id: id, now });
}

async function findExistingInvoice(request: DraftRequest, database: Database): Promise<InvoiceModel | undefined> {
  const { subscription, period, reason: billing_reason } = request;
  const period_start = new Date(period.start).toISOString();
  const period_end = new Date(period.end).toISOString();
  const where = { period_start, period_end, billing_reason, status: 'published' };
  const filter = { column: 'subscription_id', value: subscription.id, where };
  const invoices = await InvoiceModel.listBy(subscription, filter, database);
  return invoices.find(({ invoice_status }) => invoice_status !== 'VOIDED');
}
