/** Usage as the money that it costs (docs/rules/entitlements.md, "Grants"): each portion what it adds to the charge in which it lies. */
import { type Decimal, sumOf, ZERO } from '../decimal.ts';
import { OrderedUsage, type Portion } from '../entitlement/ordered-usage.ts';
import { billedQuantity, chargeParts, type PriceTerms } from '../pricing/charge.ts';
import type { Milliseconds } from '../time/instant.ts';

/** In steps, one a portion. `before`: so many units were used of the charge before all of it. What lies before the charge is valued by itself: its tiers are those of a charge before it. */
export function* valuedUsage(
  usage: OrderedUsage,
  price: PriceTerms,
  charge_start: Milliseconds,
  before: Decimal | null = null,
): Generator<undefined, OrderedUsage, undefined> {
  const first = usage.placeOf(charge_start);
  const portions: Portion[] = [];
  let quantity = before ?? ZERO;
  let cost = before ? costOf(before, price) : ZERO;
  for (const [place, { at, used }] of usage.portions.entries()) {
    if (place === first && first > 0) [quantity, cost] = [ZERO, ZERO];
    quantity = quantity.plus(used);
    const next = costOf(quantity, price);
    portions.push({ at, used: next.minus(cost) });
    cost = next;
    yield;
  }
  return new OrderedUsage(portions);
}

/** What so many units more would add. */
export function worthOf(units: Decimal, { used, price }: { used: Decimal; price: PriceTerms }): Decimal {
  return costOf(used.plus(units), price).minus(costOf(used, price));
}

function costOf(quantity: Decimal, price: PriceTerms): Decimal {
  return sumOf(chargeParts(price, billedQuantity(quantity)).map(({ amount }) => amount));
}
