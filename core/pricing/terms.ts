/**
 * What the price models work on (docs/rules/pricing.md): the fields that a price charges by, and the parts that a charge is
 * made of. A charge is by definition the sum of its parts, so an invoice line and its explanation cannot disagree.
 */
import { z } from 'zod';
import { Decimal, type DecimalInput, ZERO } from '../decimal.ts';
import { anyCase, decimalText, orDefault, orNull, wholeNumber } from '../record.ts';

export const tierShape = z.object({
  up_to: orNull(wholeNumber).meta({
    description: 'Where the tier ends: this unit still belongs to it; null in the last tier, which has no end.',
  }),
  unit_amount: decimalText.meta({ description: 'What each unit in the tier costs.' }),
  flat_amount: orNull(decimalText).meta({
    description: 'What the tier costs in all beside its units, once any unit falls into it; null is nothing.',
  }),
});
export type PriceTier = z.output<typeof tierShape>;

const transformQuantityShape = z.object({
  divide_by: wholeNumber.meta({ description: 'How many units are in a package.' }),
  round: orDefault(anyCase(['up', 'down']), 'up').meta({
    description: 'Whether a package that is begun counts (up) or not (down).',
  }),
});

/**
 * The fields that a price charges by, beside its model. A new one is a line here, a column of `prices`, and the model that
 * goes by it: the requests that state or change one, overrides, successors and what a line was computed from follow.
 */
export const modelFields = {
  amount: decimalText.meta({
    description: 'In units of the currency, as decimal text: what a unit costs, or a package; not of TIERED.',
  }),
  tiers: z.array(tierShape).meta({ description: 'Of TIERED, at least one; the last has no end.' }),
  transform_quantity: transformQuantityShape.meta({ description: 'Of PACKAGE: how units become packages.' }),
};
export type ModelField = keyof typeof modelFields;

/** Tiers of worked examples leave out what is null; a bound that is text is compared as a decimal. */
export type TierTerms = {
  readonly up_to?: number | string | null;
  readonly unit_amount: DecimalInput;
  readonly flat_amount?: DecimalInput | null;
};

/** Fields of which a model understands more than a record holds. */
type Understood = {
  readonly amount: DecimalInput;
  readonly tiers: readonly TierTerms[];
  readonly transform_quantity: { readonly divide_by: number; readonly round?: 'up' | 'down' | null };
};

/** The charged fields as a model reads them. */
export type ModelTerms = {
  readonly [Field in ModelField]?:
    | (Field extends keyof Understood ? Understood[Field] : z.output<(typeof modelFields)[Field]>)
    | null;
};

export type ChargePart = {
  /** Position of the tier in order of up_to; null where the model has no tiers. */
  readonly tier: number | null;
  /** The units that fall in this part: quantity units, or packages for PACKAGE. */
  readonly units: Decimal;
  readonly unit_amount: Decimal;
  readonly flat_amount: Decimal;
  readonly amount: Decimal;
};

/** What a price model states about itself, once: creation, requests, invoices and texts all follow it. */
export type PricingModel = {
  /** The prices that it prices: of this billing model and, where a billing model has several ways, of this tier mode. */
  readonly billing_model: string;
  readonly tier_mode: string | null;
  /** The charged fields that it goes by. */
  readonly takes: readonly ModelField[];
  /** What must hold of its fields whenever a price is made; throws the field and what is wrong with it. */
  check(price: ModelTerms): void;
  /** What took how much, unrounded; the quantity is always greater than 0. */
  parts(price: ModelTerms, quantity: Decimal): ChargePart[];
  /** The price in one cell of a table. */
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
