/** Compares the lines of an invoice before and after a correction of an event (docs/rules/events.md, "What a correction would change"). */
import { type Decimal, ZERO } from '../../foundation/decimal.ts';
import { groupBy } from '../../foundation/group-by.ts';
import type { InvoiceLineItem } from './record.ts';

type ComparedLine = Pick<
  InvoiceLineItem,
  | 'subscription_id'
  | 'subscription_line_item_id'
  | 'price_id'
  | 'meter_id'
  | 'display_name'
  | 'plan_display_name'
  | 'period_start'
  | 'period_end'
  | 'parent_line_item_id'
  | 'quantity'
  | 'amount'
>;

type LineValues = { readonly quantity: Decimal; readonly amount: Decimal };
export type ChangedLine = {
  /** The line after the correction; if it disappears, the line before. */
  readonly line: ComparedLine;
  readonly before: LineValues;
  readonly after: LineValues;
};

/** Lists the charges whose quantity or amount differs. A missing line counts as 0. */
export function listChangedLines(before: readonly ComparedLine[], after: readonly ComparedLine[]): ChangedLine[] {
  const [old, now] = [groupBy(before, buildLineKey), groupBy(after, buildLineKey)];
  const keys = new Set([...now.keys(), ...old.keys()]);
  return [...keys].flatMap((key) => {
    const [olds, news] = [old.get(key) ?? [], now.get(key) ?? []];
    const change = { line: (news[0] ?? olds[0])!, before: sumLines(olds), after: sumLines(news) };
    return isSame(change.before, change.after) ? [] : [change];
  });
}

/** Key of a charge. The corrections of one charge count as one line. */
function buildLineKey(line: ComparedLine): string {
  const { subscription_line_item_id, price_id, display_name, period_start, period_end, parent_line_item_id } = line;
  return JSON.stringify([
    subscription_line_item_id ?? display_name,
    price_id,
    period_start,
    period_end,
    Boolean(parent_line_item_id),
  ]);
}

function sumLines(lines: readonly ComparedLine[]): LineValues {
  const sum = (field: 'quantity' | 'amount') => lines.reduce((total, line) => total.plus(line[field]), ZERO);
  return { quantity: sum('quantity'), amount: sum('amount') };
}

function isSame(one: LineValues, other: LineValues): boolean {
  return one.quantity.eq(other.quantity) && one.amount.eq(other.amount);
}
