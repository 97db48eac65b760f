/**
 * Gathers the inputs of an invoice plan: line items with prices and meters, lines on other invoices, and usage. The planners
 * (plan-invoices.ts) share these steps, so that preview, draft and recomputation agree (docs/rules/invoices.md, "Preview and invoice
 * agree").
 */

import { type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import { isCredit } from '../../../core/rating/billed-before.ts';
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
import type { CouponInForce } from '../../../core/rating/discounts.ts';
import type { CouponUses } from '../../../core/rating/invoices-to-come.ts';
import type { MeasuredUsage, PlannedLine, PricedItem } from '../../../core/rating/line-amount.ts';
import {
  chargeKey,
  type InvoicePlanInput,
  invoicedKeys,
  type LinePlanInput,
  listOpenCharges,
} from '../../../core/rating/plan-invoice.ts';
import type { SubscriptionMember } from '../../../core/subscriptions/members.ts';
import { mapConcurrently } from '../../../storage/concurrency/batch-loader.ts';
import { loadAll, waitAtBarrier } from '../../../storage/concurrency/batched.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import type { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import {
  type BillableItem,
  CHARGES_AT_ONCE,
  gatherItemsOfLines,
  isInForce,
  listLineItems,
  toBilledSubscription,
} from '../../rating/billable-items.ts';
import { loadCouponsInForce } from '../../rating/coupons/coupons-in-force.ts';
import { createUsageReader, type UsageMeasure } from '../../rating/measure-usage.ts';
import { loadOwnMembers } from '../../rating/members.ts';
import {
  gatherClosedCharges,
  gatherInvoicedLines,
  type InvoicedLine,
  isCorrected,
  isCorrection,
  loadPartialCharges,
  subtractReturned,
  toLaterCharge,
} from './gather-closed-charges.ts';
import { listRecordedTrueUps, recordedUsage, subscriptionCommitment } from './gather-commitments.ts';
import { type InvoiceBefore, loadInvoiceGroup } from './invoice-group.ts';
import { applyRecordedRule } from './recorded-rule.ts';

/** The subscription of an invoice and the period that it covers. */
export type InvoiceSubject = {
  readonly subscription: SubscriptionModel;
  readonly period: Period;
  readonly now: Date;
  /** All lines of the subscription, if the caller has read them. */
  readonly line_items?: readonly SubscriptionLineItemModel[] | undefined;
};

/** Determines which charges an invoice has, given the charges of other invoices. Every planner sets all fields. */
export type InvoiceBasis = {
  readonly reference: ReferencePoint;
  /**
   * The invoice that is recomputed, or the void invoice that is billed again. Its own lines do not count as invoiced elsewhere. Null for a
   * new invoice.
   */
  readonly before: InvoiceBefore | null;
  /**
   * Invoices of earlier periods that a preview has planned and that are not stored yet. They already contain the late usage of the periods
   * before them.
   */
  readonly earlier: EarlierInvoices | null;
  /**
   * True if all earlier charges were checked, and their usage cannot have changed since (clock-advance-plan-cache.ts).
   * They are not read again.
   */
  readonly is_settled: boolean;
};

export type EarlierInvoices = {
  readonly invoiced: ReadonlySet<string>;
  /** Empty until the earlier invoices are priced: until then their commitment draws and coupon uses are unknown. */
  readonly lines: readonly PlannedLine<BillableItem>[];
  readonly coupon_uses: CouponUses;
};

/** Inputs of one subscription on the invoice. */
export type GatheredCharges = {
  readonly input: LinePlanInput<BillableItem>;
  /** Every event before this instant is in the usage; null if no usage was read. */
  readonly usage_as_of_ms: Milliseconds | null;
  /**
   * True if every usage charge on another invoice was checked, by this plan or an earlier one. The next plan need not check these charges
   * until new events are counted.
   */
  readonly is_settled: boolean;
};

/** Inputs of all subscriptions on the invoice, and the coupons that may discount it. */
type GatheredInvoice = {
  readonly members: readonly [GatheredCharges, ...GatheredCharges[]];
  readonly coupons: readonly CouponInForce[];
};

