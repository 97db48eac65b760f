/**
 * Usage invoiced before its period was over, because it had reached a threshold (docs/rules/invoices.md, "Before the period is over").
 * Later invoices charge the difference, so that tiers, free units and commitments are those of the whole period. A negative difference is
 * offset against other lines of the invoice, and the rest is carried forward to the next one. After the last invoice the rest goes to the
 * wallet.
 */
import { Decimal, sumDecimals, ZERO } from '../foundation/decimal.ts';
import { groupBy } from '../foundation/group-by.ts';
import type { Period } from '../foundation/time/period.ts';
import { toBaseAmount } from './committed-lines.ts';
import { type BilledLine, computeCreditAdjustments, sumBilledLines } from './credit-adjustments.ts';
import type { PlannedLine, PricedItem } from './line-amount.ts';
import { buildQuantityFields } from './quantity-fields.ts';

/** An earlier invoice line of a usage charge. */
export type PartialCharge = {
  readonly item_id: string;
  readonly service: Period;
  readonly amount: Decimal;
  readonly quantity: Decimal;
  /** The line is on the invoice of a later period, and corrects the charge. */
  readonly is_later?: boolean;
  /** Whether this negative amount is a credit note or refund of the charge, which is not offset again. */
  readonly is_returned?: boolean;
  readonly billed?: BilledLine;
};

export function filterPartialCharges(
  partial: readonly PartialCharge[],
  item_id: string,
  service: Period,
): PartialCharge[] {
  return partial.filter(
    (one) => one.item_id === item_id && one.service.start >= service.start && one.service.start < service.end,
  );
}

/** Lowers each charge by its partial charges, at most to 0. The first line of the charge records the rest, which was overbilled. */
export function offsetPartialCharges<Item extends PricedItem>(
  lines: readonly PlannedLine<Item>[],
  partial: readonly PartialCharge[],
): PlannedLine<Item>[] {
  if (partial.length === 0) return [...lines];
  const charges = groupBy(lines, ({ item, service }) => `${item.id}/${service.start}`);
  return [...charges.values()].flatMap((of) => {
    const [{ item, service }] = of;
    const parts = item.price_type === 'USAGE' ? filterPartialCharges(partial, item.id, service) : [];
    return parts.length === 0 ? of : computePartialDifferences(of, parts);
  });
}

function computePartialDifferences<Item extends PricedItem>(
  lines: readonly PlannedLine<Item>[],
  all: readonly PartialCharge[],
): PlannedLine<Item>[] {
  const parts = all.filter(({ is_returned }) => !is_returned);
  let invoiced = sumDecimals(parts.map(({ amount }) => amount));
  let units = sumDecimals(parts.map(({ quantity }) => quantity));
  const left = lines.flatMap((line, index) => {
    const amount = Decimal.min(line.amount, invoiced);
    const quantity = Decimal.min(line.quantity, units);
    invoiced = invoiced.minus(amount);
    units = units.minus(quantity);
    const rest = { amount: line.amount.minus(amount), quantity: line.quantity.minus(quantity) };
    if (index > 0 && rest.amount.isZero() && rest.quantity.isZero()) return [];
    const isLater = parts.some(({ is_later }) => is_later);
    const where = isLater ? 'that other invoices say of it' : 'that was invoiced before the period was over';
    const note = `less ${amount.toFixed()} ${where}`;
    const { reason } = line.computed_from;
    const computed_from = {
      ...line.computed_from,
      base_amount: toBaseAmount(line).toFixed(),
      reason: reason ? `${reason}; ${note}` : note,
      less: {
        amount: amount.toFixed(),
        quantity: quantity.toFixed(),
        invoiced: isLater ? ('by_other_invoices' as const) : ('before_period_end' as const),
      },
    };
    return [{ ...line, ...rest, computed_from, exact: amount.isZero() ? line.exact : undefined }];
  });
  const billed = sumBilledLines(all.flatMap((part) => part.billed ?? []));
  const isReturned = all.length > parts.length;
  const amount = isReturned
    ? Decimal.min(invoiced, Decimal.max(ZERO, sumDecimals(all.map((part) => part.amount))))
    : invoiced;
  const overbilled = { amount, quantity: units, billed };
  return amount.isZero() ? left : left.map((line, index) => (index === 0 ? { ...line, overbilled } : line));
}

/**
 * Plans one line for each overbilled charge, with the amount that this invoice offsets: all of it on the last invoice.
 * If `carries` is set, a charge of which nothing could be offset also gets a line, which records the carried amount.
 */
export function planOverbilledCredits<Item extends PricedItem>(
  before: readonly PlannedLine<Item>[],
  { is_last, carries, currency }: { is_last: boolean; carries: boolean; currency: string },
): PlannedLine<Item>[] {
  let room = Decimal.max(ZERO, sumDecimals(before.map(({ amount }) => amount)));
  return before.flatMap((line) => {
    if (!line.overbilled) return [];
    const { amount, quantity, billed } = line.overbilled;
    const granted = is_last ? amount : Decimal.min(amount, room);
    room = room.minus(granted);
    if (granted.isZero() && !carries) return [];
    const credit_adjustments = computeCreditAdjustments(granted, billed, currency);
    return [
      {
        ...buildOverbilledCredit(line, { amount, granted, quantity: granted.eq(amount) ? quantity : ZERO }),
        credit_adjustments,
      },
    ];
  });
}

function buildOverbilledCredit<Item extends PricedItem>(
  { overbilled: _overbilled, exact: _exact, commitment_info: _info, ...line }: PlannedLine<Item>,
  { amount, granted, quantity }: { amount: Decimal; granted: Decimal; quantity: Decimal },
): PlannedLine<Item> {
  const carried = amount.minus(granted);
  const { breakdown: _breakdown, carried_amount: _carried, less: _less, ...computed_from } = line.computed_from;
  return {
    ...line,
    display_name: `${line.item.display_name} (invoiced before)`,
    amount: granted.negated(),
    quantity: quantity.negated(),
    ...buildQuantityFields(() => null),
    computed_from: {
      ...computed_from,
      base_amount: '0',
      kind: 'threshold_surplus',
      reason: `threshold_surplus: ${amount.toFixed()} more was invoiced before the period was over than its usage costs`,
      ...(carried.isZero() ? {} : { carried_amount: carried.toFixed() }),
    },
  };
}
