/**
 * Events that arrive, or are corrected, after the invoice of their period is final: the difference becomes a line of the
 * next invoice, with the reason (docs/rules/invoices.md, "Late events"). A difference in the customer's favour lowers the
 * invoice to 0 at most; what does not fit comes off the invoice after.
 */
import type { CommitmentPart } from '../commitment/line.ts';
import { drawFrom, type Pool } from '../commitment/pool.ts';
import { Decimal, ZERO } from '../decimal.ts';
import { roundMoney } from '../money.ts';
import type { Period } from '../time/period.ts';
import { baseAmountOf } from './committed-lines.ts';
import { type LineAmount, type MeasuredUsage, type PlannedLine, type PricedItem, usageCharge } from './line-amount.ts';

/** A usage charge that stands on final invoices, and what its meter measures for the same window today. */
export type ClosedCharge<Item extends PricedItem = PricedItem> = {
  readonly item: Item;
  readonly service: Period;
  readonly usage_window: Period;
  /** Sums over the charge's own line and its corrections so far. */
  readonly billed_amount: Decimal;
  /** The same before commitments. */
  readonly billed_base_amount?: Decimal;
  readonly billed_quantity: Decimal;
  readonly billed_event_count: number;
  readonly invoice_line_item_id: string;
  readonly measured: MeasuredUsage;
};

/** How commitments bear on a charge that is looked at again. */
export type CommittedBefore<Item extends PricedItem> = {
  /** Which part of the line's own commitment. */
  partOf(item: Item, service: Period): CommitmentPart | undefined;
  /** What the charge is drawn from together with others; null where it stands by itself. */
  poolOf(item: Item, service: Period): Pool | null;
  /** To be told before the next one is asked for. */
  drew(item: Item, service: Period, base_amount: Decimal): void;
};

type Question<Item extends PricedItem> = {
  readonly currency: string;
  readonly available: Decimal;
  readonly committed?: CommittedBefore<Item>;
};

const UNCOMMITTED: CommittedBefore<PricedItem> = { partOf: () => undefined, poolOf: () => null, drew: () => undefined };

export function correctionsOf<Item extends PricedItem>(
  closed: readonly ClosedCharge<Item>[],
  { currency, available, committed = UNCOMMITTED }: Question<Item>,
): PlannedLine<Item>[] {
  const differences = closed.map((charge) => differenceOf(charge, { currency, committed }));
  // Debts first: they make room for what is given back.
  const ordered = [...differences].sort((a, b) => b.amount.comparedTo(a.amount));
  let room = available;
  return ordered.flatMap(({ charge, today, amount, base_amount }) => {
    const granted = Decimal.max(amount, room.negated());
    room = room.plus(granted);
    const isWhole = granted.eq(amount);
    const quantity = isWhole ? today.quantity.minus(charge.billed_quantity) : ZERO;
    if (granted.isZero() && quantity.isZero()) return [];
    const base = base_amount && (isWhole ? base_amount : base_amount.times(granted).dividedBy(amount));
    const computed_from = { ...today.computed_from, ...(base === null ? {} : { base_amount: base.toFixed() }) };
    return [correctionLine(charge, { quantity, amount: granted, computed_from }, isWhole)];
  });
}

type Difference<Item extends PricedItem> = {
  charge: ClosedCharge<Item>;
  today: LineAmount;
  amount: Decimal;
  /** What it grew by before commitments; null where none is concerned. */
  base_amount: Decimal | null;
};

function differenceOf<Item extends PricedItem>(
  charge: ClosedCharge<Item>,
  { currency, committed }: { currency: string; committed: CommittedBefore<Item> },
): Difference<Item> {
  const { item, service, usage_window, measured, billed_amount, billed_base_amount = billed_amount } = charge;
  const part = committed.partOf(item, service);
  const today = usageCharge(item, usage_window, { measured, currency, part });
  const base_amount = baseAmountOf(today).minus(billed_base_amount);
  const pool = committed.poolOf(item, service);
  if (pool === null) {
    const isCommitted = today.computed_from.base_amount !== undefined;
    return { charge, today, amount: today.amount.minus(billed_amount), base_amount: isCommitted ? base_amount : null };
  }
  const { utilized, overage } = drawFrom(pool, base_amount);
  committed.drew(item, service, base_amount);
  return { charge, today, amount: roundMoney(utilized.plus(overage), currency), base_amount };
}

function correctionLine<Item extends PricedItem>(
  charge: ClosedCharge<Item>,
  difference: LineAmount,
  isWhole: boolean,
): PlannedLine<Item> {
  const late = charge.measured.event_count - charge.billed_event_count;
  return {
    item: charge.item,
    service: charge.service,
    display_name: `${charge.item.display_name} (late events)`,
    parent_line_item_id: charge.invoice_line_item_id,
    quantity: difference.quantity,
    amount: difference.amount,
    computed_from: {
      ...difference.computed_from,
      // The old count stays on record until all is given back: the next invoice then looks at this charge again.
      event_count: isWhole ? charge.measured.event_count : charge.billed_event_count,
      reason:
        late === 0
          ? 'corrected_events: events of this period were corrected after its invoice was final'
          : `late_events: ${late} event${late === 1 ? '' : 's'} of this period came after its invoice was final`,
    },
  };
}

/** What an invoice line recorded of a closed usage charge. */
export type RecordedWindow = { readonly window: Period; readonly event_count: number };

/**
 * How many events one read over all of these windows would count if none had come late; undefined where the windows
 * neither follow one another nor grow from one start, so that each must be read for itself.
 */
export function expectedEventCount(recorded: readonly RecordedWindow[]): number | undefined {
  const sorted = [...recorded].sort((a, b) => a.window.start - b.window.start || a.window.end - b.window.end);
  const first = sorted[0];
  const last = sorted.at(-1);
  if (first === undefined || last === undefined) return 0;
  if (sorted.every(({ window }) => window.start === first.window.start)) return last.event_count;
  const isTiled = sorted.every(({ window }, index) => index === 0 || sorted[index - 1]!.window.end === window.start);
  return isTiled ? sorted.reduce((sum, { event_count }) => sum + event_count, 0) : undefined;
}
