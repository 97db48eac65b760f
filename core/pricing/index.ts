/**
 * What a quantity costs (docs/rules/pricing.md). Quantity 0 costs 0 in every model, also where the first tier has a flat
 * amount, also per bucket (docs/rules/pricing.md, "Zero costs nothing"). Nothing is rounded here: an invoice line is
 * rounded once, at its end.
 */
import { Decimal, type DecimalInput, ZERO } from '../decimal.ts';
import { invalid } from '../error.ts';
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

/** Which tier took how much, unrounded: the explanation of a line, and what its charge is the sum of. */
export function chargeParts(price: PriceTerms, quantity: DecimalInput): ChargePart[] {
  const units = new Decimal(quantity);
  if (units.isNegative() && !units.isZero()) throw invalid('quantity', 'must not be negative to be priced');
  const model = modelOf(price);
  return units.isZero() ? [] : model(price, units);
}

/** What is measured below zero is kept, and billed as 0 (docs/rules/pricing.md, "Never below zero"). */
export function billedQuantity(quantity: DecimalInput): Decimal {
  return Decimal.max(quantity, ZERO);
}

function modelOf(price: PriceTerms): PriceModel {
  if (price.billing_model === 'TIERED' && !price.tier_mode) throw invalid('tier_mode', 'is required for TIERED');
  const name = price.billing_model === 'TIERED' ? price.tier_mode : price.billing_model;
  const model = name ? PRICE_MODELS[name] : undefined;
  if (model === undefined) throw invalid('billing_model', `${price.billing_model} is not a price model`);
  return model;
}
