/**
 * The successor of a changed price (docs/rules/pricing.md, "Changing a price"). Every rule of a new price applies to it. A field that the
 * request omits has the value of the predecessor.
 */
import { invalid } from '../../foundation/error.ts';
import { explainInvalid } from '../../foundation/why-invalid.ts';
import { checkCharged, isChargedBy } from '../pricing/charge.ts';
import { definePrice, type PriceUnitTerms } from './define.ts';
import {
  CHARGED_FIELDS,
  type ChargedField,
  type CreatePrice,
  type CriticalField,
  createPriceShape,
  type Price,
  type PriceDefinition,
} from './record.ts';

export type PriceChanges = Partial<
  Pick<Price, CriticalField | 'lookup_key' | 'display_name' | 'description' | 'metadata' | 'group_id'>
>;

/** Start of the successor, and the symbol of its price unit if it has one. */
type SuccessorStart = { readonly start_date: string; readonly symbol?: string | undefined };

export function planSuccessor(
  price: Price,
  changes: PriceChanges,
  { start_date, symbol = '' }: SuccessorStart,
): PriceDefinition {
  const charge = chargeAfter(price, changes);
  const unit = toPriceUnitTerms(price, symbol);
  if (unit === undefined && (changes.price_unit_amount !== undefined || changes.price_unit_tiers !== undefined))
    throw invalid('price_unit_type', 'a FIAT price may not carry price unit fields');
  const inUnit = unit === undefined ? {} : configAfter(price, changes);
  const request = { ...toCreatePrice(price), ...changes, ...charge, ...inUnit, start_date, end_date: null };
  const definition = definePrice(request, unit);
  return { ...definition, parent_price_id: price.parent_price_id || price.id };
}

/**
 * Returns the charge after the changes. A field that is not changed is dropped if only one of the two billing models uses it: a field that
 * the old model ignores has no meaning for the new one.
 */
function chargeAfter(price: Price, changes: PriceChanges): Partial<CreatePrice> {
  const billing_model = changes.billing_model ?? price.billing_model;
  const isTakenOver = (field: ChargedField) =>
    isChargedBy(billing_model, field) === isChargedBy(price.billing_model, field);
  for (const field of CHARGED_FIELDS) {
    // Every price has an amount, even if its model does not use it.
    if (field !== 'amount' && changes[field]) checkCharged(billing_model, field);
  }
  return Object.fromEntries(
    CHARGED_FIELDS.map((field) => [field, changes[field] ?? (isTakenOver(field) ? price[field] : null)]),
  );
}

/**
 * Returns the terms of the price unit that are stored on the price. The conversion rate is that of the price, even if the unit has changed.
 */
function toPriceUnitTerms(price: Price, symbol: string): PriceUnitTerms | undefined {
  const { price_unit_id, price_unit, conversion_rate, currency } = price;
  if (price_unit_id === null || price_unit === null || conversion_rate === null) return undefined;
  return { id: price_unit_id, code: price_unit, symbol, base_currency: currency, conversion_rate };
}

/** Returns the amounts after the changes. A CUSTOM price is changed by amounts in its unit; the amounts in money are derived. */
function configAfter(price: Price, changes: PriceChanges): Partial<CreatePrice> {
  for (const field of ['amount', 'tiers'] as const)
    if (changes[field]) throw invalid(field, `is stated as price_unit_${field} for a CUSTOM price`);
  const billing_model = changes.billing_model ?? price.billing_model;
  if (changes.price_unit_tiers) checkCharged(billing_model, 'tiers', 'price_unit_tiers');
  const carryOver = <Value>(field: ChargedField, value: Value) =>
    isChargedBy(billing_model, field) && isChargedBy(price.billing_model, field) ? value : null;
  const price_unit_config = {
    price_unit: price.price_unit!,
    amount: changes.price_unit_amount ?? carryOver('amount', price.price_unit_amount),
    price_unit_tiers: changes.price_unit_tiers ?? carryOver('tiers', price.price_unit_tiers),
  };
  return { amount: null, tiers: null, price_unit_config };
}

function toCreatePrice(price: Price): CreatePrice {
  return createPriceShape.parse(price, { error: explainInvalid });
}
