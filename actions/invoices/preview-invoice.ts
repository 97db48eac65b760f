/**
 * The next invoice of a subscription as it would be drafted from what is known now: the arrears so far and the advance
 * charges of the next period (docs/rules/invoices.md, "Preview and invoice agree"). The same gathering and the same plan as
 * the draft, without the writing; ids are empty.
 */
import { nextPeriod } from '../../core/billing/charges.ts';
import { laterPeriods } from '../../core/billing/due.ts';
import { countUses, deriveInvoicedKeys } from '../../core/billing/invoices-to-come.ts';
import { type InvoicePlan, type InvoicePlanInput, invoicedKeys } from '../../core/billing/plan-invoice.ts';
import { totalUsageNet } from '../../core/billing/usage-net.ts';
import { Decimal } from '../../core/decimal.ts';
import { invalid, notAllowed } from '../../core/error.ts';
import type { InvoiceWithLines } from '../../core/invoice/record.ts';
import type { Scope } from '../../core/scope.ts';
import { formatMs, type Milliseconds, requireInstant, toInstant } from '../../core/time/instant.ts';
import type { Period } from '../../core/time/period.ts';
import type { ComputedAnswer } from '../../storage/cache/cache-entry.ts';
import { currentRecorder } from '../../storage/cache/dependency-recorder.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import { SubscriptionScheduleModel } from '../../storage/models/subscription-schedule.ts';
import type { Database, Stores, Transaction } from '../../storage/stores.ts';
import {
  type BillableItem,
  billedSubscription,
  currentPeriod,
  currentPeriodUntilEnd,
  toScope,
} from '../billing/billable-items.ts';
import { buildCurrentCharge } from '../billing/current-charge.ts';
import { type BillingTarget, type EarlierInvoices, gatherAlone, planFromStores } from '../billing/gather-billing.ts';
import { deriveAddressee, invoiceParts, invoiceRecord } from '../billing/invoice-records.ts';
import { runBillingTransaction } from '../billing/transaction.ts';
import { TRIAL_END } from '../subscriptions/end-trial.ts';
import { changePlanIfDue, type SettledChangeLines } from '../subscriptions/plan-change/scheduled.ts';
import { deriveTaxInstant } from '../taxes/rates-in-force.ts';
import type { DraftRequest } from './draft-invoice.ts';

export type PreviewRequest = {
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
 * The usage that the preview would charge, after coupons, and how it is made of other usage than now. Where the next invoice is due and not made
 * yet, that of the periods which have begun behind it is with it: what was used is used, whenever the scheduler comes.
 */
export async function planCurrentCharge(
  stores: Stores,
  subscription: SubscriptionModel,
  { database, now }: { database: Database; now: Date },
): Promise<ComputedAnswer<Decimal>> {
  const invoices = listComingInvoices(subscription, now);
  const [next] = invoices;
  // When the next period begins is in no record.
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
    // What they draw and use is known when they are planned.
    const behind = last && { invoiced };
    const question = await gatherAlone(stores, database, { subscription, now, period, reference, behind });
    if (question === null) return null;
    alone.push(question);
  }
  return alone;
}

/** Of who was begun years back, or could not be billed for long, so many: each costs a gathering, and the scheduler is about to come to them. */
const MOST_TO_COME = 32;

/** The next one, and those of the periods that have begun behind it: its opening, the end of its trial or that of its period waits to be done. */
function listComingInvoices(subscription: SubscriptionModel, now: Date): [NextInvoice, ...NextInvoice[]] {
  const next = nextInvoice(subscription, { subscription_id: subscription.id });
  const { subscription_status: status, opens_at } = subscription;
  if (status !== 'active' && status !== 'trialing') return [next];
  if (opens_at && toInstant(opens_at) > now.getTime()) return [next];
  const begun = laterPeriods(billedSubscription(subscription), currentPeriod(subscription), now.getTime());
  // What opens a period charges no usage of it: that is on the invoice behind it. What is used in a trial is free.
  const behind = opens_at ? [currentPeriodUntilEnd(subscription), ...begun] : begun;
  return [next, ...behind.slice(0, MOST_TO_COME).map(toCycleInvoice)];
}

function toCycleInvoice(period: Period): NextInvoice {
  return { period, reference: 'preview', reason: 'SUBSCRIPTION_CYCLE' };
}

/** An invoice that is planned, of a subscription as it is then. */
type PlanPreviewInput = { readonly next: NextInvoice; readonly as: SubscriptionModel; readonly now: Date };

/**
 * The next invoice, and those that come `behind` it. A plan change that is to be done at the end of the period is done first, as it will be, in a
 * transaction that is undone.
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

/** What the change nets on an invoice of its own is said with that of the period: as if it were all on one. */
function toPreviewCredits({ invoice, lines }: SettledChangeLines): PreviewCredits {
  return { before: { invoice, line_items: [] }, credits: lines.filter(({ amount }) => amount.isNegative()) };
}

type NextInvoice = Pick<DraftRequest, 'period' | 'reference' | 'reason'>;

/** The running period, cut where the subscription ends, unless the request names another. */
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

/** What has not begun to be paid for, a draft, a trial or what starts later, is opened with its advance charges. */
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
