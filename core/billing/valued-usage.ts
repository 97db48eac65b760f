/** Usage as the money that it costs (docs/rules/entitlements.md, "Grants"): each portion what it adds to the charge in which it lies. */
import { type Decimal, sumOf, ZERO } from '../decimal.ts';
import { OrderedUsage, type Portion } from '../entitlement/ordered-usage.ts';
import { billedQuantity, chargeParts, type PriceTerms } from '../pricing/charge.ts';
import type { Milliseconds } from '../time/instant.ts';

/** In steps, one a portion. What lies before the charge is valued by itself: its tiers are those of a charge before it. */
export function* valuedUsage(
  usage: OrderedUsage,
  price: PriceTerms,
  charge_start: Milliseconds,
): Generator<undefined, OrderedUsage, undefined> {
  const first = usage.placeOf(charge_start);
  const portions: Portion[] = [];
  let quantity = ZERO;
  let cost = ZERO;
  for (const [place, { at, used }] of usage.portions.entries()) {
    if (place === first) [quantity, cost] = [ZERO, ZERO];
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
