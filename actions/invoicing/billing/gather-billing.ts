/**
 * Gathers the inputs of an invoice plan: line items with prices and meters, lines on other invoices, and usage. Core then plans the
 * invoice. Preview, draft and recomputation share this code, so that they agree (docs/rules/invoices.md, "Preview and invoice agree").
 */

import { type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import { usageToRead } from '../../../core/rating/chains/charge-chains.ts';
import {
  type BilledSubscription,
  type ChargeInput,
  type DueCharge,
  planDueCharges,
  type ReferencePoint,
} from '../../../core/rating/charges.ts';
import type { RecordedUsage } from '../../../core/rating/commitments/part.ts';
import { toRecordedUsage } from '../../../core/rating/committed-lines.ts';
import type { CouponUses } from '../../../core/rating/invoices-to-come.ts';
import type { MeasuredUsage, PlannedLine, PricedItem } from '../../../core/rating/line-amount.ts';
import {
  buildInvoicePlan,
  chargeKey,
  type InvoicePlan,
  type InvoicePlanInput,
  invoicedKeys,
  openCharges,
  planInvoice,
  planThreshold,
  thresholdCharges,
} from '../../../core/rating/plan-invoice.ts';
import { hasReachedThreshold } from '../../../core/rating/threshold.ts';
import { mapConcurrently } from '../../../storage/concurrency/batch-loader.ts';
import { loadAll, waitAtBarrier } from '../../../storage/concurrency/batched.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { currentRecorder } from '../../../storage/postgres/interceptors/dependency-recorder.ts';
import { inSpan, inSyncSpan } from '../../../tracing/spans.ts';
import { loadRatesInForce, type TaxableInvoice } from '../../catalog/taxes/rates-in-force.ts';
import { listPreviewWallets } from '../../credits/wallets/prepaid-wallets.ts';
import { type BillableItem, billedSubscription, CHARGES_AT_ONCE, gatherItems } from '../../rating/billable-items.ts';
import { loadCouponsInForce } from '../../rating/coupons/coupons-in-force.ts';
import { createUsageReader, type UsageMeasure } from '../../rating/measure-usage.ts';
import {
  gatherClosedCharges,
  gatherInvoicedLines,
  type InvoicedLine,
  isCorrected,
  isCorrection,
  isCredit,
  loadPartialCharges,
  subtractReturned,
  toLaterCharge,
} from './gather-closed-charges.ts';
import { listRecordedTrueUps, recordedUsage, subscriptionCommitment } from './gather-commitments.ts';
import { type InvoiceBefore, loadInvoiceGroup } from './invoice-group.ts';
import { applyRecordedRule } from './recorded-rule.ts';
import { isTaxedBeforeCredits } from './tax-final.ts';

export type BillingTarget = {
  readonly subscription: SubscriptionModel;
  readonly period: Period;
  readonly reference: ReferencePoint;
  /** The recomputed invoice, or the void one that is billed again. Its own lines do not count as invoiced elsewhere. */
  readonly before?: InvoiceBefore;
  readonly now: Date;
  /** Charges of earlier invoices that are not made yet, including late usage for still earlier ones. */
  readonly behind?: EarlierInvoices | undefined;
  /** Another invoice is planned after it. */
  readonly is_followed?: boolean;
  /** The invoice charges nothing; it only credits amounts that were overbilled before. */
  readonly forgives_charges?: boolean | undefined;
  /** Preview only: the credits of a change at the end of the period. */
  readonly credits?: readonly PlannedLine<BillableItem>[] | undefined;
  /** All earlier charges were checked and no usage of them can have changed (clock-advance-plan-cache.ts); they are not read again. */
  readonly is_settled?: boolean;
  /** Preview only: customer and time for the taxes, because a preview shows the draft as it will be when final. */
  readonly taxed?: Pick<TaxableInvoice, 'customer_id' | 'subscription_id' | 'invoice_type' | 'at'>;
};

export type EarlierInvoices = {
  readonly invoiced: ReadonlySet<string>;
  /** Set if the earlier invoices are planned already; otherwise nothing is known to be drawn or used. */
  readonly lines?: readonly PlannedLine<BillableItem>[];
  readonly coupon_uses?: CouponUses;
};

export type PlannedInvoice = {
  readonly plan: InvoicePlan<BillableItem>;
  /** Every event before this instant is in the usage; null if no usage was read. */
  readonly usage_as_of_ms: Milliseconds | null;
  /**
   * Every usage charge on another invoice was checked, by this plan or before. The next plan need not check them until new events are
   * counted.
   */
  readonly is_settled: boolean;
};

/**
 * A draft that corrects an earlier charge is recomputed before it is final and then reads the earlier invoice. So it takes no charge from
 * an invoice that was skipped and is recomputed with late events.
 */
function isOpenCorrection(one: InvoicedLine): boolean {
  return one.invoice_status === 'DRAFT' && isCorrection(one);
}

/**
 * Corrections on later final invoices, for an invoice that was skipped and is recomputed, or voided and billed again. The invoice charges
 * its amounts less these corrections. So an offset amount stays offset, and late usage is charged once.
 */
function listLaterCorrections(lines: readonly InvoicedLine[], question: ChargeInput<BillableItem>): InvoicedLine[] {
  const corrections = lines.filter((one) => isCorrection(one) && !isCredit(one) && one.invoice_status !== 'DRAFT');
  if (corrections.length === 0) return [];
  const due = new Set(planDueCharges(question).map(({ item, service }) => chargeKey(item.id, service)));
  const own = new Set(lines.filter((one) => !isCorrection(one)).map(({ key }) => key));
  return corrections.filter(({ key }) => due.has(key) && !own.has(key));
}

/** A credit of a change is not a charge for its interval. */
function invoicedElsewhere(lines: readonly InvoicedLine[]): Set<string> {
  const charges = lines.filter((one) => !isOpenCorrection(one) && !isCredit(one) && !one.is_partial);
  return new Set(charges.flatMap(({ line, service }) => invoicedKeys(line.subscription_line_item_id ?? '', service)));
}

/**
 * Plans the invoice for usage of the running period that is not invoiced yet, until the end of the target's period. Returns null below the
 * threshold. Closed periods are read only if the threshold is reached.
 */
export async function planThresholdInvoice(
  stores: Stores,
  database: Database,
  target: Omit<BillingTarget, 'reference'>,
): Promise<InvoicePlan<BillableItem> | null> {
  const { subscription, period, now } = target;
  const items = await gatherItems(database, subscription, { at: now });
  const lines = await gatherInvoicedLines(database, subscription);
  const question = {
    subscription: billedSubscription(subscription),
    items,
    period,
    reference: 'preview' as const,
    invoiced: invoicedElsewhere(lines),
  };
  const { measure } = await createMeasure(stores, database, target);
  const usage = await measureCharges(thresholdCharges(question), measure);
  const committed = await gatherCommitments(database, { ...target, reference: 'preview' }, { items, lines });
  const coupons = await loadCouponsInForce(database, { subscriptions: [subscription], inside: 'usage' });
  const { currency } = subscription;
  const input = { ...question, ...committed, currency, usage, closed: [], coupons };
  if (!hasReachedThreshold(subscription.auto_invoice_threshold ?? null, planThreshold(input).subtotal)) return null;
  const corrected = await isCorrected(database, lines);
  const measured = await gatherClosedCharges({ lines, items, before: period.end, corrected }, measure);
  return planThreshold({ ...input, closed: await subtractReturned(database, measured, lines) });
}

async function createMeasure(
  stores: Stores,
  database: Database,
  { subscription, now }: Omit<BillingTarget, 'reference'>,
) {
  const read = await createUsageReader(stores, database, subscription, { now });
  let usage_as_of_ms = Number.POSITIVE_INFINITY;
  const measure: UsageMeasure = async (...input) => {
    const answer = await read(...input);
    usage_as_of_ms = Math.min(usage_as_of_ms, toInstant(answer.as_of));
    return answer;
  };
  /** Earliest time up to which all reads so far are complete. */
  const readInstant = (): Milliseconds | null => (Number.isFinite(usage_as_of_ms) ? usage_as_of_ms : null);
  return { measure, asOf: readInstant };
}

async function measureCharges<Item extends PricedItem>(
  charges: readonly DueCharge<Item>[],
  measure: UsageMeasure<Item>,
): Promise<ReadonlyMap<string, MeasuredUsage>> {
  const usage = new Map<string, MeasuredUsage>();
  await mapConcurrently(CHARGES_AT_ONCE, usageToRead(charges), async ({ item, window, service, chain, keys }) => {
    const measured = await measure(item, window, { service, chain });
    for (const key of keys) usage.set(key, measured);
  });
  return usage;
}

/** `database` is the transaction that will write the plan, or the pool for a preview. */
export function planFromStores(stores: Stores, database: Database, target: BillingTarget): Promise<PlannedInvoice> {
  return inSpan('invoice.plan', {}, () => gatherAndPlan(stores, database, target));
}

/** Plans each subscription on the invoice, one after the other: a transaction has one connection. */
async function gatherAndPlan(stores: Stores, database: Database, target: BillingTarget): Promise<PlannedInvoice> {
  const { subscription, period } = target;
  const [, ...others] = await loadInvoiceGroup(database, target);
  const couponsOfAll = () =>
    loadCouponsInForce(database, {
      subscriptions: [subscription, ...others],
      invoice_id: target.before?.invoice.id,
      since: target.behind?.coupon_uses,
      // Coupons of a fixed amount were applied on the invoice of the period itself.
      ...(target.reference === 'late' ? { inside: 'usage' as const } : {}),
    });
  const preview = await loadPreviewTerms(database, target);
  if (others.length === 0) {
    const [gathered, coupons] = await loadAll(database, [() => gatherOne(stores, database, target), couponsOfAll]);
    const planned = planOne(gathered, { coupons, ...preview });
    const { currency } = subscription;
    return target.credits ? withCredits(planned, target.credits, { currency, coupons, ...preview }) : planned;
  }
  const ends_ms = billedSubscription(subscription).end_ms;
  // Usage after the parent's end is invoiced by itself.
  const until_ms = ends_ms === period.end ? ends_ms : null;
  const plans = [];
  for (const one of [target, ...others.map((other) => ({ ...target, subscription: other, until_ms }))])
    plans.push(planOne(await gatherOne(stores, database, one)));
  return combinePlans(plans, { currency: subscription.currency, coupons: await couponsOfAll(), ...preview });
}

/** Plan inputs of an invoice for one subscription, before taxes and credits; null if the invoice has other subscriptions. */
export async function gatherAlone(
  stores: Stores,
  database: Database,
  target: BillingTarget,
): Promise<InvoicePlanInput<BillableItem> | null> {
  const [subscription, ...others] = await loadInvoiceGroup(database, target);
  if (others.length > 0) return null;
  const { question } = await gatherOne(stores, database, target);
  return { ...question, coupons: await loadCouponsInForce(database, { subscriptions: [subscription] }) };
}

/** Terms that apply at finalization: tax rates, and the credits that would pay part of the invoice. */
async function loadPreviewTerms(
  database: Database,
  { subscription, period, reference, taxed, now }: BillingTarget,
): Promise<Pick<Parameters<typeof buildInvoicePlan>[1], 'rates' | 'prepaid' | 'taxes_before_credits'>> {
  if (!taxed) return {};
  const rates = await loadRatesInForce(database, { ...subscription, ...taxed });
  // An invoice that opens a period becomes final at the period's start, any other at its end.
  const at_ms = reference === 'period_start' ? Math.min(period.end, now.getTime()) : period.end;
  const payer = { customer_id: taxed.customer_id, currency: subscription.currency, at_ms };
  const prepaid = await listPreviewWallets(database, subscription, payer);
  return {
    rates,
    prepaid,
    taxes_before_credits: rates.length > 0 && (await isTaxedBeforeCredits(subscription, database)),
  };
}

function combinePlans(plans: readonly PlannedInvoice[], terms: Parameters<typeof buildInvoicePlan>[1]): PlannedInvoice {
  const lines = plans.flatMap(({ plan }) => plan.lines);
  const as_of = plans.flatMap(({ usage_as_of_ms }) => usage_as_of_ms ?? []);
  const usage_as_of_ms = as_of.length === 0 ? null : Math.min(...as_of);
  return { plan: buildInvoicePlan(lines, terms), usage_as_of_ms, is_settled: false };
}

function withCredits(
  { plan, usage_as_of_ms }: PlannedInvoice,
  credits: readonly PlannedLine<BillableItem>[],
  terms: Parameters<typeof buildInvoicePlan>[1],
): PlannedInvoice {
  return { plan: buildInvoicePlan([...credits, ...plan.lines], terms), usage_as_of_ms, is_settled: false };
}

/** `until_ms`: later charges are left out. */
type GroupedBillingTarget = BillingTarget & { readonly until_ms?: Milliseconds | null };

function billedUntil({ subscription, until_ms }: GroupedBillingTarget): BilledSubscription {
  const billed = billedSubscription(subscription);
  if (until_ms === null || until_ms === undefined) return billed;
  return { ...billed, end_ms: Math.min(billed.end_ms ?? Number.POSITIVE_INFINITY, until_ms) };
}

type GatheredCharges = {
  readonly question: Omit<InvoicePlanInput<BillableItem>, 'coupons' | 'rates'>;
} & Omit<PlannedInvoice, 'plan'>;

/** `terms` are set for an invoice with one subscription; for several they apply to the whole invoice. */
function planOne(
  { question, ...about }: GatheredCharges,
  terms: Omit<Parameters<typeof buildInvoicePlan>[1], 'currency'> = {},
): PlannedInvoice {
  const plan = inSyncSpan('invoice.price', () => planInvoice({ ...question, ...terms }));
  return { plan, ...about };
}

async function gatherOne(stores: Stores, database: Database, target: GroupedBillingTarget): Promise<GatheredCharges> {
  const { subscription, period, reference, behind, is_followed, forgives_charges } = target;
  // For a period that is over, grants in force at its end apply.
  const at = new Date(Math.min(target.now.getTime(), period.end - 1));
  const [all_items, { measure, asOf: readInstant }] = await loadAll(database, [
    () => gatherItems(database, subscription, { at }),
    () => createMeasure(stores, database, target),
  ]);
  const items = applyRecordedRule(all_items, target.before);
  recordDependencies(subscription, items);
  const input = { subscription: billedUntil(target), items, period, reference };
  const isClosing = reference !== 'period_start';
  const isSettled = target.is_settled === true && !isCommitted(subscription, items);
  const all = await gatherInvoicedLines(database, subscription, {
    except: target.before?.invoice.id,
    ...(isSettled ? { since: firstDue(input) } : { fixed_since: firstDue(input) }),
  });
  const since = listLaterCorrections(all, input);
  const lines = since.length === 0 ? all : all.filter((one) => !since.includes(one));
  const invoiced = invoicedElsewhere(lines);
  for (const key of behind?.invoiced ?? []) invoiced.add(key);
  const question = { ...input, invoiced, is_followed, forgives_charges };
  const isCheckingClosed = isClosing && !isSettled && !behind;
  const corrected = isCheckingClosed && (await isCorrected(database, lines));
  // Concurrent reads become one batched query in the stores.
  const [usage, measured] = await Promise.all([
    measureCharges(openCharges(question), measure),
    isCheckingClosed ? gatherClosedCharges({ lines, items, before: period.end, corrected }, measure) : [],
  ]);
  await waitAtBarrier(database);
  const closed = await subtractReturned(database, measured, lines);
  const committed = await gatherCommitments(database, target, { items, lines, since });
  const { currency } = subscription;
  const is_settled = isClosing && !corrected && closed.length === 0 && all.every((one) => isClosed(one, period));
  return {
    question: { ...question, ...committed, currency, usage, closed },
    usage_as_of_ms: readInstant(),
    is_settled,
  };
}

/** Records whose change may alter the plan of one subscription (sql/postgres/0170-record-changes.sql). */
function recordDependencies({ id }: SubscriptionModel, items: readonly BillableItem[]): void {
  currentRecorder()?.dependsOn?.([
    id,
    ...items.flatMap(({ price_record, meter }) => [price_record.id, meter?.id ?? []].flat()),
  ]);
}

/** Other subscriptions may be on the same invoices. */
function listDrawnBefore({ id }: SubscriptionModel, behind: EarlierInvoices | undefined): RecordedUsage[] {
  return toRecordedUsage(behind?.lines?.filter(({ item }) => item.record.subscription_id === id) ?? []);
}

/**
 * True if the invoice of this period has checked the line: it is final, not partial and, for usage, ends with this period at the latest.
 */
function isClosed({ invoice_status, is_partial, line, service }: InvoicedLine, period: Period): boolean {
  return invoice_status !== 'DRAFT' && !is_partial && (line.price_type !== 'USAGE' || service.end <= period.end);
}

/** Earlier usage determines the rest of a commitment. */
function isCommitted(subscription: SubscriptionModel, items: readonly BillableItem[]): boolean {
  return subscriptionCommitment(subscription) !== null || items.some((item) => item.commitment);
}

/** Start of the first due charge. Fixed charges before it do not affect the plan; earlier usage charges may have late events. */
function firstDue(input: ChargeInput<BillableItem>): Milliseconds {
  return Math.min(input.period.start, ...planDueCharges(input).map(({ service }) => service.start));
}

async function gatherCommitments(
  database: Database,
  { subscription, before, behind }: BillingTarget,
  {
    items,
    lines,
    since = [],
  }: { items: readonly BillableItem[]; lines: readonly InvoicedLine[]; since?: readonly InvoicedLine[] },
) {
  const commitment = subscriptionCommitment(subscription);
  const true_ups = commitment?.true_up ? await listRecordedTrueUps(database, subscription, before?.invoice.id) : [];
  return {
    commitment,
    true_ups,
    recorded: isCommitted(subscription, items)
      ? [...recordedUsage(lines), ...listDrawnBefore(subscription, behind)]
      : [],
    partial: [...(await loadPartialCharges(database, subscription, lines)), ...since.map(toLaterCharge)],
  };
}
