/**
 * Events that arrive, or are corrected, after the invoice of their period is final: the difference becomes a line of the
 * next invoice, with the reason (docs/rules/invoices.md, "Late events"). A difference in the customer's favour lowers the
 * invoice to 0 at most; what does not fit comes off the invoice after.
 */
import { Decimal, ZERO } from '../decimal.ts';
import type { Period } from '../time/period.ts';
import { type LineAmount, type MeasuredUsage, type PlannedLine, type PricedItem, usageCharge } from './line-amount.ts';

/** A usage charge that stands on final invoices, and what its meter measures for the same window today. */
export type ClosedCharge<Item extends PricedItem = PricedItem> = {
  readonly item: Item;
  readonly service: Period;
  readonly usage_window: Period;
  /** Sums over the charge's own line and its corrections so far. */
  readonly billed_amount: Decimal;
  readonly billed_quantity: Decimal;
  readonly billed_event_count: number;
  readonly invoice_line_item_id: string;
  readonly measured: MeasuredUsage;
};

export function correctionsOf<Item extends PricedItem>(
  closed: readonly ClosedCharge<Item>[],
  { currency, available }: { currency: string; available: Decimal },
): PlannedLine<Item>[] {
  const differences = closed
    .map((charge) => ({
      charge,
      today: usageCharge(charge.item, charge.usage_window, { measured: charge.measured, currency }),
    }))
    .map(({ charge, today }) => ({ charge, today, amount: today.amount.minus(charge.billed_amount) }));
  // Debts first: they make room for what is given back.
  const ordered = [...differences].sort((a, b) => b.amount.comparedTo(a.amount));
  let room = available;
  return ordered.flatMap(({ charge, today, amount }) => {
    const granted = Decimal.max(amount, room.negated());
    room = room.plus(granted);
    const isWhole = granted.eq(amount);
    const quantity = isWhole ? today.quantity.minus(charge.billed_quantity) : ZERO;
    if (granted.isZero() && quantity.isZero()) return [];
    return [correctionLine(charge, { quantity, amount: granted, computed_from: today.computed_from }, isWhole)];
  });
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
