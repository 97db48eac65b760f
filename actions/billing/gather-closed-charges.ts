/**
 * What stands on a subscription's other invoices, and which of its final usage charges have met new or corrected events
 * since: the source of adjustment lines. A meter whose definition has changed since is not asked again: what it counts of
 * the past is never billed to a closed period (docs/rules/invoices.md, "Late events").
 */
import { sumBilledLines } from '../../core/billing/credit-adjustments.ts';
import { type ClosedCharge, expectedEventCount } from '../../core/billing/late-events.ts';
import { filterPartialCharges, type PartialCharge } from '../../core/billing/partial-charges.ts';
import { chargeKey } from '../../core/billing/plan-invoice.ts';
import { Decimal, sumDecimals } from '../../core/decimal.ts';
import { groupBy } from '../../core/group-by.ts';
import { toComputedCharge } from '../../core/invoice/computed-from.ts';
import type { InvoiceStatus } from '../../core/invoice/record.ts';
import type { Scope } from '../../core/scope.ts';
import { type Milliseconds, toInstant } from '../../core/time/instant.ts';
import type { Period } from '../../core/time/period.ts';
import { currentRecorder } from '../../storage/cache/dependency-recorder.ts';
import { type LineOnInvoice, listLinesOnInvoices } from '../../storage/models/invoice-line-item.ts';
import type { SubscriptionModel } from '../../storage/models/subscription.ts';
import { hasCorrectionsSince } from '../../storage/progress/corrections.ts';
import type { Database } from '../../storage/stores.ts';
import { listReturnedCredits } from '../credit-notes/returned-as-credits.ts';
import type { BillableItem } from './billable-items.ts';
import { computeLimitedSince, recordedWindows } from './gather-allowances.ts';
import { type ChainedWindow, gatherClosedChains, hasEarlierUse, type RecordedCharge } from './gather-closed-chains.ts';
import type { UsageMeasure } from './measure-usage.ts';

export type InvoicedLine = {
  readonly key: string;
  readonly service: Period;
  readonly line: LineOnInvoice['line'];
  readonly invoice_status: InvoiceStatus;
  /** Where the period of its invoice ends. */
  readonly invoiced_until: Milliseconds | null;
  /** The customer to whom its invoice went. */
  readonly billed_to: string;
  /** Of usage that was invoiced before its period was over: no charge of its own. */
  readonly is_partial: boolean;
};

/** Whether it gives back what another line had charged in advance (docs/rules/proration.md, "Changes inside a period"). */
export function isCredit({ line }: InvoicedLine): boolean {
  return line.price_type === 'FIXED' && new Decimal(line.amount).isNegative();
}

/**
 * Every line of the subscription on an invoice that is neither void nor the one being computed, oldest first: also on those of
 * a parent with which it was invoiced at the time. `since`: only
 * those for the time that ends then or later; `fixed_since`: only those of fixed charges that do.
 */
export async function gatherInvoicedLines(
  database: Database,
  subscription: SubscriptionModel,
  { except, ...bounds }: { except?: string | undefined; since?: Milliseconds; fixed_since?: Milliseconds } = {},
): Promise<InvoicedLine[]> {
  const found = await listLinesOnInvoices(subscription, { subscription_id: subscription.id, ...bounds }, database);
  // Those of a parent with which it was invoiced, too.
  currentRecorder()?.dependsOn?.(found.flatMap(({ invoice }) => invoice.subscription_id ?? []));
  const lines = found.filter(({ line }) => line.invoice_id !== except);
  return lines.map(({ line, invoice: { invoice_status, billing_reason, customer_id, period_end } }) => {
    const service = { start: toInstant(line.period_start ?? ''), end: toInstant(line.period_end ?? '') };
    const key = chargeKey(line.subscription_line_item_id ?? '', service);
    // A threshold invoice may also correct closed periods; such a line is not partial.
    const is_partial = billing_reason === 'THRESHOLD_BILLING' && !line.parent_line_item_id;
    const invoiced_until = period_end ? toInstant(period_end) : null;
    return { key, service, line, invoice_status, invoiced_until, billed_to: customer_id, is_partial };
  });
}

/** Whether it says what late or corrected events, or a change, made of another line. */
export function isCorrection({ line }: InvoicedLine): boolean {
  return Boolean(line.parent_line_item_id);
}

type ClosedChargesInput = {
  readonly lines: readonly InvoicedLine[];
  readonly items: readonly BillableItem[];
  readonly before: number;
  /** Whether events were corrected since (`isCorrected`). */
  readonly corrected: boolean;
};

