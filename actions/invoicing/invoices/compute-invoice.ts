/**
 * Recomputes an invoice from current usage; it may be repeated while the invoice is not final. An invoice of 0 is skipped and may be
 * computed again later (docs/rules/invoices.md, "Nothing to pay").
 */

import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import type { BillingReason, InvoiceLineItem, InvoiceWithLines } from '../../../core/invoicing/invoice/record.ts';
import { isSameInvoice } from '../../../core/invoicing/invoice/same-lines.ts';
import { deriveReferencePoint } from '../../../core/rating/after-end.ts';
import type { ReferencePoint } from '../../../core/rating/charges.ts';
import type { Database, Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { CouponApplicationModel, deleteApplications } from '../../../storage/models/invoicing/coupon-application.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { deleteInvoiceLines, InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { inSpan } from '../../../tracing/spans.ts';
import { emit, wasEmitted } from '../../foundation/emit.ts';
import { runBillingTransaction } from '../../foundation/transaction.ts';
import { toBilledSubscription } from '../../rating/billable-items.ts';
import { returnRedemptions } from '../../rating/coupons/redeem.ts';
import type { IsPlanCurrent } from '../billing/clock-advance-plan-cache.ts';
import { type PlannedInvoice, planRecomputedInvoice } from '../billing/plan-invoices.ts';
import { loadInvoiceLines, loadWithLines, toComputedFields, toInvoiceParts } from '../records/invoice-records.ts';
import { isComplete, isCounted } from './draft-invoice.ts';
import { type LockedInvoice, lockInvoice, lockInvoiceAndSubscription } from './lock-invoice.ts';
import type { ReadyDraft } from './write-final.ts';

export type Computation = {
  invoice: InvoiceWithLines;
  skipped: boolean;
  /** Whether the usage included every event from before the period's end. */
  complete: boolean;
};

export async function computeInvoice(
  stores: Stores,
  scope: Scope,
  invoice_id: string,
  now: Date,
): Promise<Computation> {
  return runBillingTransaction(stores, (transaction) => computeWithin(stores, transaction, { scope, invoice_id, now }));
}

/** Request to compute an invoice. A manually edited invoice retains its lines, unless `recompute` is set. */
type ComputeInvoiceInput = {
  readonly scope: Scope;
  readonly invoice_id: string;
  readonly now: Date;
  readonly recompute?: boolean;
};

/** Computes the invoice in the transaction of the caller. */
export async function computeWithin(
  stores: Stores,
  transaction: Transaction,
  input: ComputeInvoiceInput,
): Promise<Computation> {
  const { scope, invoice_id, now, recompute = false } = input;
  const locked = await loadWithItsLines(transaction, await lockInvoice(transaction, scope, invoice_id));
  if (!isComputed(locked, recompute)) return keepLines(locked, transaction, now);
  const planned = await planRecomputation(stores, transaction, locked, now);
  const isLast = isCounted(planned, now);
  const { invoice, line_items } = await write(transaction, { invoice: locked.invoice, planned, isLast, now });
  return {
    invoice: Object.assign(invoice, { line_items }),
    skipped: invoice.invoice_status === 'SKIPPED',
    complete: isComplete(planned, toPeriod(invoice)),
  };
}

type ComputeLastInput = ComputeInvoiceInput & {
  readonly subscription_id: string | null;
  /** Returns true if a new plan would equal the stored draft. */
  readonly isPlanCurrent?: IsPlanCurrent | undefined;
};

/**
 * Computes a draft before this transaction makes it final. An unchanged draft is not rewritten, so that no update event precedes the
 * finalization. Returns `waiting` and writes nothing while events from before the period's end are in the pipeline.
 */
export async function computeLast(
  stores: Stores,
  transaction: Transaction,
  { scope, invoice_id, subscription_id, now, isPlanCurrent }: ComputeLastInput,
): Promise<ReadyDraft | 'skipped' | 'waiting'> {
  const holding = lockInvoiceAndSubscription(transaction, scope, { id: invoice_id, subscription_id });
  const locked = await loadWithItsLines(transaction, await holding);
  const { invoice, line_items, subscription } = locked;
  const asItWas = { invoice, line_items, subscription, changes: { last_computed_at: now.toISOString() } };
  const isAsPlanned = await isPlanCurrent?.(locked);
  if (!isComputed(locked) || isAsPlanned) return asItWas;
  const planned = await planRecomputation(stores, transaction, locked, now);
  if (!isComplete(planned, toPeriod(invoice))) return 'waiting';
  const { plan } = planned;
  const { lines, coupon_applications } = toInvoiceParts(plan, invoice, now);
  // Coupons with equal discounts differ only in the coupon applications, so a draft with applications is always rewritten.
  const isPlain = coupon_applications.length === 0;
  if (isPlain && isSameInvoice(locked, { fields: toComputedFields(plan, invoice, now), lines })) return asItWas;
  const written = await write(transaction, { invoice, planned, isLast: true, now });
  return written.invoice.invoice_status === 'SKIPPED' ? 'skipped' : { ...written, subscription };
}

type InvoiceToCompute = LockedInvoice & { readonly line_items: readonly InvoiceLineItem[] };

async function loadWithItsLines(transaction: Transaction, locked: LockedInvoice): Promise<InvoiceToCompute> {
  checkComputable(locked.invoice);
  return { ...locked, line_items: await loadInvoiceLines(locked.invoice, transaction) };
}

/** Refuses to compute an invoice that is final; it must be a draft or a skipped one (docs/rules/invoices.md, "From draft to final"). */
export function checkComputable({ id, invoice_status }: InvoiceModel): void {
  if (invoice_status !== 'DRAFT' && invoice_status !== 'SKIPPED')
    throw notAllowed(`an invoice that is ${invoice_status} cannot be computed`, { id });
}

/**
 * Returns the reference point that decides which charges of the subscription are due on the invoice (`planDueCharges`). Undefined if the
 * billing reason means that the creator of the invoice supplied its lines.
 */
export function deriveReference(
  { billing_reason }: Pick<InvoiceModel, 'billing_reason'>,
  period: Period,
  subscription: SubscriptionModel,
): ReferencePoint | undefined {
  const reference = REFERENCE_BY_REASON[billing_reason];
  return reference && deriveReferencePoint(reference, period, toBilledSubscription(subscription));
}

/** Reasons whose lines are derived from the subscription. For any other reason, the creator of the invoice supplied the lines. */
const REFERENCE_BY_REASON: Partial<Record<BillingReason, ReferencePoint>> = {
  SUBSCRIPTION_CREATE: 'period_start',
  SUBSCRIPTION_TRIAL_END: 'period_start',
  SUBSCRIPTION_CYCLE: 'period_end',
  PRORATION: 'cancel',
};

export function isDerivedFromSubscription({ billing_reason }: Pick<InvoiceModel, 'billing_reason'>): boolean {
  return REFERENCE_BY_REASON[billing_reason] !== undefined;
}

/** Plans an open draft as it would be computed now, without writing; null if its lines are not computed. */
export async function planDraft(
  stores: Stores,
  database: Database,
  { invoice, subscription, now }: LockedInvoice & { readonly now: Date },
): Promise<PlannedInvoice | null> {
  const read = { invoice, subscription, line_items: await loadInvoiceLines(invoice, database) };
  return isComputed(read) ? planRecomputation(stores, database, read, now) : null;
}

type SubscriptionInvoice = InvoiceToCompute & { readonly subscription: SubscriptionModel };

/**
 * Whether the service may replace the lines of the invoice. Lines that a client supplied refer to no line item of the subscription and must
 * remain.
 */
function isComputed(locked: InvoiceToCompute, recompute = false): locked is SubscriptionInvoice {
  const { invoice, line_items, subscription } = locked;
  if (subscription === null || !isDerivedFromSubscription(invoice)) return false;
  // An edited invoice is computed only on request, and only if it still contains computed lines.
  if (invoice.is_manually_edited) return recompute && line_items.some(({ computed_from }) => computed_from);
  return line_items.every((line) => line.subscription_line_item_id || line.computed_from);
}

function toPeriod({ period_start, period_end }: InvoiceModel): Period {
  return { start: toInstant(period_start ?? ''), end: toInstant(period_end ?? '') };
}

function planRecomputation(
  stores: Stores,
  database: Database,
  locked: SubscriptionInvoice,
  now: Date,
): Promise<PlannedInvoice> {
  const { invoice, subscription } = locked;
  const period = toPeriod(invoice);
  const reference = deriveReference(invoice, period, subscription)!;
  return planRecomputedInvoice(stores, database, { subscription, period, reference, before: locked, now });
}

type WrittenComputation = { readonly invoice: InvoiceModel; readonly line_items: InvoiceLineItemModel[] };

/** `isLast`: all accepted events are counted, so an invoice of 0 may be skipped; otherwise it stays a draft. */
type ComputationWriting = { readonly planned: PlannedInvoice; readonly isLast: boolean; readonly now: Date };

function write(
  transaction: Transaction,
  { invoice, ...how }: { invoice: InvoiceModel } & ComputationWriting,
): Promise<WrittenComputation> {
  const attributes = { invoice_id: invoice.id, lines: how.planned.plan.lines.length };
  return inSpan('invoice.write', { attributes }, () => writePlan(transaction, { invoice, ...how }));
}

async function writePlan(
  transaction: Transaction,
  { invoice, planned, isLast, now }: { invoice: InvoiceModel } & ComputationWriting,
): Promise<WrittenComputation> {
  if (invoice.is_manually_edited) await returnRedemptions(invoice, { transaction, author: { user_id: '', now } });
  await deleteInvoiceLines(invoice, invoice.id, transaction);
  await deleteApplications(invoice, invoice.id, transaction);
  const fields = { ...toComputedFields(planned.plan, invoice, now), is_manually_edited: false };
  const changes = isLast ? fields : { ...fields, invoice_status: 'DRAFT' as const };
  const computed = await InvoiceModel.change(invoice, changes, { by: { now }, database: transaction });
  const { lines, coupon_applications } = toInvoiceParts(planned.plan, computed, now);
  const line_items = await InvoiceLineItemModel.addAll(invoice, lines, { database: transaction });
  await CouponApplicationModel.addAll(invoice, coupon_applications, { database: transaction });
  const name = await findEventName({ before: invoice, computed }, transaction);
  const record = { ...computed, line_items };
  await emit(transaction, name, { record, by: { now } });
  return { invoice: computed, line_items };
}

/** Returns `invoice.drafted` for a skipped invoice that becomes a draft for the first time, otherwise `invoice.update`. */
async function findEventName(
  { before, computed }: { before: InvoiceModel; computed: InvoiceModel },
  transaction: Transaction,
): Promise<'invoice.drafted' | 'invoice.update'> {
  if (before.invoice_status !== 'SKIPPED' || computed.invoice_status !== 'DRAFT') return 'invoice.update';
  return (await wasEmitted(transaction, 'invoice.drafted', before)) ? 'invoice.update' : 'invoice.drafted';
}

async function keepLines({ invoice }: InvoiceToCompute, transaction: Transaction, now: Date): Promise<Computation> {
  const touched = { last_computed_at: now.toISOString() };
  const computed = await InvoiceModel.change(invoice, touched, { by: { now }, database: transaction });
  const skipped = computed.invoice_status === 'SKIPPED';
  return { invoice: await loadWithLines(computed, transaction), skipped, complete: true };
}
