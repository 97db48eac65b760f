/** A price in one cell of a table: the amount of a unit, and else a sentence that says what it is for. */
import { Decimal, type DecimalInput, ZERO } from '../decimal.ts';
import { invalid } from '../error.ts';
import type { PriceTerms, TierTerms } from './terms.ts';

export function priceText(price: PriceTerms): string {
  const amount = plain(price.amount ?? ZERO);
  switch (price.billing_model) {
    case 'FLAT_FEE':
      return amount;
    case 'PACKAGE':
      return `${amount} per ${price.transform_quantity!.divide_by}`;
    case 'TIERED':
      return tiersText(price);
    default:
      throw invalid('billing_model', `${JSON.stringify(price.billing_model)} cannot be told`);
  }
}

/** Of SLAB each tier prices what falls in it, of VOLUME the tier that holds the quantity prices all of it. */
function tiersText({ tier_mode, tiers }: PriceTerms): string {
  return `${tier_mode}: ${(tiers ?? []).map(tierText).join(', ')}`;
}

function tierText({ up_to, unit_amount, flat_amount }: TierTerms): string {
  const flat = new Decimal(flat_amount ?? ZERO);
  const where = up_to === null || up_to === undefined ? 'above' : `up to ${up_to}`;
  return `${where} ${plain(unit_amount)}${flat.isZero() ? '' : ` and ${flat.toFixed()} once`}`;
}

function plain(amount: DecimalInput): string {
  return new Decimal(amount).toFixed();
}