/**
 * Of services that ended by `before`, the end of the period that is being invoiced: what came late for a later period is a line
 * on an invoice behind that one, and never on one of an earlier period that is computed again.
 */
export async function gatherClosedCharges(
  { lines, items, before, corrected }: ClosedChargesInput,
  measure: UsageMeasure,
): Promise<ClosedCharge<BillableItem>[]> {
  const closed: ClosedCharge<BillableItem>[] = [];
  const chained: ChainedWindow[] = [];
  const partial = partialCharges(lines);
  const byItem = groupBy(
    lines.filter((one) => !one.is_partial && !isCorrectedLater(one, before)),
    ({ line }) => line.subscription_line_item_id,
  );
  for (const item of items) {
    if (item.price_type !== 'USAGE') continue;
    const windows = closedWindows(item, byItem.get(item.id) ?? []).filter(({ own }) => own.service.end <= before);
    const isSettled = !windows.some(isCarrying) && !windows.some(hasUseBefore(windows));
    const isSame = !corrected && isSettled && !(await hasGrown(item, windows, measure));
    for (const window of windows) {
      const charge = recordedCharge(item, window, partial);
      if (window.newest.chain)
        chained.push({ charge, chain: window.newest.chain, isCarrying: isCarrying(window), isSame });
      if (isSame || window.newest.chain) continue;
      const { usage_window, limited, service } = charge;
      const measured = await measure(item, usage_window, { limited, service });
      const isOther = measured.event_count !== charge.billed_event_count || hasEarlierUse(charge);
      if (corrected || isOther || isCarrying(window)) closed.push({ ...charge, measured });
    }
  }
  return [...closed, ...(await gatherClosedChains(chained, { items, corrected }, measure))];
}

/** What the draft of a later period says of an earlier charge is computed anew, behind this one, before it is final. */
function isCorrectedLater(one: InvoicedLine, before: Milliseconds): boolean {
  return isCorrection(one) && one.invoice_status === 'DRAFT' && (one.invoiced_until ?? before) > before;
}

/** What credit notes and refunds gave back of a charge is not given back again by what corrects it. */
export async function subtractReturned(
  database: Database,
  closed: readonly ClosedCharge<BillableItem>[],
  lines: readonly InvoicedLine[],
): Promise<readonly ClosedCharge<BillableItem>[]> {
  if (closed.length === 0) return closed;
  const items = new Set(closed.map(({ item }) => item.id));
  const own = lines.filter(({ line }) => items.has(line.subscription_line_item_id ?? ''));
  const returned = await listReturnedCredits(database, closed[0]!.item.record, own);
  return closed.map((charge) => {
    const { id } = charge.item;
    const of = returned.filter((one) => one.line.subscription_line_item_id === id && overlaps(one, charge.service));
    return { ...charge, returned: of.map(({ line }) => line) };
  });
}

function overlaps({ service }: InvoicedLine, { start, end }: Period): boolean {
  return service.start < end && start < service.end;
}

/** The lines of a charge, and what the newest of them says was counted: most often that tells that nothing came since. */
type ClosedWindow = {
  /** The charge itself, not what corrects it. */
  readonly own: InvoicedLine;
  readonly group: readonly [InvoicedLine, ...InvoicedLine[]];
  readonly newest: NonNullable<LineOnInvoice['line']['computed_from']>;
  readonly window: Period;
  readonly event_count: number;
};

/** Of it more was invoiced before its period was over than could be set off since. */
function isCarrying({ newest: { carried_amount } }: Pick<ClosedWindow, 'newest'>): boolean {
  return Boolean(carried_amount) && new Decimal(carried_amount!).gt(0);
}

/** One per service period. */
function closedWindows(item: BillableItem, own: readonly InvoicedLine[]): ClosedWindow[] {
  const groups = groupBy(own, ({ key }) => key);
  return [...groups.values()].flatMap((group) => closedWindow(item, group) ?? []);
}

function closedWindow(item: BillableItem, group: ClosedWindow['group']): ClosedWindow | undefined {
  // Where all that is left are corrections the charge itself is void: it is open until its period is billed again.
  const own = group.find((one) => !isCorrection(one));
  const newest = group.at(-1)!.line.computed_from;
  // A draft is computed anew before it becomes final: it takes its late events in by itself.
  if (own === undefined || own.invoice_status === 'DRAFT' || own.line.price_type !== 'USAGE') return undefined;
  if (!newest?.window_start || !newest.window_end || newest.meter_version !== String(item.meter?.version))
    return undefined;
  const window = { start: toInstant(newest.window_start), end: toInstant(newest.window_end) };
  return { own, group, newest, window, event_count: newest.event_count ?? 0 };
}

