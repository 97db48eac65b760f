/**
 * Creates the invoices of a subscription: the draft of an ended period, the opening invoice of advance charges, and the last one of a
 * cancellation. An invoice is created in the transaction that locks the subscription and changes its period, so that after a crash both are
 * stored or neither is. A second worker finds the existing invoice (unique per period and reason).
 */

import { toInstant } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import type { BillingReason, InvoiceWithLines } from '../../../core/invoicing/invoice/record.ts';
import { deriveDraftStatus } from '../../../core/invoicing/invoice/skipped.ts';
import type { ReferencePoint } from '../../../core/rating/charges.ts';
import { duePeriods } from '../../../core/rating/due.ts';
import { buildInvoicePlan, type InvoicePlan } from '../../../core/rating/plan-invoice.ts';
import { deriveAddressee } from '../../../core/subscriptions/addressee.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Database, Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { CouponApplicationModel } from '../../../storage/models/invoicing/coupon-application.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { inSpan } from '../../../tracing/spans.ts';
import { emit } from '../../foundation/emit.ts';
import { type BillableItem, currentPeriod, toBilledSubscription, toScope } from '../../rating/billable-items.ts';
import type { InvoiceSubject } from '../billing/gather-billing.ts';
import type { InvoiceBefore } from '../billing/invoice-group.ts';
import {
  type PlannedInvoice,
  planFinalInvoice,
  planForgivenInvoice,
  planLateInvoice,
  planOpeningInvoice,
  planPeriodInvoice,
  planRecomputedInvoice,
} from '../billing/plan-invoices.ts';
import { loadNextBillingSequence, loadWithLines, toInvoiceParts, toInvoiceRecord } from '../records/invoice-records.ts';
import { finalizeWithin } from './finalize-invoice.ts';

/** Describes a draft. At most one invoice exists for each period and reason. `payer_id`: the invoiced customer. */
type DraftDescription = InvoiceSubject & { readonly reason: BillingReason; readonly payer_id: string };

/**
 * Draft of a period. `planned` is the plan that a cache may reuse at finalization. It is null for an invoice that existed already, and for
 * one with coupons.
 */
type DraftedPeriod = { readonly invoice: InvoiceWithLines; readonly planned: PlannedInvoice | null };

/**
 * Creates the draft of a period that is over, or finds the existing invoice. Null if the draft would have no lines. With `until_complete`,
 * returns 'waiting' and writes nothing while events from before the period's end are in the pipeline. `is_settled`: see `InvoiceBasis`.
 */
export async function draftPeriodInvoice(
  stores: Stores,
  transaction: Transaction,
  { until_complete, is_settled, ...input }: InvoiceSubject & { readonly until_complete: boolean; is_settled: boolean },
): Promise<DraftedPeriod | 'waiting' | null> {
  const { subscription, period, now } = input;
  const description = { ...input, reason: 'SUBSCRIPTION_CYCLE', payer_id: deriveAddressee(subscription) } as const;
  const existing = await findExistingInvoice(description, transaction);
  if (existing) return { invoice: await loadWithLines(existing, transaction), planned: null };
  const planned = await planPeriodInvoice(stores, transaction, { ...input, is_settled });
  if (until_complete && !isComplete(planned, period)) return 'waiting';
  const is_counted = until_complete || isCounted(planned, now);
  const written = await writeDraft(transaction, description, { plan: planned.plan, is_counted });
  // A plan with coupons is not returned for reuse, because every computation applies coupons again.
  return written && { ...written, planned: planned.plan.coupons_applied.length === 0 ? planned : null };
}

type OpeningInput = InvoiceSubject & { readonly reason: 'SUBSCRIPTION_CREATE' | 'SUBSCRIPTION_TRIAL_END' };

function draftOpeningInvoice(stores: Stores, transaction: Transaction, input: OpeningInput) {
  const description = { ...input, payer_id: deriveAddressee(input.subscription) };
  return draftOnce(transaction, description, () => planOpeningInvoice(stores, transaction, input));
}

