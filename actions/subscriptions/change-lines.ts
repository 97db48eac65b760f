/**
 * Ends and begins lines of a subscription inside a period and settles the credits and charges: the one way of modifications, plan changes
 * and cancellations (docs/rules/proration.md, "Changes inside a period"). `planLineChange` gathers and decides, and is all of a preview;
 * `applyLineChange` applies the plan. An opening invoice that is still a draft is recomputed and carries the change itself.
 */
import {
  type EndingLineItem,
  isBilledImmediately,
  type LineChangeInput,
  planChangeLines,
} from '../../core/billing/change.ts';
import { hasOwnPeriods, nextPeriod } from '../../core/billing/charges.ts';
import { isOneCommitment, isTermContinued } from '../../core/commitment/part.ts';
import { invalid } from '../../core/error.ts';
import { groupBy } from '../../core/group-by.ts';
import { type Author, createdBy } from '../../core/stamp.ts';
import type { LineItemTerms } from '../../core/subscription/lines.ts';
import type { PRORATION_BEHAVIORS } from '../../core/subscription/record.ts';
import { creditsUnusedTime } from '../../core/subscription/schedule.ts';
import { checkThreshold } from '../../core/subscription/terms.ts';
import { formatMs, toInstant } from '../../core/time/instant.ts';
import type { Period } from '../../core/time/period.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import type { MeterModel } from '../../storage/models/meter.ts';
import type { PriceModel } from '../../storage/models/price.ts';
import type { SubscriptionModel } from '../../storage/models/subscription.ts';
import { SubscriptionLineItemModel } from '../../storage/models/subscription-line-item.ts';
import { SubscriptionScheduleModel } from '../../storage/models/subscription-schedule.ts';
import { newId } from '../../storage/new-id.ts';
import type { Database, Stores, Transaction } from '../../storage/stores.ts';
import {
  type BillableItem,
  billableItem,
  billedSubscription,
  currentPeriod,
  toRunningPeriod,
  toScope,
} from '../billing/billable-items.ts';
import { gatherInvoicedLines, type InvoicedLine, invoicedUntil } from '../billing/gather-closed-charges.ts';
import { listReturnedCredits } from '../credit-notes/returned-as-credits.ts';
import { computeWithin } from '../invoices/compute-invoice.ts';
import {
  loadChargeTerms,
  loadPayer,
  type SettledChange,
  type Settlement,
  settleChange,
} from '../invoices/settle-change.ts';
import { computeBilledBefore } from './billed-before.ts';
import {
  computeChargedFrom,
  computeRetainedCharge,
  gatherPayers,
  type LineChangeEnd,
  notePayers,
  type RetainedCharge,
} from './retained-charges.ts';

export type LineStart = {
  readonly terms: LineItemTerms;
  readonly price: PriceModel;
  readonly meter: MeterModel | null;
  /** The line in whose place it comes: periods of its own go on as they were. */
  readonly follows?: BillableItem;
  /** The line whose commitment it takes over: a term of it goes on. */
  readonly continues?: BillableItem;
};

export type LineChange = {
  readonly subscription: SubscriptionModel;
  /** As it is after the change, where a new period begins with it. */
  readonly after?: SubscriptionModel | undefined;
  /** Where a new period begins: lines that had ended before, or are charged once. */
  readonly ended?: readonly BillableItem[];
  readonly ends: readonly LineChangeEnd[];
  readonly begins: readonly LineStart[];
  readonly proration_behavior: (typeof PRORATION_BEHAVIORS)[number];
  /**
   * At the end of the running period, whose invoice charges what begins; but where something is given back, that is netted with what
   * begins. Of a preview all of it is said.
   */
  readonly atPeriodEnd?: 'previewed' | 'done' | undefined;
  readonly author: Author;
};

export type LineChangePlan = {
  readonly subscription: SubscriptionModel;
  readonly ends: readonly LineChangeEnd[];
  /** With the ids that they will have. */
  readonly begins: readonly BillableItem[];
  /** Null where nothing is credited or charged at once. */
  readonly settlement: Settlement | null;
  /** What goes back to others who were billed for it, before somebody else was invoiced. */
  readonly refunds: readonly Settlement[];
  /** What is open of the running period, and computed anew. */
  readonly drafts: readonly string[];
  /** What stays charged without proration. */
  readonly retained: readonly RetainedCharge[];
  /** Lines that paid for others, and are charged only until now. */
  readonly released: readonly LineChangeEnd[];
  /** Where a new period begins: that of the periods that end with it, in which the lines that end were charged. */
  readonly anchor: string | null;
  /** Other lines that keep those periods. */
  readonly anchored: readonly BillableItem[];
  readonly author: Author;
};

