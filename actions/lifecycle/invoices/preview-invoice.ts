/**
 * Previews the next invoice of a subscription: the arrears so far and the advance charges of the next period (docs/rules/invoices.md,
 * "Preview and invoice agree"). It uses the gathering and the plan of the draft, without writing; ids are empty.
 */

import { Decimal } from '../../../core/foundation/decimal.ts';
import { invalid, notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { formatMs, type Milliseconds, requireInstant, toInstant } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import type { BillingReason, InvoiceWithLines } from '../../../core/invoicing/invoice/record.ts';
import { nextPeriod } from '../../../core/rating/charges.ts';
import { laterPeriods } from '../../../core/rating/due.ts';
import { countUses, deriveInvoicedKeys } from '../../../core/rating/invoices-to-come.ts';
import { type InvoicePlan, type InvoicePlanInput, invoicedKeys } from '../../../core/rating/plan-invoice.ts';
import { totalUsageNet } from '../../../core/rating/usage-net.ts';
import { deriveAddressee } from '../../../core/subscriptions/addressee.ts';
import type { ComputedAnswer } from '../../../storage/cache/cache-entry.ts';
import { loadAll } from '../../../storage/concurrency/batched.ts';
import type { Database, Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionScheduleModel } from '../../../storage/models/subscriptions/subscription-schedule.ts';
import { deriveTaxInstant } from '../../catalog/taxes/rates-in-force.ts';
import { runBillingTransaction } from '../../foundation/transaction.ts';
import { type EarlierInvoices, gatherAlone } from '../../invoicing/billing/gather-billing.ts';
import { type PreviewedChange, planPreviewInvoice } from '../../invoicing/billing/plan-invoices.ts';
import { toInvoiceParts, toInvoiceRecord } from '../../invoicing/records/invoice-records.ts';
import {
  type BillableItem,
  currentPeriod,
  currentPeriodUntilEnd,
  toBilledSubscription,
  toScope,
} from '../../rating/billable-items.ts';
import { buildCurrentCharge } from '../../rating/current-charge.ts';
import { changePlanIfDue, type SettledChangeLines } from '../plan-change/scheduled.ts';
import { TRIAL_END } from '../subscriptions/end-trial.ts';

type PreviewRequest = {
  readonly subscription_id: string;
  readonly period_start?: string | null;
  readonly period_end?: string | null;
  readonly hide_zero_charges_line_items?: boolean | null;
};

export async function previewInvoice(
  stores: Stores,
  scope: Scope,
  request: PreviewRequest,
  now: Date,
): Promise<InvoiceWithLines & { readonly subscription: SubscriptionModel }> {
  const { subscription_id: id } = request;
  const [subscription, pending] = await loadAll(stores.postgres, [
    (connected) => SubscriptionModel.fetch(scope, id, { database: connected }),
    (connected) => SubscriptionScheduleModel.findPending(scope, id, connected),
  ]);
  if (subscription.subscription_status === 'cancelled')
    throw notAllowed('a cancelled subscription has no next invoice', { id: subscription.id });
  const next = nextInvoice(subscription, request);
  const is_changing = isChangingThen(pending, next);
  const [plan] = await planInvoices(stores, next, { subscription, now, is_changing });
  const invoice = toPreviewedInvoice(next, plan, { subscription, now });
  const line_items = invoice.line_items.filter(
    (line) => !request.hide_zero_charges_line_items || !new Decimal(line.amount).isZero(),
  );
  return { ...invoice, line_items, subscription };
}

/** Previews the next invoice of a subscription that `database`, a transaction, has created; null if its parent has the invoices. */
export async function previewFollowingInvoice(
  stores: Stores,
  database: Transaction,
  { subscription, now }: PreviewSubject,
): Promise<InvoiceWithLines | null> {
  if (subscription.subscription_type === 'INHERITED') return null;
  const next = nextInvoice(subscription, { subscription_id: subscription.id });
  const subject = { ...toPreviewSubject(next, subscription, now), change: null, earlier: null, is_followed: false };
  const { plan } = await planPreviewInvoice(stores, database, subject);
  return toPreviewedInvoice(next, plan, { subscription, now });
}

function toPreviewedInvoice(
  { period, reason }: NextInvoice,
  plan: PreviewPlan,
  { subscription, now }: PreviewSubject,
): InvoiceWithLines {
  const record = toInvoiceRecord({ subscription, period, reason, plan }, '', now);
  const invoice = { ...record, invoice_status: 'DRAFT' as const, idempotency_key: null };
  const { lines, ...parts } = toInvoiceParts(plan, invoice, now);
  return { ...invoice, ...parts, line_items: lines };
}

type PreviewSubject = { readonly subscription: SubscriptionModel; readonly now: Date };

/** Whether the pending schedule changes the plan at the end of the invoice's period. */
function isChangingThen(pending: SubscriptionScheduleModel | undefined, { period }: NextInvoice): boolean {
  return pending?.schedule_type === 'plan_change' && toInstant(pending.scheduled_at) === period.end;
}

/**
 * Computes the usage amount that the preview would charge, after coupons, and a function that recomputes it when usage arrives. If the next
 * invoice is due but not made yet, usage of the periods begun after it is included. The result does not depend on the time of the
 * scheduler's run.
 */
export async function planCurrentCharge(
  stores: Stores,
  subscription: SubscriptionModel,
  { database, now }: { database: Database; now: Date },
): Promise<ComputedAnswer<Decimal>> {
  const invoices = listComingInvoices(subscription, now);
  const [next] = invoices;
  const until_ms = invoices.at(-1)!.period.end;
  const pending = await SubscriptionScheduleModel.findPending(subscription, subscription.id, database);
  const is_changing = isChangingThen(pending, next);
  const alone = is_changing ? null : await gatherEachAlone(stores, database, { subscription, now, invoices });
  if (alone !== null) return { ...buildCurrentCharge(alone), until_ms };
  const listLater = (as: SubscriptionModel) => listComingInvoices(as, now).slice(1);
  const plans = await planInvoices(stores, next, { subscription, now, is_changing }, listLater);
  return { answer: totalUsageNet(plans), until_ms };
}

type ComingInvoices = PreviewSubject & { readonly invoices: readonly NextInvoice[] };

async function gatherEachAlone(stores: Stores, database: Database, { subscription, now, invoices }: ComingInvoices) {
  const alone: InvoicePlanInput<BillableItem>[] = [];
  const invoiced = new Set<string>();
  for (const { period, reference } of invoices) {
    const last = alone.at(-1);
    for (const key of last ? deriveInvoicedKeys(last) : []) invoiced.add(key);
    // Commitment draws and coupon uses of the earlier invoices are known only after planning.
    const earlier = last ? { invoiced, lines: [], coupon_uses: new Map() } : null;
    const basis = { reference, before: null, earlier, is_settled: false };
    const input = await gatherAlone(stores, database, { subscription, period, now }, basis);
    if (input === null) return null;
    alone.push(input);
  }
  return alone;
}

/**
 * Maximum number of previewed invoices of a subscription that began years ago or could not be billed for long. Gathering takes time for
 * each invoice, and the scheduler will make these invoices soon.
 */
const MOST_TO_COME = 32;

/**
 * Lists the next invoice. If it is overdue, because the scheduler has not processed the opening, trial end or period end yet, the invoices
 * of the periods that have begun since follow.
 */
function listComingInvoices(subscription: SubscriptionModel, now: Date): [NextInvoice, ...NextInvoice[]] {
  const next = nextInvoice(subscription, { subscription_id: subscription.id });
  const { subscription_status: status, opens_at } = subscription;
  if (status !== 'active' && status !== 'trialing') return [next];
  if (opens_at && toInstant(opens_at) > now.getTime()) return [next];
  const begun = laterPeriods(toBilledSubscription(subscription), currentPeriod(subscription), now.getTime());
  // After a delayed opening, the first period also gets a cycle invoice with its usage. Usage in a trial is free, so a trial has none.
  const later = opens_at ? [currentPeriodUntilEnd(subscription), ...begun] : begun;
  return [next, ...later.slice(0, MOST_TO_COME).map(toCycleInvoice)];
}

function toCycleInvoice(period: Period): NextInvoice {
  return { period, reference: 'preview', reason: 'SUBSCRIPTION_CYCLE' };
}

/**
 * Plans the next invoice and the following ones that are due already. A plan change at the end of the period is executed first, in a
 * transaction that is rolled back.
 */
async function planInvoices(
  stores: Stores,
  next: NextInvoice,
  { subscription, now, is_changing }: PreviewSubject & { readonly is_changing: boolean },
  listLater: (as: SubscriptionModel) => readonly NextInvoice[] = () => [],
) {
  const planAll = async (on: Database, as: SubscriptionModel, change: PreviewedChange | null) => {
    const later = listLater(as);
    const first = { ...toPreviewSubject(next, as, now), change, earlier: null, is_followed: later.length > 0 };
    const plans: [PreviewPlan, ...PreviewPlan[]] = [(await planPreviewInvoice(stores, on, first)).plan];
    for (const [index, one] of later.entries()) {
      const about = { change: null, earlier: buildEarlierInvoices(plans), is_followed: index < later.length - 1 };
      plans.push((await planPreviewInvoice(stores, on, { ...toPreviewSubject(one, as, now), ...about })).plan);
    }
    return plans;
  };
  if (!is_changing) return planAll(stores.postgres, subscription, null);
  const changed = async (transaction: Transaction) => {
    const { id } = subscription;
    const locked = await SubscriptionModel.fetch(toScope(subscription), id, { database: transaction, lock: true });
    const due = { subscription: locked, at: next.period.end, now };
    const { subscription: as, settled: of } = await changePlanIfDue(stores, transaction, due);
    return planAll(transaction, as, of && toPreviewedChange(of));
  };
  return runBillingTransaction(stores, changed, () => false);
}

/** Converts an invoice to the subject of a preview. `as` is the subscription in its state at the time of the invoice. */
function toPreviewSubject({ period, reference, reason }: NextInvoice, as: SubscriptionModel, now: Date) {
  const dates = { billing_reason: reason, period_start: formatMs(period.start), period_end: formatMs(period.end) };
  const taxed = {
    customer_id: deriveAddressee(as),
    subscription_id: as.id,
    invoice_type: 'SUBSCRIPTION' as const,
    at: deriveTaxInstant(dates, now),
  };
  return { subscription: as, period, reference, now, taxed };
}

function buildEarlierInvoices(plans: readonly PreviewPlan[]): EarlierInvoices {
  const lines = plans.flatMap((plan) => plan.lines);
  const coupon_uses = new Map<string, number>();
  for (const plan of plans) countUses(plan, coupon_uses);
  return {
    lines,
    coupon_uses,
    invoiced: new Set(lines.flatMap(({ item, service }) => invoicedKeys(item.id, service))),
  };
}

type PreviewPlan = InvoicePlan<BillableItem>;

/**
 * Converts an executed change for the preview. The preview shows the change's credits on the invoice of the period, although the change
 * itself settles them on a separate invoice.
 */
function toPreviewedChange({ invoice, lines }: SettledChangeLines): PreviewedChange {
  return { before: { invoice, line_items: [] }, credits: lines.filter(({ amount }) => amount.isNegative()) };
}

type NextInvoice = {
  readonly period: Period;
  readonly reference: 'period_start' | 'preview';
  readonly reason: BillingReason;
};

/**
 * Returns the next invoice: the opening one, or that of the running period. Its period ends with the subscription at the latest, unless the
 * request gives another end.
 */
function nextInvoice(subscription: SubscriptionModel, request: PreviewRequest): NextInvoice {
  const opening = openingInvoice(subscription);
  const expected = opening?.period ?? currentPeriod(subscription);
  const start = parseRequestedInstant('period_start', request.period_start) ?? expected.start;
  const lastEnd = toBilledSubscription(subscription).end_ms ?? Number.POSITIVE_INFINITY;
  const end = parseRequestedInstant('period_end', request.period_end) ?? Math.min(expected.end, lastEnd);
  if (end <= start) throw invalid('period_end', 'must be after period_start');
  const period = { start, end };
  return opening ? { ...opening, period } : toCycleInvoice(period);
}

/** Returns the opening invoice, with the advance charges of a draft, a trial or a subscription with a later start. */
function openingInvoice(subscription: SubscriptionModel): NextInvoice | null {
  const { subscription_status, trial_end, opens_at } = subscription;
  const isDraft = subscription_status === 'draft';
  if (subscription_status === 'trialing' || (isDraft && trial_end)) {
    const period = nextPeriod(currentPeriod(subscription).end, toBilledSubscription(subscription));
    return period === null ? null : { period, reference: 'period_start', reason: TRIAL_END };
  }
  if (!isDraft && !opens_at) return null;
  return { period: currentPeriod(subscription), reference: 'period_start', reason: 'SUBSCRIPTION_CREATE' };
}

function parseRequestedInstant(field: string, text: string | null | undefined): Milliseconds | undefined {
  return text === null || text === undefined || text === '' ? undefined : requireInstant(field, text);
}
