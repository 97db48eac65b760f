/**
 * Ends and begins lines of a subscription inside a period and settles the credits and charges. Modifications, plan changes and
 * cancellations all use it (docs/rules/proration.md, "Changes inside a period"). `planLineChange` reads and decides but writes nothing, so
 * a preview consists of it alone; `applyLineChange` (apply-line-change.ts) applies the plan. An opening invoice that is still a draft is
 * recomputed with the changed lines instead of being credited.
 */
import { invalid } from '../../../core/foundation/error.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { formatMs } from '../../../core/foundation/time/instant.ts';
import { isBilledImmediately, type LineChangeInput, planChangeLines } from '../../../core/rating/change.ts';
import { hasOwnPeriods, nextPeriod } from '../../../core/rating/charges.ts';
import { isOneCommitment, isTermContinued } from '../../../core/rating/commitments/part.ts';
import type { LineItemTerms } from '../../../core/subscriptions/lines.ts';
import type { PRORATION_BEHAVIORS } from '../../../core/subscriptions/record.ts';
import { creditsUnusedTime } from '../../../core/subscriptions/schedule.ts';
import { checkThreshold } from '../../../core/subscriptions/terms.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import type { PriceModel } from '../../../storage/models/catalog/price.ts';
import type { MeterModel } from '../../../storage/models/metering/meter.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import { SubscriptionScheduleModel } from '../../../storage/models/subscriptions/subscription-schedule.ts';
import {
  filterFinalLines,
  gatherInvoicedLines,
  type InvoicedLine,
  invoicedUntil,
} from '../../invoicing/billing/gather-closed-charges.ts';
import { listReturnedCredits } from '../../invoicing/credit-notes/returned-as-credits.ts';
import { loadChargeTerms, type Settlement } from '../../invoicing/invoices/settle-change.ts';
import {
  type BillableItem,
  toBillableItem,
  toBilledSubscription,
  toRunningPeriod,
  toScope,
} from '../../rating/billable-items.ts';
import { loadPayer } from '../../subscriptions/load-payer.ts';
import { listOpenDrafts } from './open-drafts.ts';
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
  /** The line that the new line replaces. If the replaced line has billing periods of its own, they continue unchanged. */
  readonly follows?: BillableItem;
  /** The line whose commitment the new line takes over; the commitment's term continues. */
  readonly continues?: BillableItem;
};

type LineChange = {
  readonly subscription: SubscriptionModel;
  /** The subscription after the change, if a new period begins with the change. */
  readonly after?: SubscriptionModel | undefined;
  /** Lines that ended before the change, or are charged once; set only if a new period begins. */
  readonly ended?: readonly BillableItem[];
  readonly ends: readonly LineChangeEnd[];
  readonly begins: readonly LineStart[];
  readonly proration_behavior: (typeof PRORATION_BEHAVIORS)[number];
  /**
   * Set for a change at the end of the running period. The regular invoice at that instant charges the new lines. When the change is
   * executed, they are therefore charged at once only as far as they offset credits. A preview always shows their charges.
   */
  readonly atPeriodEnd?: 'previewed' | 'done' | undefined;
  readonly author: Author;
};

export type LineChangePlan = {
  readonly subscription: SubscriptionModel;
  readonly ends: readonly LineChangeEnd[];
  /** New lines with their future ids. */
  readonly begins: readonly BillableItem[];
  /** Null if nothing is credited or charged at once. */
  readonly settlement: Settlement | null;
  /** Credits to other customers who were billed before the payer changed. */
  readonly refunds: readonly Settlement[];
  /** Open drafts of the running period, which are recomputed. */
  readonly drafts: readonly string[];
  /** Advance charges that remain because the change is not prorated. */
  readonly retained: readonly RetainedCharge[];
  /**
   * Lines that ended earlier without proration, so that their advance charges have paid for lines that this change ends. These charges now
   * count only until this change.
   */
  readonly released: readonly LineChangeEnd[];
  /** Anchor of the old periods, in which the ended lines were charged; set only if a new period begins. */
  readonly anchor: string | null;
  /** Lines that this change does not end and that retain the old periods. */
  readonly anchored: readonly BillableItem[];
  readonly author: Author;
};