/** `database` is the transaction that holds the subscription's row, or the pool for a preview. */
export async function planLineChange(database: Database, change: LineChange): Promise<LineChangePlan> {
  const { subscription, after, ends, author } = change;
  const added = change.begins.filter(({ follows, continues }) => !follows && !continues);
  checkThreshold(
    subscription.auto_invoice_threshold ?? null,
    added.map(({ price }) => price),
    subscription.subscription_type,
  );
  const period = toRunningPeriod(subscription);
  const next = after ? toRunningPeriod(after) : period;
  const invoiced = await gatherInvoicedLines(database, subscription);
  checkNotInvoiced(ends, invoiced);
  const drafts = await listOpenDrafts(database, subscription, period.current);
  // Nothing is invoiced of a draft, of a trial, and of what starts later.
  const isAhead = AHEAD.includes(subscription.subscription_status) || Boolean(subscription.opens_at);
  const isOpen = (item: BillableItem) => isAhead || (drafts.length > 0 && !hasOwnPeriods(item, period.subscription));
  const isProrated = change.proration_behavior === 'create_prorations';
  const isLeft = (item: BillableItem) => isAhead || (after === undefined && isOpen(item));
  // A new period that begins with the one that is not invoiced yet comes in its place: nothing of that is served.
  const isReplaced = (end: LineChangeEnd) => after !== undefined && end.at <= period.current.start && isOpen(end.item);
  const ofOld = isProrated || isAhead ? [] : ends.filter((end) => !isReplaced(end));
  const retained = ofOld.flatMap((end) => computeRetainedCharge(end, invoiced, period) ?? []);
  const begins = buildBegunItems(change, { retained: retained, running: next, isProrated: isProrated || isAhead });
  const released = isProrated && !isAhead ? await gatherPayers(database, subscription, ends) : [];
  const settled = isProrated ? [...ends, ...released].filter(({ item }) => !isOpen(item)) : [];
  const { currency } = subscription;
  const before = [...invoiced, ...(await listReturnedCredits(database, subscription, invoiced))];
  const endings = settled.map((end) => buildEnding(end, before));
  const charged = ends.length === 0 ? period : toRunningPeriod(await loadChargedSubscription(database, subscription));
  const credits = planChangeLines<BillableItem>({ ...charged, currency, endings, beginnings: [] });
  const isCharged = change.atPeriodEnd !== 'done' || credits.length > 0;
  const beginnings = isCharged ? begins.filter((item) => change.atPeriodEnd || !isLeft(item)) : [];
  const charging = change.atPeriodEnd && !after ? deriveFollowingPeriod(period) : next;
  const charges = charging ? planChangeLines<BillableItem>({ ...charging, currency, endings: [], beginnings }) : [];
  const payer_id = await loadPayer(subscription, database);
  const paid = { subscription, payer_id, author };
  const beginsPeriod = after !== undefined || change.atPeriodEnd !== undefined;
  const terms = charges.length === 0 ? {} : await loadChargeTerms(database, paid, { beginsPeriod, begins });
  const settling = { ...paid, key: deriveSettlementKey(ends, begins), terms };
  const { settlement, refunds } = buildSettlements(settling, { credits, charges, invoiced });
  const anchor = after ? subscription.billing_anchor : null;
  return {
    subscription,
    ends,
    begins,
    settlement,
    refunds,
    drafts,
    retained: retained,
    released,
    anchor,
    anchored: change.ended ?? [],
    author,
  };
}

/** The period behind the running one; null where the subscription ends before it. */
function deriveFollowingPeriod({ subscription, current }: LineChangePeriod): LineChangePeriod | null {
  const following = nextPeriod(current.end, subscription);
  return following && { subscription, current: following };
}

type SettlementParts = {
  readonly credits: Settlement['lines'];
  readonly charges: Settlement['lines'];
  readonly invoiced: readonly InvoicedLine[];
};

/** Of who pays now, and what goes back to others who were billed. */
export function buildSettlements(settling: Omit<Settlement, 'lines'>, { credits, charges, invoiced }: SettlementParts) {
  const billedTo = new Map(invoiced.map(({ line, billed_to }) => [line.id, billed_to]));
  const byPayer = groupBy(credits, (line) => billedTo.get(line.parent_line_item_id ?? '') ?? settling.payer_id);
  const lines = [...(byPayer.get(settling.payer_id) ?? []), ...charges];
  byPayer.delete(settling.payer_id);
  const refunds = Array.from(byPayer, ([payer_id, given]): Settlement => {
    return { ...settling, payer_id, terms: {}, lines: given, key: `${settling.key}/${payer_id}` };
  });
  return { settlement: lines.length === 0 ? null : { ...settling, lines }, refunds };
}

