/**
 * Usage that was invoiced before its period was over, because it had reached a threshold (docs/rules/invoices.md, "Before the
 * period is over"): what is invoiced later of the same charge is the difference, so that tiers, free units and commitments are
 * those of the whole period.
 */
import { Decimal, sumOf } from '../decimal.ts';
import { groupBy } from '../group-by.ts';
import type { Period } from '../time/period.ts';
import { baseAmountOf } from './committed-lines.ts';
import type { PlannedLine, PricedItem } from './line-amount.ts';

/** A line of such an invoice. */
export type PartialCharge = {
  readonly item_id: string;
  readonly service: Period;
  readonly amount: Decimal;
  readonly quantity: Decimal;
};

export function partsOf(partial: readonly PartialCharge[], item_id: string, service: Period): PartialCharge[] {
  return partial.filter(
    (one) => one.item_id === item_id && one.service.start >= service.start && one.service.start < service.end,
  );
}

/** Each charge less what was invoiced of it, and never below 0: what was invoiced too much is given back as late events are. */
export function lessInvoiced<Item extends PricedItem>(
  lines: readonly PlannedLine<Item>[],
  partial: readonly PartialCharge[],
): PlannedLine<Item>[] {
  if (partial.length === 0) return [...lines];
  const charges = groupBy(lines, ({ item, service }) => `${item.id}/${service.start}`);
  return [...charges.values()].flatMap((of) => {
    const [{ item, service }] = of;
    const parts = item.price_type === 'USAGE' ? partsOf(partial, item.id, service) : [];
    return parts.length === 0 ? of : differences(of, parts);
  });
}

function differences<Item extends PricedItem>(
  lines: readonly PlannedLine<Item>[],
  parts: readonly PartialCharge[],
): PlannedLine<Item>[] {
  let invoiced = sumOf(parts.map(({ amount }) => amount));
  let units = sumOf(parts.map(({ quantity }) => quantity));
  return lines.flatMap((line, index) => {
    const amount = Decimal.min(line.amount, invoiced);
    const quantity = Decimal.min(line.quantity, units);
    invoiced = invoiced.minus(amount);
    units = units.minus(quantity);
    const left = { amount: line.amount.minus(amount), quantity: line.quantity.minus(quantity) };
    if (index > 0 && left.amount.isZero() && left.quantity.isZero()) return [];
    const note = `less ${amount.toFixed()} that was invoiced before the period was over`;
    const { reason } = line.computed_from;
    const computed_from = {
      ...line.computed_from,
      base_amount: baseAmountOf(line).toFixed(),
      reason: reason ? `${reason}; ${note}` : note,
    };
    return [{ ...line, ...left, computed_from, exact: amount.isZero() ? line.exact : undefined }];
  });
}
