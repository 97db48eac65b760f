/**
 * Makes a subscription's invoices: the draft of a period that has ended, the opening invoice of advance charges, the last
 * one of a cancellation. Each runs inside the transaction that holds the lock on the subscription and moves it on, so
 * that a crash leaves both or neither; a second worker finds the invoice that is there (unique per period and reason).
 */
import type { ReferencePoint } from '../../core/billing/charges.ts';
import { duePeriods } from '../../core/billing/due.ts';
import { buildInvoicePlan } from '../../core/billing/plan-invoice.ts';
import type { BillingReason, InvoiceWithLines } from '../../core/invoice/record.ts';
import { toInstant } from '../../core/time/instant.ts';
import type { Period } from '../../core/time/period.ts';
import { CouponApplicationModel } from '../../storage/models/coupon-application.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import { InvoiceLineItemModel } from '../../storage/models/invoice-line-item.ts';
import type { SubscriptionModel } from '../../storage/models/subscription.ts';
import { newId } from '../../storage/new-id.ts';
import type { Database, Stores, Transaction } from '../../storage/stores.ts';
import { inSpan } from '../../tracing/spans.ts';
import { type BillableItem, billedSubscription, currentPeriod, toScope } from '../billing/billable-items.ts';
import { type PlannedInvoice, planFromStores } from '../billing/gather-billing.ts';
import type { InvoiceBefore } from '../billing/invoice-group.ts';
import { invoiceParts, invoiceRecord, loadNextBillingSequence, loadWithLines } from '../billing/invoice-records.ts';
import { emit } from '../system-events/emit.ts';
import { finalizeWithin } from './finalize-invoice.ts';

export type DraftRequest = {
  readonly subscription: SubscriptionModel;
  readonly period: Period;
  readonly reference: ReferencePoint;
  readonly reason: BillingReason;
  /** Who is invoiced, where it is not who pays for the subscription by itself. */
  readonly payer_id?: string;
  /** The void invoice in whose place this one comes: it has everybody who was on that. */
  readonly before?: InvoiceBefore;
  /** Hears of a draft that says what was planned and nothing else. */
  readonly onPlanned?: (invoice: InvoiceWithLines, planned: PlannedInvoice) => void;
  readonly is_settled?: boolean;
  /** Nothing is charged: it only gives back what was invoiced too much before. */
  readonly forgives_charges?: boolean;
};

/**
 * The computed draft of the period, the one that is there already, or null where there is nothing at all to say. With
 * `untilComplete`, 'waiting' is answered and nothing written while events from before the period's end are still on
 * their way through the pipeline.
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
  // Nobody expects an invoice behind the end.
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
  // Coupons are applied anew whenever it is computed.
  if (parts.coupon_applications.length === 0) request.onPlanned?.(drafted, planned);
  return drafted;
}

/** As planned, with the next number of the subscription's own count. */
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
  // What comes to nothing is no draft.
  if (invoice.invoice_status === 'DRAFT') await emit(transaction, 'invoice.drafted', { record: drafted, by: { now } });
  return drafted;
}

/** Whether everything that was sent before the period's end is in the usage. */
export function isComplete(planned: PlannedInvoice, period: Period): boolean {
  return planned.usage_as_of_ms === null || planned.usage_as_of_ms >= period.end;
}

/**
 * Whether everything that was sent before now is in the usage. What comes to nothing without it may come to something: it rests as a
 * draft, and is computed once more (docs/rules/invoices.md, "Nothing to pay").
 */
export function isCounted(planned: PlannedInvoice, now: Date): boolean {
  return planned.usage_as_of_ms === null || planned.usage_as_of_ms >= now.getTime();
}

/**
 * The opening invoice: the advance charges of the first period, due at once because no event can change them
 * (docs/rules/subscriptions.md, "The opening"). A trial opens with an invoice of nothing, paid by itself.
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
 * The last invoice of a cancellation: the arrears from the start of the running period to the effective date
 * (docs/rules/invoices.md, "What stands on which invoice"). Called inside the transaction that cancels; the draft then
 * rests like any other, and what was still on its way is in it when it becomes final. Periods that were over before the
 * effective date, and that the scheduler has not come to yet, get the invoices that it would have made.
 */
export async function draftFinalInvoice(
  stores: Stores,
  transaction: Transaction,
  request: { subscription: SubscriptionModel; effective_date: string; now: Date },
): Promise<InvoiceWithLines | null> {
  const { subscription, now } = request;
  const effective = toInstant(request.effective_date);
  const start = await draftPeriodsBefore(stores, transaction, request);
  // One that ends where a period begins may carry something that no later invoice could be lowered by.
  if (effective < start) return null;
  const period = { start, end: effective };
  const invoice = await draftInvoice(stores, transaction, { subscription, period, ...CANCELLATION, now });
  return invoice === 'waiting' ? null : invoice;
}

const CANCELLATION = { reference: 'cancel', reason: 'PRORATION' } as const;

/**
 * A subscription that ends without an invoice of its arrears gives back all the same what was invoiced too much of its usage
 * (docs/rules/invoices.md, "Before the period is over"). It is final at once, because computed anew it would charge the arrears.
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

/** The invoices of periods that were over before; answers where the running one begins. Nobody can forgive them by a cancellation. */
export async function draftPeriodsBefore(
  stores: Stores,
  transaction: Transaction,
  { subscription, effective_date, now }: { subscription: SubscriptionModel; effective_date: string; now: Date },
): Promise<number> {
  const effective = toInstant(effective_date);
  // In advance, too, nothing is charged for the time behind it: whoever makes a draft final by hand gets what it says.
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