/** A cancellation that will give back the time behind it does not shorten what was charged: a line that ends before it gives it back now. */
async function loadChargedSubscription(
  database: Database,
  subscription: SubscriptionModel,
): Promise<SubscriptionModel> {
  if (!subscription.cancel_at && !subscription.cancel_at_period_end) return subscription;
  const pending = await SubscriptionScheduleModel.findPending(subscription, subscription.id, database);
  return pending && creditsUnusedTime(pending) ? withoutCancellation(subscription) : subscription;
}

/** As it was charged before it was to be cancelled. */
export function withoutCancellation(subscription: SubscriptionModel): SubscriptionModel {
  return Object.assign(subscription.$clone(), { cancel_at: null, cancel_at_period_end: false });
}

/** What was used until then was invoiced before its period was over, because it had reached a threshold: it stays charged. */
function checkNotInvoiced(ends: readonly LineChangeEnd[], invoiced: readonly InvoicedLine[]): void {
  for (const { item, at } of ends) {
    const until = item.price_type === 'USAGE' ? invoicedUntil(invoiced, item.id) : null;
    if (until !== null && at < until)
      throw invalid('effective_from', `must not lie before ${formatMs(until)}: that time is invoiced`, {
        line_item_id: item.id,
      });
  }
}

const AHEAD: readonly SubscriptionModel['subscription_status'][] = ['draft', 'trialing'];

export type AppliedLines = {
  ended: SubscriptionLineItemModel[];
  begun: SubscriptionLineItemModel[];
  settled: SettledChange | null;
  refunded: SettledChange[];
};

export async function applyLineChange(
  stores: Stores,
  transaction: Transaction,
  plan: LineChangePlan,
): Promise<AppliedLines> {
  const { subscription, ends, begins, settlement, refunds, drafts, released, anchor, anchored, author } = plan;
  const by = { by: author, database: transaction };
  const ended: SubscriptionLineItemModel[] = [];
  for (const end of ends)
    ended.push(await SubscriptionLineItemModel.change(end.item.record, deriveEndChanges(end, plan), by));
  for (const { item, at } of released)
    await SubscriptionLineItemModel.change(item.record, { charged_until: formatMs(at) }, by);
  for (const item of anchored)
    await SubscriptionLineItemModel.change(item.record, deriveAnchorChanges(anchor, item, subscription), by);
  const added = await addLines(transaction, subscription, begins);
  // Before the drafts: what is settled at once stands on no other invoice.
  const settled = settlement && (await settleChange(transaction, settlement));
  const refunded: SettledChange[] = [];
  for (const refund of refunds) refunded.push(await settleChange(transaction, refund));
  await computeDrafts(stores, transaction, { subscription, drafts, now: author.now });
  return { ended, begun: added, settled, refunded };
}

/** After the running period has got another end: what is open of it says so before anybody makes it final. */
export async function computeOpenDrafts(
  stores: Stores,
  transaction: Transaction,
  { subscription, now }: { subscription: SubscriptionModel; now: Date },
): Promise<void> {
  const drafts = await listOpenDrafts(transaction, subscription, currentPeriod(subscription));
  await computeDrafts(stores, transaction, { subscription, drafts, now });
}

async function computeDrafts(
  stores: Stores,
  transaction: Transaction,
  { subscription, drafts, now }: { subscription: SubscriptionModel; drafts: readonly string[]; now: Date },
): Promise<void> {
  for (const invoice_id of drafts)
    await computeWithin(stores, transaction, { scope: toScope(subscription), invoice_id, now });
}

/** A line that would have lived no time is taken out. */
function deriveEndChanges(
  end: LineChangeEnd,
  { anchor, subscription, retained }: LineChangePlan,
): Partial<SubscriptionLineItemModel> {
  const { record, id } = end.item;
  const stays = retained.find(({ item_id, payers }) => item_id === id && payers.includes(id));
  return {
    end_date: formatMs(end.at),
    ends_with_price: false,
    ...(end.at <= toInstant(record.start_date) ? { status: 'deleted' as const } : {}),
    ...(stays ? { charged_until: formatMs(stays.until) } : {}),
    ...deriveAnchorChanges(anchor, end.item, subscription),
  };
}

/** Where a new period begins, what was charged in the old ones keeps them. */
function deriveAnchorChanges(
  anchor: string | null,
  item: BillableItem,
  subscription: SubscriptionModel,
): Partial<SubscriptionLineItemModel> {
  if (anchor === null) return {};
  const isOfSubscription = !hasOwnPeriods(item, billedSubscription(subscription));
  return { period_anchor: isOfSubscription ? anchor : formatMs(item.anchor_ms ?? item.start_ms) };
}

