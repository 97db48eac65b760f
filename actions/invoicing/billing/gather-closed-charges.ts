/**
 * Lists the invoice lines that a subscription already has, and finds the closed charges (usage charges on final invoices) that may need a
 * correction line, for example because events were added or corrected since. If the definition of a meter has changed, its closed charges
 * are not measured again, so that the new definition never bills a closed period (docs/rules/invoices.md, "Late events").
 */

import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import type { InvoiceStatus } from '../../../core/invoicing/invoice/record.ts';
import { toComputedCharge } from '../../../core/rating/computed-from.ts';
import { sumBilledLines } from '../../../core/rating/credit-adjustments.ts';
import { type ClosedCharge, expectedEventCount } from '../../../core/rating/late-events.ts';
import { filterPartialCharges, type PartialCharge } from '../../../core/rating/partial-charges.ts';
import { chargeKey } from '../../../core/rating/plan-invoice.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import {
  type InvoicedItem,
  type LineOnInvoice,
  listLinesOnInvoices,
} from '../../../storage/models/invoicing/invoice-line-item.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { hasCorrectionsSince } from '../../../storage/progress/corrections.ts';
import { computeLimitedSince, recordedWindows } from '../../rating/allowances/gather-allowances.ts';
import type { BillableItem } from '../../rating/billable-items.ts';
import {
  type ChainedWindow,
  gatherClosedChains,
  hasEarlierUse,
  type RecordedCharge,
} from '../../rating/gather-closed-chains.ts';
import type { UsageMeasure } from '../../rating/measure-usage.ts';
import { listReturnedCredits } from '../credit-notes/returned-as-credits.ts';

export type InvoicedLine = {
  readonly key: string;
  readonly service: Period;
  readonly line: LineOnInvoice['line'];
  readonly invoice_status: InvoiceStatus;
  /** End of the period of the invoice that contains the charge. */
  readonly invoiced_until: Milliseconds | null;
  /** Customer of the invoice that contains the charge. */
  readonly billed_to: string;
  /** True for usage that progressive billing invoiced before the period was over. The invoice of the period subtracts it. */
  readonly is_partial: boolean;
};

/**
 * Every line of the subscription on an invoice that is neither void nor `except`, oldest first. Lines on invoices of a parent that included
 * the subscription are listed, too. `since` returns only lines whose service ends then or later; `fixed_since` limits only fixed charges in
 * this way. `line_items` are all lines of the subscription, if the caller has read them.
 */
