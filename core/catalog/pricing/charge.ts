/**
 * The charge for a quantity (docs/rules/pricing.md). Quantity 0 costs 0 in every model, even if the first tier has a flat
 * amount, also per bucket (docs/rules/pricing.md, "Zero costs nothing"). Nothing is rounded here: an invoice line is
 * rounded once, at its end.
 */
import { Decimal, type DecimalInput, ZERO } from '../../foundation/decimal.ts';
import { invalid } from '../../foundation/error.ts';
import { type BillingModel, PRICE_MODELS, type TierMode } from './index.ts';
import type { ChargePart, ModelField, ModelTerms, PricingModel } from './terms.ts';

export type PriceTerms = ModelTerms & {
  readonly billing_model: BillingModel;
  readonly tier_mode?: TierMode | null;
  readonly currency: string;
};

/** The unrounded amount of each tier. The parts explain an invoice line, and their sum is its charge. */
export function chargeParts(price: PriceTerms, quantity: DecimalInput): ChargePart[] {
  const units = new Decimal(quantity);
  if (units.isNegative() && !units.isZero()) throw invalid('quantity', 'must not be negative to be priced');
  const model = findModel(price);
  return units.isZero() ? [] : model.parts(price, units);
}

/** Negative usage is stored unchanged and billed as 0 (docs/rules/pricing.md, "Never below zero"). */
export function billedQuantity(quantity: DecimalInput): Decimal {
  return Decimal.max(quantity, ZERO);
}

/** The price for a table cell: the plain amount if it applies to one unit, otherwise a phrase with its basis. */
export function priceText(price: PriceTerms): string {
  return findModel(price).text(price);
}

/** Checks the price against the rules of its model. If the tier mode is missing, faulty fields are reported first. */
export function checkModel(price: PriceTerms): void {
  if (!price.tier_mode) listModels(price.billing_model)[0]?.check(price);
  findModel(price).check(price);
}

/** Finds the model of a price. The tier mode selects one of several models of a billing model. */
function findModel({ billing_model, tier_mode }: PriceTerms): PricingModel {
  const models = listModels(billing_model);
  if (models.length === 0) throw invalid('billing_model', `${JSON.stringify(billing_model)} is not a price model`);
  const model = models.find((each) => each.tier_mode === null || each.tier_mode === tier_mode);
  if (model === undefined) throw invalid('tier_mode', `is required for ${billing_model}`);
  return model;
}

export function isChargedBy(billing_model: BillingModel, field: ModelField | 'tier_mode'): boolean {
  return listModels(billing_model).some((model) => usesField(model, field));
}

/** Rejects a field that the model does not use, because it would show a charge that is never made. */
export function checkCharged(
  billing_model: BillingModel,
  field: ModelField | 'tier_mode',
  named: string = field,
): void {
  if (!isChargedBy(billing_model, field))
    throw invalid(named, `is used by ${chargingModels(field)} only, not by ${billing_model}`);
}

/** The billing models that use the field, as text: `FLAT_FEE and PACKAGE`. */
function chargingModels(field: ModelField | 'tier_mode'): string {
  const names = PRICE_MODELS.filter((model) => usesField(model, field)).map((model) => model.billing_model);
  return [...new Set(names)].join(' and ');
}

function listModels(billing_model: BillingModel): readonly PricingModel[] {
  return PRICE_MODELS.filter((model) => model.billing_model === billing_model);
}

function usesField({ tier_mode, takes }: PricingModel, field: ModelField | 'tier_mode'): boolean {
  return field === 'tier_mode' ? tier_mode !== null : takes.includes(field);
}