/**
 * Drafts an invoice of late usage. Returns null also if the late usage costs nothing, because no invoice is expected after the end of the
 * subscription.
 */
export function draftLateInvoice(
  stores: Stores,
  transaction: Transaction,
  input: InvoiceSubject & { readonly payer_id: string },
): Promise<InvoiceWithLines | null> {
  const reason = 'SUBSCRIPTION_CYCLE';
  return draftOnce(transaction, { ...input, reason }, async () => {
    const planned = await planLateInvoice(stores, transaction, input);
    const status = deriveDraftStatus({ invoice_type: 'SUBSCRIPTION', billing_reason: reason }, planned.plan);
    return status === 'SKIPPED' ? null : planned;
  });
}

type RebilledInput = DraftDescription & { readonly reference: ReferencePoint; readonly before: InvoiceBefore };

/** Bills the period of the void invoice `before` again. */
export function draftRebilledInvoice(
  stores: Stores,
  transaction: Transaction,
  input: RebilledInput,
): Promise<InvoiceWithLines | null> {
  return draftOnce(transaction, input, () => planRecomputedInvoice(stores, transaction, input));
}

/** Drafts at most once per description: returns an existing invoice or the new draft. Null if there is no plan or it has no lines. */
async function draftOnce(
  transaction: Transaction,
  description: DraftDescription,
  plan: () => Promise<PlannedInvoice | null>,
): Promise<InvoiceWithLines | null> {
  const existing = await findExistingInvoice(description, transaction);
  if (existing) return loadWithLines(existing, transaction);
  const planned = await plan();
  if (planned === null) return null;
  const is_counted = isCounted(planned, description.now);
  return (await writeDraft(transaction, description, { plan: planned.plan, is_counted }))?.invoice ?? null;
}

type DraftPlan = { readonly plan: InvoicePlan<BillableItem>; readonly is_counted: boolean };

async function writeDraft(
  transaction: Transaction,
  { subscription, period, reason, payer_id, now }: DraftDescription,
  { plan, is_counted }: DraftPlan,
): Promise<{ invoice: InvoiceWithLines } | null> {
  if (plan.lines.length === 0) return null;
  const computed = toInvoiceRecord({ subscription, period, reason, plan }, newId('invoice', now.getTime()), now);
  const made = { ...computed, customer_id: payer_id };
  const record = is_counted ? made : { ...made, invoice_status: 'DRAFT' as const };
  const parts = toInvoiceParts(plan, record, now);
  const write = () => addInvoice(transaction, subscription, { record, ...parts, now });
  const attributes = { invoice_id: record.id, lines: plan.lines.length };
  return { invoice: await inSpan('invoice.write', { attributes }, write) };
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
  }: { record: ReturnType<typeof toInvoiceRecord>; now: Date } & Omit<ReturnType<typeof toInvoiceParts>, 'taxes'>,
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
 * Whether the usage includes every event sent before now. Otherwise an amount of 0 may still grow: the invoice stays a draft and is
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
  { subscription, line_items, now }: Omit<InvoiceSubject, 'period'>,
): Promise<void> {
  if (subscription.subscription_status === 'trialing') return openTrial(transaction, subscription, now);
  const period = currentPeriod(subscription);
  const reason = 'SUBSCRIPTION_CREATE';
  await finalizeOpening(stores, transaction, { subscription, line_items, period, reason, now });
}

/** Drafts and finalizes an opening invoice. It needs no delay for late events, because it has advance charges only. */
export async function finalizeOpening(stores: Stores, transaction: Transaction, input: OpeningInput): Promise<void> {
  const invoice = await draftOpeningInvoice(stores, transaction, input);
  if (invoice?.invoice_status === 'DRAFT') await finalizeDrafted(transaction, invoice, input.now);
}