type LineChangePeriod = Pick<LineChangeInput, 'subscription' | 'current'>;
type LineStartContext = {
  readonly retained: readonly RetainedCharge[];
  readonly running: LineChangePeriod;
  readonly isProrated: boolean;
};

/** The lines as they will be, with what prices them. */
function buildBegunItems(change: LineChange, { retained, running, isProrated }: LineStartContext): BillableItem[] {
  const starts = change.begins.map((start) => {
    const { price, meter, continues } = start;
    // One that goes on in new periods was paid for in the old ones.
    const follows = start.follows ?? continues;
    const record = buildBegunRecord(start, change);
    const priced = { price, meter, subscription: change.subscription };
    const item = billableItem(record, priced);
    // What is not prorated is charged in full from its next period on.
    const isLater = !isProrated && isBilledImmediately(item) && item.billing_period !== 'ONETIME';
    const restarts = change.after !== undefined;
    const from = isLater ? computeChargedFrom(item, retained, { follows, running, restarts }) : null;
    record.charged_from = from === null ? null : formatMs(from);
    const isOne = !restarts && isOneCommitment(continues?.commitment, item.commitment);
    if (continues && (isOne || isTermContinued(continues.commitment, item.commitment)))
      record.commitment_line_id = continues.record.commitment_line_id ?? continues.id;
    return { record, priced, follows };
  });
  notePayers(starts, retained);
  return starts.map(({ record, priced }) => billableItem(record, priced));
}

/** Where the periods of its own are anchored that go on in the line that follows it; null where they are the subscription's. */
function derivePeriodAnchor({ record, ...item }: BillableItem, subscription: SubscriptionModel): string | null {
  if (record.period_anchor || !hasOwnPeriods(item, billedSubscription(subscription)))
    return record.period_anchor ?? null;
  return formatMs(item.anchor_ms ?? item.start_ms);
}

function buildBegunRecord(
  { follows, continues, terms }: LineStart,
  { subscription, author }: LineChange,
): SubscriptionLineItemModel {
  return {
    ...terms,
    ...createdBy(author),
    ...toScope(subscription),
    id: newId('subscription_line_item', author.now.getTime()),
    subscription_id: subscription.id,
    customer_id: subscription.customer_id,
    period_anchor: follows ? derivePeriodAnchor(follows, subscription) : null,
    follows_line_item_id: (follows ?? continues)?.id ?? null,
    charged_from: null,
    charged_until: null,
    paid_by_lines: null,
    commitment_line_id: null,
  } as unknown as SubscriptionLineItemModel;
}

function buildEnding({ item, at }: LineChangeEnd, invoiced: readonly InvoicedLine[]): EndingLineItem<BillableItem> {
  return { item, at, billedIn: (period) => computeBilledBefore(period, item, invoiced) };
}

/** A line begins once, and ends at one instant once. */
function deriveSettlementKey(ends: readonly LineChangeEnd[], begins: readonly BillableItem[]): string {
  const [begin] = begins;
  if (begin) return begin.id;
  return ends[0] ? `${ends[0].item.id}/${ends[0].at}` : '';
}

/** Drafts of the period before hold the advance charges of the running one. */
async function listOpenDrafts(
  database: Database,
  subscription: SubscriptionModel,
  current: Period,
): Promise<readonly string[]> {
  const drafts = await InvoiceModel.in(subscription, database)
    .select('id')
    .whereIn('subscription_id', [subscription.id, ...deriveGroupParentIds(subscription)])
    .where({
      invoice_status: 'DRAFT',
      status: 'published',
      billing_reason: 'SUBSCRIPTION_CYCLE',
      period_end: formatMs(current.start),
    })
    .orderBy('id');
  return drafts.map(({ id }) => id);
}

/** Its lines stand on the invoices of its parent. */
function deriveGroupParentIds({ subscription_type, parent_subscription_id }: SubscriptionModel): string[] {
  return subscription_type === 'grouped_invoicing' && parent_subscription_id ? [parent_subscription_id] : [];
}

async function addLines(
  transaction: Transaction,
  subscription: SubscriptionModel,
  begins: readonly BillableItem[],
): Promise<SubscriptionLineItemModel[]> {
  if (begins.length === 0) return [];
  const [last] = await SubscriptionLineItemModel.in(subscription, transaction)
    .select('position')
    .where({ subscription_id: subscription.id })
    .whereNotNull('position')
    .orderBy('position', 'desc')
    .limit(1);
  const first = (last?.position ?? -1) + 1;
  const records = begins.map(({ record }, index) => ({ ...record, position: first + index }));
  return SubscriptionLineItemModel.addAll(subscription, records, { database: transaction });
}
