/**
 * What a quantity costs (docs/rules/pricing.md). Quantity 0 costs 0 in every model, also where the first tier has a flat
 * amount, also per bucket (docs/rules/pricing.md, "Zero costs nothing"). Nothing is rounded here: an invoice line is
 * rounded once, at its end.
 */
import { Decimal, type DecimalInput, ZERO } from '../decimal.ts';
import { invalid } from '../error.ts';
import { type BillingModel, PRICE_MODELS, type TierMode } from './index.ts';
import type { ChargePart, ModelField, ModelTerms, PricingModel } from './terms.ts';

/** The money fields of a price. */
export type PriceTerms = ModelTerms & {
  readonly billing_model: BillingModel;
  readonly tier_mode?: TierMode | null;
  readonly currency: string;
};

/** Which tier took how much, unrounded: the explanation of a line, and what its charge is the sum of. */
export function chargeParts(price: PriceTerms, quantity: DecimalInput): ChargePart[] {
  const units = new Decimal(quantity);
  if (units.isNegative() && !units.isZero()) throw invalid('quantity', 'must not be negative to be priced');
  const model = findModel(price);
  return units.isZero() ? [] : model.parts(price, units);
}

/** What is measured below zero is kept, and billed as 0 (docs/rules/pricing.md, "Never below zero"). */
export function billedQuantity(quantity: DecimalInput): Decimal {
  return Decimal.max(quantity, ZERO);
}

/** A price in one cell of a table: the amount of a unit, and else a sentence that says what it is for. */
export function priceText(price: PriceTerms): string {
  return findModel(price).text(price);
}

/** What a price must keep of its model's rules. Without a tier mode those of the fields are told first. */
export function checkModel(price: PriceTerms): void {
  if (!price.tier_mode) listModels(price.billing_model)[0]?.check(price);
  findModel(price).check(price);
}

/** The model that prices it. Where a billing model has several, its tier mode says which. */
function findModel({ billing_model, tier_mode }: PriceTerms): PricingModel {
  const models = listModels(billing_model);
  if (models.length === 0) throw invalid('billing_model', `${JSON.stringify(billing_model)} is not a price model`);
  const model = models.find((each) => each.tier_mode === null || each.tier_mode === tier_mode);
  if (model === undefined) throw invalid('tier_mode', `is required for ${billing_model}`);
  return model;
}

/** Whether prices of this billing model go by the field. */
export function isChargedBy(billing_model: BillingModel, field: ModelField | 'tier_mode'): boolean {
  return listModels(billing_model).some((model) => usesField(model, field));
}

/** What its model does not go by would say of a price what nobody is charged. */
export function checkCharged(
  billing_model: BillingModel,
  field: ModelField | 'tier_mode',
  named: string = field,
): void {
  if (!isChargedBy(billing_model, field))
    throw invalid(named, `is used by ${chargingModels(field)} only, not by ${billing_model}`);
}

/** `FLAT_FEE and PACKAGE`: the billing models that go by the field. */
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