/** The same of one among the windows of an item: what came late before all of them is in none of them. */
function hasUseBefore(windows: readonly ClosedWindow[]): (one: ClosedWindow) => boolean {
  const first = Math.min(...windows.map(({ window }) => window.start));
  return ({ newest }) => computeLimitedSince(recordedWindows(newest)) < first;
}

/** What was billed for it in all. */
function recordedCharge(
  item: BillableItem,
  { own, group, newest, window, event_count }: ClosedWindow,
  partial: readonly PartialCharge[],
): RecordedCharge {
  const { service } = own;
  const before = filterPartialCharges(partial, item.id, service);
  const computed = [...before, ...group.map(({ line }) => toComputedCharge(line))];
  const billed = sumBilledLines([...before.flatMap(({ billed }) => billed ?? []), ...group.map(({ line }) => line)]);
  const isEdited = group.some(({ line }) => line.computed_from?.edited);
  return {
    item,
    service,
    usage_window: window,
    limited: recordedWindows(newest),
    billed_amount: sumDecimals(computed.map(({ amount }) => new Decimal(amount))),
    billed_base_amount: sumDecimals(
      group.map(({ line }) => new Decimal(line.computed_from?.base_amount ?? toComputedCharge(line).amount)),
    ),
    billed_quantity: sumDecimals(computed.map(({ quantity }) => new Decimal(quantity))),
    billed_event_count: event_count,
    invoice_line_item_id: own.line.id,
    carried: new Decimal(newest.carried_amount ?? 0),
    billed,
    ...(isEdited ? { max_credit: Decimal.max(0, billed.amount) } : {}),
  };
}

/** What was invoiced of usage before its period was over. */
export function partialCharges(lines: readonly InvoicedLine[]): PartialCharge[] {
  return lines.filter(({ is_partial }) => is_partial).map(partialCharge);
}

/** The same with what credit notes and refunds have given back of it. */
export async function loadPartialCharges(
  database: Database,
  scope: Scope,
  lines: readonly InvoicedLine[],
): Promise<PartialCharge[]> {
  const partial = lines.filter(({ is_partial }) => is_partial);
  const returned = await listReturnedCredits(database, scope, partial);
  return [...partial.map(partialCharge), ...returned.map(toReturnedCharge)];
}

function toReturnedCharge(one: InvoicedLine): PartialCharge {
  return { ...partialCharge(one), is_returned: true };
}

/** What invoices of later periods have said of a charge. */
export function toLaterCharge(one: InvoicedLine): PartialCharge {
  return { ...partialCharge(one), is_later: true };
}

function partialCharge({ line, service }: InvoicedLine): PartialCharge {
  return {
    item_id: line.subscription_line_item_id ?? '',
    service,
    amount: new Decimal(toComputedCharge(line).amount),
    quantity: new Decimal(toComputedCharge(line).quantity),
    billed: line,
  };
}

/** Until when usage was invoiced before its period was over: of a line, or of all of them; null where it was not. */
export function invoicedUntil(lines: readonly InvoicedLine[], itemId?: string): Milliseconds | null {
  const those = lines.filter(
    ({ is_partial, line }) => is_partial && (itemId === undefined || line.subscription_line_item_id === itemId),
  );
  return those.length === 0 ? null : Math.max(...those.map(({ service }) => service.end));
}

/** A voided or replaced event may leave the count as it was: after one, every charge is measured again. */
export async function isCorrected(database: Database, lines: readonly InvoicedLine[]): Promise<boolean> {
  const final = lines.filter(({ invoice_status }) => invoice_status !== 'DRAFT');
  if (final.length === 0) return false;
  if (final.some(({ line }) => line.price_type === 'USAGE'))
    currentRecorder()?.dependsOn?.([`${final[0]!.line.environment_id}/corrections`]);
  const since = Math.min(...final.map(({ line }) => toInstant(line.created_at)));
  return hasCorrectionsSince(database, final[0]!.line, new Date(since));
}

/** One read over all closed windows tells whether anything came late at all; most often nothing did. */
async function hasGrown(item: BillableItem, windows: readonly ClosedWindow[], measure: UsageMeasure): Promise<boolean> {
  if (windows.length <= 1) return windows.length === 1;
  const expected = expectedEventCount(windows);
  if (expected === undefined) return true;
  const whole = {
    start: Math.min(...windows.map(({ window }) => window.start)),
    end: Math.max(...windows.map(({ window }) => window.end)),
  };
  return (await measure(item, whole, { limited: [] })).event_count !== expected;
}
