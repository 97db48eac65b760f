/**
 * The price that follows a changed one (docs/rules/pricing.md, "Changing a price"): all rules of a new price hold for it, and
 * what the request does not state is taken over.
 */
import { invalid } from '../error.ts';
import { checkCharged, isChargedBy } from '../pricing/charge.ts';
import { explainInvalid } from '../why-invalid.ts';
import {
  CHARGED_FIELDS,
  type ChargedField,
  type CreatePrice,
  type CriticalField,
  createPriceShape,
  definePrice,
  type Price,
  type PriceDefinition,
  type PriceUnitTerms,
} from './record.ts';

export type PriceChanges = Partial<
  Pick<Price, CriticalField | 'lookup_key' | 'display_name' | 'description' | 'metadata' | 'group_id'>
>;

/** From when on it is charged, and how its price unit is written where it has one. */
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

/** Between models a field is taken over where both go by it: what the old one did not use says nothing about the new one. */
function chargeAfter(price: Price, changes: PriceChanges): Partial<CreatePrice> {
  const billing_model = changes.billing_model ?? price.billing_model;
  const isTakenOver = (field: ChargedField) =>
    isChargedBy(billing_model, field) === isChargedBy(price.billing_model, field);
  for (const field of CHARGED_FIELDS) {
    // An amount is shown by every price, also where its model has none.
    if (field !== 'amount' && changes[field]) checkCharged(billing_model, field);
  }
  return Object.fromEntries(
    CHARGED_FIELDS.map((field) => [field, changes[field] ?? (isTakenOver(field) ? price[field] : null)]),
  );
}

/** The unit as the price took it over: its rate is that of the price, whatever became of the unit. */
function toPriceUnitTerms(price: Price, symbol: string): PriceUnitTerms | undefined {
  const { price_unit_id, price_unit, conversion_rate, currency } = price;
  if (price_unit_id === null || price_unit === null || conversion_rate === null) return undefined;
  return { id: price_unit_id, code: price_unit, symbol, base_currency: currency, conversion_rate };
}

/** What a price in a unit of its own charges by is stated in the unit, and its money follows. */
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

/** A stored price as the request that would create it. */
function toCreatePrice(price: Price): CreatePrice {
  return createPriceShape.parse(price, { error: explainInvalid });
}
