/** Values usage in money (docs/rules/entitlements.md, "Grants"): each portion has the amount that it adds to its charge. */

import { billedQuantity, chargeParts, type PriceTerms } from '../catalog/pricing/charge.ts';
import { type Decimal, sumDecimals, ZERO } from '../foundation/decimal.ts';
import type { Milliseconds } from '../foundation/time/instant.ts';
import { OrderedUsage, type UsagePortion } from './allowances/ordered-usage.ts';

/** A price and the start of its validity, from which its tiers count units. */
export type Tariff = { readonly from: Milliseconds; readonly price: PriceTerms };

/**
 * Computes the value of each portion, and yields after each, so that other tasks can run. `before` is the number of units that the charge
 * used before the first portion. Usage before the first tariff is valued separately, because its tiers are those of an earlier charge.
 */
export function* valueUsage(
  usage: OrderedUsage,
  tariffs: readonly [Tariff, ...Tariff[]],
  before: Decimal | null = null,
): Generator<undefined, OrderedUsage, undefined> {
  const beginning = new Map(tariffs.map(({ from, price }) => [usage.findIndex(from), price]));
  const portions: UsagePortion[] = [];
  let [{ price }] = tariffs;
  let quantity = before ?? ZERO;
  let cost = before ? computeCost(before, price) : ZERO;
  for (const [place, { at, used }] of usage.portions.entries()) {
    const begins = place > 0 || before === null ? beginning.get(place) : undefined;
    if (begins) {
      price = begins;
      [quantity, cost] = [ZERO, ZERO];
    }
    quantity = quantity.plus(used);
    const next = computeCost(quantity, price);
    portions.push({ at, used: next.minus(cost) });
    cost = next;
    yield;
  }
  return new OrderedUsage(portions);
}

/** How units of a charge are valued in money: their price, null if they are free, and the units that were used before. */
export type UnitValuation = { readonly used: Decimal; readonly price: PriceTerms | null };

/** Amount that additional units would add. */
export function computeAddedValue(units: Decimal, { used, price }: UnitValuation): Decimal {
  if (price === null) return ZERO;
  return computeCost(used.plus(units), price).minus(computeCost(used, price));
}

function computeCost(quantity: Decimal, price: PriceTerms): Decimal {
  return sumDecimals(chargeParts(price, billedQuantity(quantity)).map(({ amount }) => amount));
}
