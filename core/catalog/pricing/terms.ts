/**
 * The data of the price models (docs/rules/pricing.md): the fields that a price charges by, and the parts of a charge. A
 * charge is by definition the sum of its parts, so an invoice line and its explanation cannot disagree.
 */
import { z } from 'zod';
import { Decimal, type DecimalInput, ZERO } from '../../foundation/decimal.ts';
import { anyCase, decimalText, orDefault, orNull, wholeNumber } from '../../foundation/record.ts';

export const tierShape = z.object({
  up_to: orNull(wholeNumber).meta({
    description:
      'Last unit of the tier, greater than 0 and greater than that of the tier before. Null marks the last tier, which has no end.',
  }),
  unit_amount: decimalText.meta({ description: 'Price of each unit in the tier. A negative amount is refused.' }),
  flat_amount: orNull(decimalText).meta({
    description:
      'Amount charged once, besides the units, if any unit falls into the tier. Default: null. A negative amount is refused.',
  }),
});
export type PriceTier = z.output<typeof tierShape>;

const transformQuantityShape = z.object({
  divide_by: wholeNumber.meta({ description: 'Number of units in a package, at least 1.' }),
  round: orDefault(anyCase(['up', 'down']), 'up').meta({
    description: 'Rounding of a partial package: `up` counts it, `down` does not. Default: up.',
  }),
});

/**
 * The fields that a price charges by, besides its model. A new field needs a line here, a column of `prices`, and a model
 * that uses it. Requests that set or change the field, overrides, successors and the recorded terms of an invoice line
 * follow from this list.
 */
export const modelFields = {
  amount: decimalText.meta({
    description:
      'Price of a unit, or of a package for PACKAGE, in units of the currency, as decimal text. TIERED does not use it.',
  }),
  tiers: z.array(tierShape).meta({
    description: 'Tiers of a TIERED price, at least one. The last one has no end. Other models refuse tiers.',
  }),
  transform_quantity: transformQuantityShape.meta({
    description: 'Conversion of units to packages, for PACKAGE. Other models refuse it.',
  }),
};
export type ModelField = keyof typeof modelFields;

/** Terms of one tier. Unlike in a stored price, null values may be omitted and a bound may be text. */
export type TierTerms = {
  readonly up_to?: number | string | null;
  readonly unit_amount: DecimalInput;
  readonly flat_amount?: DecimalInput | null;
};

/** Types of the charged fields for which a model accepts more forms than a stored price has. */
type Understood = {
  readonly amount: DecimalInput;
  readonly tiers: readonly TierTerms[];
  readonly transform_quantity: { readonly divide_by: number; readonly round?: 'up' | 'down' | null };
};

/** The charged fields in the form that a model accepts. */
export type ModelTerms = {
  readonly [Field in ModelField]?:
    | (Field extends keyof Understood ? Understood[Field] : z.output<(typeof modelFields)[Field]>)
    | null;
};

export type ChargePart = {
  /** Position of the tier in order of up_to; null if the model has no tiers. */
  readonly tier: number | null;
  /** Units that fall in this part: quantity units, or packages for PACKAGE. */
  readonly units: Decimal;
  readonly unit_amount: Decimal;
  readonly flat_amount: Decimal;
  readonly amount: Decimal;
};

/** The properties of a price model, defined once for creation, requests, invoices and texts. */
export type PricingModel = {
  /** Billing model of the prices that this model computes. If it has several tier modes, `tier_mode` selects one. */
  readonly billing_model: string;
  readonly tier_mode: string | null;
  /** The charged fields that the model uses. */
  readonly takes: readonly ModelField[];
  /** Checks the fields of a new price; throws the faulty field with the fault. */
  check(price: ModelTerms): void;
  /** Returns unrounded amounts; the quantity is always greater than 0. */
  parts(price: ModelTerms, quantity: Decimal): ChargePart[];
  /** Formats the price for a table cell. */
  text(price: ModelTerms): string;
};

export function chargePart(
  tier: number | null,
  units: Decimal,
  rates: { unit_amount: DecimalInput; flat_amount?: DecimalInput | null },
): ChargePart {
  const unit_amount = new Decimal(rates.unit_amount);
  const flat_amount = new Decimal(rates.flat_amount ?? ZERO);
  return { tier, units, unit_amount, flat_amount, amount: units.times(unit_amount).plus(flat_amount) };
}
