/**
 * Previews the next invoice of a subscription: the arrears so far and the advance charges of the next period (docs/rules/invoices.md,
 * "Preview and invoice agree"). It uses the gathering and the plan of the draft, without writing; ids are empty.
 */

import { Decimal } from '../../../core/foundation/decimal.ts';
import { invalid, notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { formatMs, type Milliseconds, requireInstant, toInstant } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import type { InvoiceWithLines } from '../../../core/invoicing/invoice/record.ts';
import { nextPeriod } from '../../../core/rating/charges.ts';
import { laterPeriods } from '../../../core/rating/due.ts';
import { countUses, deriveInvoicedKeys } from '../../../core/rating/invoices-to-come.ts';
import { type InvoicePlan, type InvoicePlanInput, invoicedKeys } from '../../../core/rating/plan-invoice.ts';
import { totalUsageNet } from '../../../core/rating/usage-net.ts';
import { deriveAddressee } from '../../../core/subscriptions/addressee.ts';
import type { ComputedAnswer } from '../../../storage/cache/cache-entry.ts';
import type { Database, Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionScheduleModel } from '../../../storage/models/subscriptions/subscription-schedule.ts';
import { currentRecorder } from '../../../storage/postgres/interceptors/dependency-recorder.ts';
import { deriveTaxInstant } from '../../catalog/taxes/rates-in-force.ts';
import { runBillingTransaction } from '../../foundation/transaction.ts';
import {
  type BillingTarget,
  type EarlierInvoices,
  gatherAlone,
  planFromStores,
} from '../../invoicing/billing/gather-billing.ts';
import type { DraftRequest } from '../../invoicing/invoices/draft-invoice.ts';
import { invoiceParts, invoiceRecord } from '../../invoicing/records/invoice-records.ts';
import {
  type BillableItem,
  billedSubscription,
  currentPeriod,
  currentPeriodUntilEnd,
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
): Promise<InvoiceWithLines> {
  const database = stores.postgres;
  const subscription = await SubscriptionModel.fetch(scope, request.subscription_id, { database });
  if (subscription.subscription_status === 'cancelled')
    throw notAllowed('a cancelled subscription has no next invoice', { id: subscription.id });
  const next = nextInvoice(subscription, request);
  const { period, reason } = next;
  const [plan] = await planInvoices(stores, next, { subscription, now });

  const record = invoiceRecord({ subscription, period, reason, plan }, '', now);
  const invoice = { ...record, invoice_status: 'DRAFT' as const, idempotency_key: null };
  const { lines, ...parts } = invoiceParts(plan, invoice, now);
  const line_items = lines.filter(
    (line) => !request.hide_zero_charges_line_items || !new Decimal(line.amount).isZero(),
  );
  return { ...invoice, ...parts, line_items };
}

type PreviewSubject = { readonly subscription: SubscriptionModel; readonly now: Date };

async function isChangingThen(database: Database, subscription: SubscriptionModel, { period }: NextInvoice) {
  const pending = await SubscriptionScheduleModel.findPending(subscription, subscription.id, database);
  return pending?.schedule_type === 'plan_change' && toInstant(pending.scheduled_at) === period.end;
}

/**
 * Usage that the preview would charge, after coupons, and a function that recomputes it for other usage. If the next invoice is due but not
 * made yet, usage of the periods begun after it is included. The result does not depend on the time of the scheduler's run.
 */
export async function planCurrentCharge(
  stores: Stores,
  subscription: SubscriptionModel,
  { database, now }: { database: Database; now: Date },
): Promise<ComputedAnswer<Decimal>> {
  const invoices = listComingInvoices(subscription, now);
  const [next] = invoices;
  // The start of the next period is in no record, so it is recorded as a dependency.
  currentRecorder()?.row({ ends: formatMs(invoices.at(-1)!.period.end) });
  const alone = (await isChangingThen(database, subscription, next))
    ? null
    : await gatherEachAlone(stores, database, { subscription, now, invoices });
  if (alone !== null) return buildCurrentCharge(alone);
  const behindIt = (as: SubscriptionModel) => listComingInvoices(as, now).slice(1);
  const plans = await planInvoices(stores, next, { subscription, now }, behindIt);
  return { answer: totalUsageNet(plans) };
}

type ComingInvoices = PreviewSubject & { readonly invoices: readonly NextInvoice[] };

async function gatherEachAlone(stores: Stores, database: Database, { subscription, now, invoices }: ComingInvoices) {
  const alone: InvoicePlanInput<BillableItem>[] = [];
  const invoiced = new Set<string>();
  for (const { period, reference } of invoices) {
    const last = alone.at(-1);
    for (const key of last ? deriveInvoicedKeys(last) : []) invoiced.add(key);
    // Draws and uses are known only after planning.
    const behind = last && { invoiced };
    const question = await gatherAlone(stores, database, { subscription, now, period, reference, behind });
    if (question === null) return null;
    alone.push(question);
  }
  return alone;
}

/**
 * Limit for a subscription that began years ago or could not be billed for long. Each invoice costs a gathering, and the scheduler will
 * process them soon.
 */
const MOST_TO_COME = 32;

/** The next invoice, and those of the periods begun after it, if its opening, trial end or period end is not processed yet. */
function listComingInvoices(subscription: SubscriptionModel, now: Date): [NextInvoice, ...NextInvoice[]] {
  const next = nextInvoice(subscription, { subscription_id: subscription.id });
  const { subscription_status: status, opens_at } = subscription;
  if (status !== 'active' && status !== 'trialing') return [next];
  if (opens_at && toInstant(opens_at) > now.getTime()) return [next];
  const begun = laterPeriods(billedSubscription(subscription), currentPeriod(subscription), now.getTime());
  // An opening invoice contains no usage; the invoice after it does. Usage in a trial is free.
  const behind = opens_at ? [currentPeriodUntilEnd(subscription), ...begun] : begun;
  return [next, ...behind.slice(0, MOST_TO_COME).map(toCycleInvoice)];
}

function toCycleInvoice(period: Period): NextInvoice {
  return { period, reference: 'preview', reason: 'SUBSCRIPTION_CYCLE' };
}

/** A planned invoice and the subscription in its state at that time. */
type PlanPreviewInput = { readonly next: NextInvoice; readonly as: SubscriptionModel; readonly now: Date };

/**
 * Plans the next invoice and those after it. A plan change at the end of the period is executed first, in a transaction that is rolled
 * back.
 */
async function planInvoices(
  stores: Stores,
  next: NextInvoice,
  { subscription, now }: PreviewSubject,
  behindIt: (as: SubscriptionModel) => readonly NextInvoice[] = () => [],
) {
  const planAll = async (on: Database, as: SubscriptionModel, settled: PreviewCredits = {}) => {
    const later = behindIt(as);
    const plans: [PreviewPlan, ...PreviewPlan[]] = [
      await planPreviewInvoice(stores, on, { next, as, now }, { ...settled, is_followed: later.length > 0 }),
    ];
    for (const [index, one] of later.entries()) {
      const about = { behind: buildEarlierInvoices(plans), is_followed: index < later.length - 1 };
      plans.push(await planPreviewInvoice(stores, on, { next: one, as, now }, about));
    }
    return plans;
  };
  if (!(await isChangingThen(stores.postgres, subscription, next))) return planAll(stores.postgres, subscription);
  const changed = async (transaction: Transaction) => {
    const { id } = subscription;
    const locked = await SubscriptionModel.fetch(toScope(subscription), id, { database: transaction, lock: true });
    const due = { subscription: locked, at: next.period.end, now };
    const { subscription: as, settled: of } = await changePlanIfDue(stores, transaction, due);
    return planAll(transaction, as, of ? toPreviewCredits(of) : {});
  };
  return runBillingTransaction(stores, changed, () => false);
}

async function planPreviewInvoice(
  stores: Stores,
  database: Database,
  { next: { period, reference, reason }, as, now }: PlanPreviewInput,
  more: PreviewCredits & Pick<BillingTarget, 'behind' | 'is_followed'>,
) {
  const dates = { billing_reason: reason, period_start: formatMs(period.start), period_end: formatMs(period.end) };
  const taxed = {
    customer_id: deriveAddressee(as),
    subscription_id: as.id,
    invoice_type: 'SUBSCRIPTION' as const,
    at: deriveTaxInstant(dates, now),
  };
  return (await planFromStores(stores, database, { subscription: as, period, reference, now, taxed, ...more })).plan;
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
type PreviewCredits = Pick<BillingTarget, 'before' | 'credits'>;

/** Credits that the change settles on its own invoice are shown on the invoice of the period, as if both were one. */
function toPreviewCredits({ invoice, lines }: SettledChangeLines): PreviewCredits {
  return { before: { invoice, line_items: [] }, credits: lines.filter(({ amount }) => amount.isNegative()) };
}

type NextInvoice = Pick<DraftRequest, 'period' | 'reference' | 'reason'>;

/** The running period, cut at the subscription's end, unless the request names another. */
function nextInvoice(subscription: SubscriptionModel, request: PreviewRequest): NextInvoice {
  const opening = openingInvoice(subscription);
  const expected = opening?.period ?? currentPeriod(subscription);
  const start = parseRequestedInstant('period_start', request.period_start) ?? expected.start;
  const lastEnd = billedSubscription(subscription).end_ms ?? Number.POSITIVE_INFINITY;
  const end = parseRequestedInstant('period_end', request.period_end) ?? Math.min(expected.end, lastEnd);
  if (end <= start) throw invalid('period_end', 'must be after period_start');
  const period = { start, end };
  return opening ? { ...opening, period } : toCycleInvoice(period);
}

/** A draft, a trial or a later start opens with an invoice of its advance charges. */
function openingInvoice(subscription: SubscriptionModel): NextInvoice | null {
  const { subscription_status, trial_end, opens_at } = subscription;
  const isDraft = subscription_status === 'draft';
  if (subscription_status === 'trialing' || (isDraft && trial_end)) {
    const period = nextPeriod(currentPeriod(subscription).end, billedSubscription(subscription));
    return period === null ? null : { period, ...TRIAL_END };
  }
  if (!isDraft && !opens_at) return null;
  return { period: currentPeriod(subscription), reference: 'period_start', reason: 'SUBSCRIPTION_CREATE' };
}

function parseRequestedInstant(field: string, text: string | null | undefined): Milliseconds | undefined {
  return text === null || text === undefined || text === '' ? undefined : requireInstant(field, text);
}
