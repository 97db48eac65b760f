/**
 * Computes how much corrections of usage credited on each charged line (docs/rules/credit-notes.md, "No more than was charged"). A charge
 * may have several lines: of its period, before the period end, and for late events. A correction is a negative line. It reduces the other
 * lines of its charge, the newest first, each by at most the amount that no credit note has credited.
 */
import { Decimal, ZERO } from '../../foundation/decimal.ts';
import { groupBy } from '../../foundation/group-by.ts';
import type { Period } from '../../foundation/time/period.ts';

type ChargeLine = {
  readonly id: string;
  readonly item_id: string;
  readonly service: Period;
  /** Charged amount after discounts; negative for a credit. */
  readonly charged: Decimal;
  readonly tax: Decimal;
  /** Part of the amount that prepaid credits paid; negative if the line returns them. */
  readonly prepaid: Decimal;
  /** Amount that credit notes credited. */
  readonly noted: Decimal;
  readonly tax_noted: Decimal;
  readonly prepaid_noted: Decimal;
};

export type CorrectedAmount = { readonly amount: Decimal; readonly tax: Decimal; readonly prepaid: Decimal };

/** Computes corrections. `lines`: all lines of each charge, oldest first. */
export function computeCorrections(lines: readonly ChargeLine[]): Map<string, CorrectedAmount> {
  const charges = [...groupBy(lines, ({ item_id }) => item_id).values()].flatMap(groupByCharge);
  return new Map(charges.flatMap(correctChargeLines));
}

function correctChargeLines(lines: readonly ChargeLine[]): [string, CorrectedAmount][] {
  let amount = sumBelowZero(lines.map(({ charged }) => charged));
  let tax = sumBelowZero(lines.map((line) => line.tax));
  let prepaid = sumBelowZero(lines.map((line) => line.prepaid));
  const charging = lines.filter(({ charged }) => charged.gt(0)).toReversed();
  return charging.map((line) => {
    const taken = {
      amount: limitToRoom(amount, line.charged.minus(line.noted)),
      tax: limitToRoom(tax, line.tax.minus(line.tax_noted)),
      prepaid: limitToRoom(prepaid, line.prepaid.minus(line.prepaid_noted)),
    };
    amount = amount.minus(taken.amount);
    tax = tax.minus(taken.tax);
    prepaid = prepaid.minus(taken.prepaid);
    return [line.id, taken];
  });
}

function sumBelowZero(amounts: readonly Decimal[]): Decimal {
  return amounts.reduce((sum, one) => (one.isNegative() ? sum.minus(one) : sum), ZERO);
}

function limitToRoom(rest: Decimal, room: Decimal): Decimal {
  return Decimal.max(ZERO, Decimal.min(rest, room));
}

/**
 * Groups lines by charge. Lines with overlapping periods belong to one charge. A line of progressive billing lies within the period of its
 * charge.
 */
function groupByCharge(lines: readonly ChargeLine[]): ChargeLine[][] {
  const ordered = lines.toSorted((one, other) => one.service.start - other.service.start);
  const charges: ChargeLine[][] = [];
  let end = Number.NEGATIVE_INFINITY;
  for (const line of ordered) {
    if (line.service.start >= end) charges.push([]);
    charges.at(-1)!.push(line);
    end = Math.max(end, line.service.end);
  }
  const place = new Map(lines.map(({ id }, index) => [id, index]));
  return charges.map((charge) => charge.toSorted((one, other) => place.get(one.id)! - place.get(other.id)!));
}