function finalizeDrafted(transaction: Transaction, { id, ...scope }: InvoiceWithLines, now: Date) {
  return finalizeWithin(transaction, toScope(scope), { invoice_id: id, now });
}

/**
 * Drafts the last invoice of a cancellation: the arrears from the start of the running period to the effective date
 * (docs/rules/invoices.md, "What stands on which invoice"). Called inside the cancelling transaction. The draft becomes final after the
 * usual delay and then includes late events. Earlier periods that the scheduler has not billed yet get their usual invoices.
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
  const last = { subscription, period: { start, end: effective }, now };
  const description = { ...last, reason: 'PRORATION', payer_id: deriveAddressee(subscription) } as const;
  return draftOnce(transaction, description, () => planFinalInvoice(stores, transaction, last));
}

/**
 * Credits usage that progressive billing invoiced in excess, if the subscription ends without an invoice of its arrears
 * (docs/rules/invoices.md, "Before the period is over"). The credit invoice is final at once, because a recomputation would charge the
 * arrears. Returns the open invoices that the credit lowered.
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
): Promise<readonly InvoiceModel[]> {
  const start = currentPeriod(subscription).start;
  const end = toInstant(effective_date);
  if (end < start) return [];
  const last = { subscription, period: { start, end }, now };
  const invoice = await draftOnce(transaction, { ...last, reason: 'PRORATION', payer_id }, () =>
    planForgivenInvoice(stores, transaction, last),
  );
  return invoice?.invoice_status === 'DRAFT' ? (await finalizeDrafted(transaction, invoice, now)).lowered : [];
}

/**
 * Drafts the invoices of unbilled periods that ended by the effective date, and returns the start of the next one. A cancellation can
 * forgive only the arrears of that one.
 */
export async function draftPeriodsBefore(
  stores: Stores,
  transaction: Transaction,
  { subscription, effective_date, now }: { subscription: SubscriptionModel; effective_date: string; now: Date },
): Promise<number> {
  const effective = toInstant(effective_date);
  // Plans with the cancellation date set, so that no advance charge extends beyond it: a manual finalization would use the draft unchanged.
  const ended = Object.assign(subscription.$clone(), { cancel_at: effective_date });
  let start = currentPeriod(subscription).start;
  for (const { closed } of duePeriods(toBilledSubscription(subscription), currentPeriod(subscription), effective)) {
    const over = { subscription: ended, period: closed, now };
    await draftPeriodInvoice(stores, transaction, { ...over, until_complete: false, is_settled: false });
    start = closed.end;
  }
  return start;
}

async function openTrial(transaction: Transaction, subscription: SubscriptionModel, now: Date): Promise<void> {
  const period = currentPeriod(subscription);
  const plan = buildInvoicePlan<BillableItem>([], { currency: subscription.currency });
  const reason = 'SUBSCRIPTION_TRIAL_START';
  const id = newId('invoice', now.getTime());
  const record = toInvoiceRecord({ subscription, period, reason, plan }, id, now);
  const invoice = await InvoiceModel.add(
    toScope(subscription),
    { ...record, billing_sequence: await loadNextBillingSequence(subscription, transaction) },
    { database: transaction, conflict: 'this trial has an invoice already' },
  );
  await emit(transaction, 'invoice.drafted', { record: Object.assign(invoice, { line_items: [] }), by: { now } });
  await finalizeWithin(transaction, toScope(subscription), { invoice_id: id, now });
}

async function findExistingInvoice(
  { subscription, period, reason: billing_reason }: DraftDescription,
  database: Database,
): Promise<InvoiceModel | undefined> {
  const period_start = new Date(period.start).toISOString();
  const period_end = new Date(period.end).toISOString();
  const where = { period_start, period_end, billing_reason, status: 'published' };
  const filter = { column: 'subscription_id', value: subscription.id, where };
  const invoices = await InvoiceModel.listBy(subscription, filter, database);
  return invoices.find(({ invoice_status }) => invoice_status !== 'VOIDED');
}