/**
 * Gathers each subscription on the invoice, one after the other: a transaction has one connection. `loadTerms` loads further terms of the
 * invoice with the same statements.
 */
export async function gatherInvoice<Terms>(
  stores: Stores,
  database: Database,
  { subject, basis, loadTerms }: { subject: InvoiceSubject; basis: InvoiceBasis; loadTerms: LoadTerms<Terms> },
): Promise<GatheredInvoice & { readonly terms: Terms }> {
  const { subscription, period } = subject;
  const [, ...others] = await loadInvoiceGroup(database, subject, basis);
  const loadCoupons = (connected: Database) =>
    loadCouponsInForce(connected, {
      subscriptions: [subscription, ...others],
      invoice_id: basis.before?.invoice.id,
      since: basis.earlier?.coupon_uses,
      // Coupons of a fixed amount were already applied on the invoice of the period.
      ...(basis.reference === 'late' ? { inside: 'usage' as const } : {}),
    });
  if (others.length === 0) {
    const gather = (connected: Database) => gatherRecords(connected, subject, { ...basis, until_ms: null });
    const [records, coupons, terms] = await loadAll(database, [gather, loadCoupons, loadTerms]);
    return { members: [await measureCharges(stores, database, records)], coupons, terms };
  }
  const ends_ms = toBilledSubscription(subscription).end_ms;
  // Usage of a child after its parent's end is on an invoice of the child.
  const until_ms = ends_ms === period.end ? ends_ms : null;
  const first = await gatherCharges(stores, database, subject, { ...basis, until_ms: null });
  const following: GatheredCharges[] = [];
  for (const other of others) {
    const own = { ...subject, subscription: other, line_items: undefined };
    following.push(await gatherCharges(stores, database, own, { ...basis, until_ms }));
  }
  const [coupons, terms] = await loadAll(database, [loadCoupons, loadTerms]);
  return { members: [first, ...following], coupons, terms };
}

type LoadTerms<Terms> = (database: Database) => Promise<Terms>;

/** Gathers the plan inputs of an invoice for one subscription, before taxes and credits; null if the invoice has other subscriptions. */
export async function gatherAlone(
  stores: Stores,
  database: Database,
  subject: InvoiceSubject,
  basis: InvoiceBasis,
): Promise<InvoicePlanInput<BillableItem> | null> {
  const [subscription, ...others] = await loadInvoiceGroup(database, subject, basis);
  if (others.length > 0) return null;
  const { input } = await gatherCharges(stores, database, subject, { ...basis, until_ms: null });
  return { ...input, coupons: await loadCouponsInForce(database, { subscriptions: [subscription] }) };
}

/** Basis for the charges of an invoice. Charges after `until_ms` are omitted; null omits none. */
type ChargesBasis = InvoiceBasis & { readonly until_ms: Milliseconds | null };

function billedUntil(subscription: SubscriptionModel, until_ms: Milliseconds | null): BilledSubscription {
  const billed = toBilledSubscription(subscription);
  if (until_ms === null) return billed;
  return { ...billed, end_ms: Math.min(billed.end_ms ?? Number.POSITIVE_INFINITY, until_ms) };
}

async function gatherCharges(
  stores: Stores,
  database: Database,
  subject: InvoiceSubject,
  basis: ChargesBasis,
): Promise<GatheredCharges> {
  return measureCharges(stores, database, await gatherRecords(database, subject, basis));
}

type ChargeRecords = Awaited<ReturnType<typeof gatherRecords>>;

