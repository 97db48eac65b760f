/**
 * What a quantity costs (pricing-and-invoicing §2.2). Quantity 0 costs 0 in every model, also where the first tier has a
 * flat amount, also per bucket (decisions §7). Nothing is rounded here but in `chargeFor`: an invoice line is rounded
 * once, at its end (decisions §6).
 */
import { Decimal, type DecimalInput, sumOf, ZERO } from '../decimal.ts';
import { invalid } from '../error.ts';
import { roundMoney } from '../money.ts';
import { flatFee } from './flat-fee.ts';
import { packagePrice } from './package.ts';
import type { ChargePart, PriceModel, PriceTerms } from './terms.ts';
import { tieredSlab } from './tiered-slab.ts';
import { tieredVolume } from './tiered-volume.ts';

/** The price models: one file to add, one line to list it. TIERED goes by its tier mode. */
const PRICE_MODELS: Readonly<Record<'FLAT_FEE' | 'PACKAGE' | 'VOLUME' | 'SLAB', PriceModel>> = {
  FLAT_FEE: flatFee,
  PACKAGE: packagePrice,
  VOLUME: tieredVolume,
  SLAB: tieredSlab,
};

/** The unrounded charge. */
export function priceQuantity(price: PriceTerms, quantity: DecimalInput): Decimal {
  return sumOf(chargeParts(price, quantity).map((part) => part.amount));
}

/** Which tier took how much: the explanation of a line, and what its charge is the sum of. */
export function chargeParts(price: PriceTerms, quantity: DecimalInput): ChargePart[] {
  const units = new Decimal(quantity);
  if (units.isNegative() && !units.isZero()) throw invalid('quantity', 'must not be negative to be priced');
  const model = modelOf(price);
  return units.isZero() ? [] : model(price, units);
}

/** The charge rounded to the price's currency: the amount of an invoice line. */
export function chargeFor(price: PriceTerms, quantity: DecimalInput): Decimal {
  return roundMoney(priceQuantity(price, quantity), price.currency);
}

/** "Negative values are kept (corrections); the *billed* quantity of a period is floored at 0" (decisions §10). */
export function billedQuantity(quantity: DecimalInput): Decimal {
  return Decimal.max(quantity, ZERO);
}

/** A bucketed meter: each bucket is billed on its own, and so floored at 0 on its own; then the charges are summed. */
export function priceBuckets(price: PriceTerms, quantities: Iterable<DecimalInput>): Decimal {
  let total = ZERO;
  for (const quantity of quantities) total = total.plus(priceQuantity(price, billedQuantity(quantity)));
  return total;
}

/** With group_by: each group's value in each bucket is priced on its own, then summed. */
export function priceGroupedBuckets(price: PriceTerms, buckets: Iterable<Iterable<DecimalInput>>): Decimal {
  let total = ZERO;
  for (const groupValues of buckets) total = total.plus(priceBuckets(price, groupValues));
  return total;
}

/** amount / quantity, 0 when quantity is 0: what a line shows as its unit price. */
export function effectiveUnitPrice(amount: DecimalInput, quantity: DecimalInput): Decimal {
  const units = new Decimal(quantity);
  return units.isZero() ? ZERO : new Decimal(amount).div(units);
}

function modelOf(price: PriceTerms): PriceModel {
  if (price.billing_model === 'TIERED' && !price.tier_mode) throw invalid('tier_mode', 'is required for TIERED');
  const name = price.billing_model === 'TIERED' ? price.tier_mode : price.billing_model;
  const model = name ? PRICE_MODELS[name] : undefined;
  if (model === undefined) throw invalid('billing_model', `${price.billing_model} is not a price model`);
  return model;
}
