/**
 * Decides whether two prices charge alike (docs/rules/proration.md, "Usage over a change"). It compares model, amounts,
 * tiers, package and its rounding as numbers and not as records. Another notation of an amount, or a successor with the
 * same amount, therefore does not restart tiers.
 */
import { Decimal, ZERO } from '../../foundation/decimal.ts';
import type { PriceTerms } from './charge.ts';
import { PRICE_MODELS } from './index.ts';
import type { ModelField, ModelTerms, TierTerms } from './terms.ts';
import { isOpen, sortTiers } from './tiers.ts';

/** Prices with equal terms have one key. */
export function termsKey(price: PriceTerms): string {
  const { billing_model, currency } = price;
  const model = PRICE_MODELS.find(
    (each) => each.billing_model === billing_model && (each.tier_mode === null || each.tier_mode === price.tier_mode),
  );
  const fields: readonly ModelField[] = model?.takes ?? [];
  return JSON.stringify([
    billing_model,
    model?.tier_mode ?? null,
    currency.toLowerCase(),
    ...fields.map((field) => (normalized[field] ?? ((terms) => asNumbers(terms[field] ?? null)))(price)),
  ]);
}

/** Fields in which different values can have one meaning, such as null and 0. `asNumbers` converts all other fields. */
const normalized: { readonly [Field in ModelField]?: (terms: ModelTerms) => unknown } = {
  amount: ({ amount }) => new Decimal(amount ?? ZERO).toFixed(),
  tiers: ({ tiers }) => sortTiers(tiers ?? []).map(tierNumbers),
  transform_quantity: ({ transform_quantity: it }) => it && [it.divide_by, it.round ?? 'up'],
};

function tierNumbers(tier: TierTerms) {
  const up_to = isOpen(tier) ? null : new Decimal(tier.up_to!).toFixed();
  return [up_to, new Decimal(tier.unit_amount).toFixed(), new Decimal(tier.flat_amount ?? ZERO).toFixed()];
}

const NUMBER = /^-?\d+(\.\d+)?$/;

function asNumbers(value: unknown): unknown {
  if (Decimal.isDecimal(value) || typeof value === 'number') return new Decimal(String(value)).toFixed();
  if (typeof value === 'string') return NUMBER.test(value) ? new Decimal(value).toFixed() : value;
  if (Array.isArray(value)) return value.map(asNumbers);
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(value).map(([name, one]) => [name, asNumbers(one)]);
}