/** Gathers the records of one subscription, before its usage is read. */
async function gatherRecords(database: Database, subject: InvoiceSubject, basis: ChargesBasis) {
  const { subscription, period } = subject;
  const { reference, before, earlier } = basis;
  const isClosing = reference !== 'period_start';
  const [{ items: all_items, line_items }, members] = await loadAll(database, [
    (connected) => gatherChargedItems(connected, subject, isClosing),
    // An opening invoice has no usage.
    isClosing ? (connected) => loadOwnMembers(connected, subscription) : null,
  ]);
  const items = applyRecordedRule(all_items, before);
  const due = { subscription: billedUntil(subscription, basis.until_ms), items, period, reference };
  const isSettled = basis.is_settled && !isCommitted(subscription, items);
  const isNothingDue = !isClosing && planDueCharges(due).length === 0;
  const all = isNothingDue
    ? []
    : await gatherInvoicedLines(database, subscription, {
        line_items,
        except: before?.invoice.id,
        ...(isSettled ? { since: firstDue(due) } : { fixed_since: firstDue(due) }),
      });
  const later = listLaterCorrections(all, due);
  const lines = later.length === 0 ? all : all.filter((one) => !later.includes(one));
  const invoiced = listInvoicedElsewhere(lines);
  for (const key of earlier?.invoiced ?? []) invoiced.add(key);
  const isCheckingClosed = isClosing && !isSettled && earlier === null;
  const corrected = isCheckingClosed && (await isCorrected(database, lines));
  const committed = await gatherCommitments(database, subscription, { items, lines, later, before, earlier });
  const is_settled = isClosing && !corrected && all.every((one) => isClosed(one, period));
  return { subject, charged: { ...due, invoiced }, committed, members, lines, isCheckingClosed, corrected, is_settled };
}

/** Gathers all lines, and the items that the invoice may charge: an opening invoice has advance charges only. */
async function gatherChargedItems(database: Database, subject: InvoiceSubject, isClosing: boolean) {
  const { subscription, period, now } = subject;
  // After the end of a period, the grants in force at its last instant apply.
  const at = isClosing ? new Date(Math.min(now.getTime(), period.end - 1)) : undefined;
  const line_items = subject.line_items ?? (await listLineItems(database, subscription));
  const published = line_items.filter(isInForce);
  const isCharged = isClosing || published.some(({ invoice_cadence }) => invoice_cadence === 'ADVANCE');
  const items = isCharged ? await gatherItemsOfLines(database, subscription, { line_items: published, at }) : [];
  return { line_items, items };
}

async function measureCharges(
  stores: Stores,
  database: Database,
  { subject, charged, committed, members, lines, isCheckingClosed, corrected, is_settled }: ChargeRecords,
): Promise<GatheredCharges> {
  const { items, period } = charged;
  const isCorrectedNow = corrected || stores.planned_correction !== undefined;
  const { measure, readInstant } = createMeasure(stores, database, { ...subject, members: members ?? [] });
  // Reads that run concurrently are combined into one query (batch loader).
  const [usage, measured] = await Promise.all([
    loadMeasuredUsage(listOpenCharges(charged), measure),
    isCheckingClosed
      ? gatherClosedCharges({ lines, items, before: period.end, corrected: isCorrectedNow }, measure)
      : [],
  ]);
  await waitAtBarrier(database);
  const closed = await subtractReturned(database, measured, lines);
  const { currency } = subject.subscription;
  return {
    input: { ...charged, ...committed, currency, usage, closed },
    usage_as_of_ms: readInstant(),
    is_settled: is_settled && closed.length === 0,
  };
}

/** `members` are the customers whose usage the subscription counts. */
export function createMeasure(
  stores: Stores,
  database: Database,
  { subscription, now, members }: Omit<InvoiceSubject, 'period'> & { readonly members: readonly SubscriptionMember[] },
) {
  const read = createUsageReader(stores, database, { subscription, members, now });
  let usage_as_of_ms = Number.POSITIVE_INFINITY;
  const measure: UsageMeasure = async (...input) => {
    const answer = await read(...input);
    usage_as_of_ms = Math.min(usage_as_of_ms, toInstant(answer.as_of));
    return answer;
  };
  /** Returns the earliest time up to which all reads so far are complete. */
  const readInstant = (): Milliseconds | null => (Number.isFinite(usage_as_of_ms) ? usage_as_of_ms : null);
  return { measure, readInstant };
}

