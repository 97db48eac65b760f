/**
 * What the price models work on: the money fields of a price, and the parts that a charge is made of. A charge is by
 * definition the sum of its parts, so an invoice line and its explanation cannot disagree.
 */
import { Decimal, type DecimalInput, ZERO } from '../decimal.ts';

export type TierTerms = {
  /** Arrives as a number on the wire and perhaps as text from a store: compared as a decimal. */
  readonly up_to?: number | string | null;
  readonly unit_amount: DecimalInput;
  readonly flat_amount?: DecimalInput | null;
};

export type PriceTerms = {
  readonly billing_model: 'FLAT_FEE' | 'PACKAGE' | 'TIERED';
  readonly currency: string;
  readonly amount?: DecimalInput | null;
  readonly tier_mode?: 'VOLUME' | 'SLAB' | null;
  readonly tiers?: readonly TierTerms[] | null;
  readonly transform_quantity?: { readonly divide_by: number; readonly round?: 'up' | 'down' | null } | null;
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

/** One file per model exports one of these; the quantity is always greater than 0. */
export type PriceModel = (price: PriceTerms, quantity: Decimal) => ChargePart[];

export function chargePart(
  tier: number | null,
  units: Decimal,
  rates: { unit_amount: DecimalInput; flat_amount?: DecimalInput | null },
): ChargePart {
  const unit_amount = new Decimal(rates.unit_amount);
  const flat_amount = new Decimal(rates.flat_amount ?? ZERO);
  return { tier, units, unit_amount, flat_amount, amount: units.times(unit_amount).plus(flat_amount) };
}