export async function gatherInvoicedLines(
  database: Database,
  subscription: SubscriptionModel,
  { except, ...query }: InvoicedLinesBounds = {},
): Promise<InvoicedLine[]> {
  const found = await listLinesOnInvoices(subscription, { subscription_id: subscription.id, ...query }, database);
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

type InvoicedLinesBounds = {
  readonly except?: string | undefined;
  readonly since?: Milliseconds;
  readonly fixed_since?: Milliseconds;
  readonly line_items?: readonly InvoicedItem[];
};

/** Lines of an item that are on final invoices. */
export function filterFinalLines(lines: readonly InvoicedLine[], item_id: string): InvoicedLine[] {
  return lines.filter(
    ({ line, invoice_status }) => line.subscription_line_item_id === item_id && invoice_status !== 'DRAFT',
  );
}

/** Whether the line corrects another line after late or corrected events, or after a change. */
export function isCorrection({ line }: InvoicedLine): boolean {
  return Boolean(line.parent_line_item_id);
}

type ClosedChargesInput = {
  readonly lines: readonly InvoicedLine[];
  readonly items: readonly BillableItem[];
  readonly before: number;
  /** Whether events were corrected since the lines were computed (`isCorrected`). */
  readonly corrected: boolean;
};

/**
 * Gathers closed charges whose service ended by `before`, the end of the period that is being invoiced. If an earlier invoice is
 * recomputed, late usage of periods after it stays on later invoices.
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

/**
 * Whether the line is a correction on the draft of a later period. It does not count yet, because that draft is recomputed after this
 * invoice.
 */
function isCorrectedLater(one: InvoicedLine, before: Milliseconds): boolean {
  return isCorrection(one) && one.invoice_status === 'DRAFT' && (one.invoiced_until ?? before) > before;
}

/**
 * Subtracts the amounts that credit notes and refunds have credited, so that a correction does not credit them again.
 */
export async function subtractReturned(
  database: Database,
  closed: readonly ClosedCharge<BillableItem>[],
  lines: readonly InvoicedLine[],
): Promise<readonly ClosedCharge<BillableItem>[]> {
  if (closed.length === 0) return closed;
  const items = new Set(closed.map(({ item }) => item.id));
  const own = lines.filter(({ line }) => items.has(line.subscription_line_item_id ?? ''));
  const returned = await listReturnedCredits(database, closed[0]!.item.line_item, own);
  return closed.map((charge) => {
    const { id } = charge.item;
    const of = returned.filter((one) => one.line.subscription_line_item_id === id && overlaps(one, charge.service));
    return { ...charge, returned: of.map(({ line }) => line) };
  });
}

function overlaps({ service }: InvoicedLine, { start, end }: Period): boolean {
  return service.start < end && start < service.end;
}

/**
 * A charge that was invoiced before: its lines, and the event count of the newest one. If a new count is equal, no event has arrived since.
 */
type ClosedWindow = {
  /** The charge itself, not its corrections. */
  readonly own: InvoicedLine;
  readonly group: readonly [InvoicedLine, ...InvoicedLine[]];
  readonly newest: NonNullable<LineOnInvoice['line']['computed_from']>;
  readonly window: Period;
  readonly event_count: number;
};

/** Whether an amount is carried forward: progressive billing invoiced it in excess, and later invoices could not fully offset it. */
function isCarrying({ newest: { carried_amount } }: Pick<ClosedWindow, 'newest'>): boolean {
  return Boolean(carried_amount) && new Decimal(carried_amount!).gt(0);
}

/** Lists the windows of an item's charges, one per service period. */
function closedWindows(item: BillableItem, own: readonly InvoicedLine[]): ClosedWindow[] {
  const groups = groupBy(own, ({ key }) => key);
  return [...groups.values()].flatMap((group) => closedWindow(item, group) ?? []);
}

function closedWindow(item: BillableItem, group: ClosedWindow['group']): ClosedWindow | undefined {
  // If only corrections remain, the invoice of the charge itself was voided. The charge is not closed until its period is billed again.
  const own = group.find((one) => !isCorrection(one));
  const newest = group.at(-1)!.line.computed_from;
  // A draft is recomputed before it becomes final and includes its late events.
  if (own === undefined || own.invoice_status === 'DRAFT' || own.line.price_type !== 'USAGE') return undefined;
  if (!newest?.window_start || !newest.window_end || newest.meter_version !== String(item.meter?.version))
    return undefined;
  const window = { start: toInstant(newest.window_start), end: toInstant(newest.window_end) };
  return { own, group, newest, window, event_count: newest.event_count ?? 0 };
}

/**
 * Whether usage before the first window counts toward a limit of the charge. Late events of that time are in no window, so comparing event
 * counts would miss them.
 */
function hasUseBefore(windows: readonly ClosedWindow[]): (one: ClosedWindow) => boolean {
  const first = Math.min(...windows.map(({ window }) => window.start));
  return ({ newest }) => computeLimitedSince(recordedWindows(newest)) < first;
}

/** Total billed for the charge. */
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

/** Usage invoiced by progressive billing. */
export function partialCharges(lines: readonly InvoicedLine[]): PartialCharge[] {
  return lines.filter(({ is_partial }) => is_partial).map(partialCharge);
}

/** Loads the partial charges, and the amounts that credit notes and refunds have credited of each. */
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

/** Converts a later invoice's correction of a charge to a partial charge, which the recomputed charge offsets. */
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

/** Returns the end of the usage that progressive billing has invoiced, for one line or for all; null if it invoiced none. */
export function invoicedUntil(lines: readonly InvoicedLine[], itemId?: string): Milliseconds | null {
  const those = lines.filter(
    ({ is_partial, line }) => is_partial && (itemId === undefined || line.subscription_line_item_id === itemId),
  );
  return those.length === 0 ? null : Math.max(...those.map(({ service }) => service.end));
}

/**
 * Whether events were voided or replaced since the lines were computed. A correction may leave the event count
 * unchanged, so every usage charge is then measured again.
 */
export async function isCorrected(database: Database, lines: readonly InvoicedLine[]): Promise<boolean> {
  const final = lines.filter(({ invoice_status, line }) => invoice_status !== 'DRAFT' && line.price_type === 'USAGE');
  if (final.length === 0) return false;
  const since = Math.min(...final.map(({ line }) => toInstant(line.created_at)));
  return hasCorrectionsSince(database, final[0]!.line, new Date(since));
}

/** Whether events were added to the closed windows. One read covers all windows, because usually no event was added. */
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