export async function loadMeasuredUsage<Item extends PricedItem>(
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

/**
 * Whether the line is a correction on a draft; it does not count as invoiced. If a skipped invoice is recomputed with late events, it may
 * contain the corrected charge itself. The draft is then recomputed before it becomes final, without the correction.
 */
function isOpenCorrection(one: InvoicedLine): boolean {
  return one.invoice_status === 'DRAFT' && isCorrection(one);
}

/**
 * Lists corrections that later final invoices have made of charges which this invoice contains: it is recomputed after a skip, or billed
 * again after a void. The invoice charges its amounts less these corrections, so no amount is offset twice.
 */
function listLaterCorrections(lines: readonly InvoicedLine[], input: ChargeInput<BillableItem>): InvoicedLine[] {
  const corrections = lines.filter((one) => isCorrection(one) && !isCredit(one) && one.invoice_status !== 'DRAFT');
  if (corrections.length === 0) return [];
  const due = new Set(planDueCharges(input).map(({ item, service }) => chargeKey(item.id, service)));
  const own = new Set(lines.filter((one) => !isCorrection(one)).map(({ key }) => key));
  return corrections.filter(({ key }) => due.has(key) && !own.has(key));
}

/**
 * Lists the keys of charges on other invoices. Credits of changes are omitted: a credit does not show that its interval
 * was charged.
 */
export function listInvoicedElsewhere(lines: readonly InvoicedLine[]): Set<string> {
  const charges = lines.filter((one) => !isOpenCorrection(one) && !isCredit(one) && !one.is_partial);
  return new Set(charges.flatMap(({ line, service }) => invoicedKeys(line.subscription_line_item_id ?? '', service)));
}

/** Lists the usage of this subscription on the earlier invoices, which may contain other subscriptions, too. */
function listDrawnBefore({ id }: SubscriptionModel, earlier: EarlierInvoices | null): RecordedUsage[] {
  return toRecordedUsage(earlier?.lines.filter(({ item }) => item.line_item.subscription_id === id) ?? []);
}

/**
 * Whether later plans can skip the charge: it is on a final invoice and not partial, and its usage ended by the end of
 * this period.
 */
function isClosed({ invoice_status, is_partial, line, service }: InvoicedLine, period: Period): boolean {
  return invoice_status !== 'DRAFT' && !is_partial && (line.price_type !== 'USAGE' || service.end <= period.end);
}

/** Whether a commitment applies. If so, all earlier usage must be read, because it determines the remaining commitment. */
function isCommitted(subscription: SubscriptionModel, items: readonly BillableItem[]): boolean {
  return subscriptionCommitment(subscription) !== null || items.some((item) => item.commitment);
}

/**
 * Returns the start of the first due charge. Fixed charges before this instant do not affect the plan. Usage charges before it do, because
 * they may have late events.
 */
function firstDue(input: ChargeInput<BillableItem>): Milliseconds {
  return Math.min(input.period.start, ...planDueCharges(input).map(({ service }) => service.start));
}

type CommitmentsContext = Pick<InvoiceBasis, 'before' | 'earlier'> & {
  readonly items: readonly BillableItem[];
  readonly lines: readonly InvoicedLine[];
  /** Corrections of the invoice's charges by later invoices. */
  readonly later: readonly InvoicedLine[];
};

export async function gatherCommitments(
  database: Database,
  subscription: SubscriptionModel,
  { before, earlier, items, lines, later }: CommitmentsContext,
): Promise<Pick<LinePlanInput<BillableItem>, 'commitment' | 'true_ups' | 'recorded' | 'partial'>> {
  const commitment = subscriptionCommitment(subscription);
  const true_ups = commitment?.true_up ? await listRecordedTrueUps(database, subscription, before?.invoice.id) : [];
  return {
    commitment,
    true_ups,
    recorded: isCommitted(subscription, items)
      ? [...recordedUsage(lines), ...listDrawnBefore(subscription, earlier)]
      : [],
    partial: [...(await loadPartialCharges(database, subscription, lines)), ...later.map(toLaterCharge)],
  };
}