/** Plans a change of lines. `database` is the transaction that holds the lock on the subscription's row, or the pool for a preview. */
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
  // Nothing is invoiced yet for a draft, for a trial, or for a subscription that starts later.
  const isAhead = AHEAD.includes(subscription.subscription_status) || Boolean(subscription.opens_at);
  const isOpen = (item: BillableItem) => isAhead || (drafts.length > 0 && !hasOwnPeriods(item, period.subscription));
  const isProrated = change.proration_behavior === 'create_prorations';
  const isLeft = (item: BillableItem) => isAhead || (after === undefined && isOpen(item));
  // If the new period begins at the start of the running one, and that is not invoiced yet, its lines are replaced and retain no charges.
  const isReplaced = (end: LineChangeEnd) => after !== undefined && end.at <= period.current.start && isOpen(end.item);
  const ofOld = isProrated || isAhead ? [] : ends.filter((end) => !isReplaced(end));
  const retained = ofOld.flatMap((end) => computeRetainedCharge(end, invoiced, period) ?? []);
  const begins = buildBegunItems(change, { retained, running: next, isProrated: isProrated || isAhead });
  const released = isProrated && !isAhead ? await gatherPayers(database, subscription, ends) : [];
  const settled = isProrated ? [...ends, ...released].filter(({ item }) => !isOpen(item)) : [];
  const { currency } = subscription;
  const before = [...invoiced, ...(await listReturnedCredits(database, subscription, invoiced))];
  const endings = settled.map((end) => ({ ...end, billed_lines: filterFinalLines(before, end.item.id) }));
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
    retained,
    released,
    anchor,
    anchored: change.ended ?? [],
    author,
  };
}

/** Returns the period after the running one; null if the subscription ends before it. */
function deriveFollowingPeriod({ subscription, current }: LineChangePeriod): LineChangePeriod | null {
  const following = nextPeriod(current.end, subscription);
  return following && { subscription, current: following };
}

type SettlementParts = {
  readonly credits: Settlement['lines'];
  readonly charges: Settlement['lines'];
  readonly invoiced: readonly InvoicedLine[];
};

/** Builds the settlement of the current payer, and refunds to other customers who were billed. */
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

/**
 * Returns the subscription as it was charged. A scheduled cancellation that will credit unused time is ignored, because
 * it has not shortened the advance charges. A line that ends earlier is therefore credited in full now.
 */
async function loadChargedSubscription(
  database: Database,
  subscription: SubscriptionModel,
): Promise<SubscriptionModel> {
  if (!subscription.cancel_at && !subscription.cancel_at_period_end) return subscription;
  const pending = await SubscriptionScheduleModel.findPending(subscription, subscription.id, database);
  return pending && creditsUnusedTime(pending) ? withoutCancellation(subscription) : subscription;
}

/** Returns the subscription without its scheduled cancellation, as it was charged before. */
export function withoutCancellation(subscription: SubscriptionModel): SubscriptionModel {
  return Object.assign(subscription.$clone(), { cancel_at: null, cancel_at_period_end: false });
}

/** Refuses to end a line before the instant up to which progressive billing has invoiced its usage, because that usage stays charged. */
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

type LineChangePeriod = Pick<LineChangeInput, 'subscription' | 'current'>;
type LineStartContext = {
  readonly retained: readonly RetainedCharge[];
  readonly running: LineChangePeriod;
  readonly isProrated: boolean;
};

/** Builds the new lines with their prices and meters. */
function buildBegunItems(change: LineChange, { retained, running, isProrated }: LineStartContext): BillableItem[] {
  const starts = change.begins.map((start) => {
    const { price, meter, continues } = start;
    // A line that continues in new periods counts as following its old line, whose charge in the old periods may still pay for it.
    const follows = start.follows ?? continues;
    const record = buildBegunRecord(start, change);
    const priced = { price, meter, subscription: change.subscription };
    const item = toBillableItem(record, priced);
    // If the change is not prorated, a new line is charged in full from its next period on.
    const isLater = !isProrated && isBilledImmediately(item) && item.billing_period !== 'ONETIME';
    const restarts = change.after !== undefined;
    const from = isLater ? computeChargedFrom(item, retained, { follows, running, restarts }) : null;
    record.charged_from = from === null ? null : formatMs(from);
    const isOne = !restarts && isOneCommitment(continues?.commitment, item.commitment);
    if (continues && (isOne || isTermContinued(continues.commitment, item.commitment)))
      record.commitment_line_id = continues.line_item.commitment_line_id ?? continues.id;
    return { record, priced, follows };
  });
  notePayers(starts, retained);
  return starts.map(({ record, priced }) => toBillableItem(record, priced));
}

/** Anchor of the line's own periods, which continue in the line that follows it; null if the line has the periods of the subscription. */
function derivePeriodAnchor({ line_item, ...item }: BillableItem, subscription: SubscriptionModel): string | null {
  if (line_item.period_anchor || !hasOwnPeriods(item, toBilledSubscription(subscription)))
    return line_item.period_anchor ?? null;
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

/** Derives a key that is unique per change: a line begins once, and it ends at one instant only once. */
function deriveSettlementKey(ends: readonly LineChangeEnd[], begins: readonly BillableItem[]): string {
  const [begin] = begins;
  if (begin) return begin.id;
  return ends[0] ? `${ends[0].item.id}/${ends[0].at}` : '';
}
