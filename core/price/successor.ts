/**
 * The price that follows a changed one (docs/rules/pricing.md, "Changing a price"): all rules of a new price hold for it, and
 * what the request does not state is taken over.
 */
import { invalid } from '../error.ts';
import { chargingModels, isChargedBy } from '../pricing/charge.ts';
import { whyInvalid } from '../why-invalid.ts';
import {
  CHARGED_FIELDS,
  type ChargedField,
  type CreatePrice,
  type CriticalField,
  createPriceShape,
  definePrice,
  type Price,
  type PriceDefinition,
} from './record.ts';

export type PriceChanges = Partial<
  Pick<Price, CriticalField | 'lookup_key' | 'display_name' | 'description' | 'metadata' | 'group_id'>
>;

export function successorOf(price: Price, changes: PriceChanges, start_date: string): PriceDefinition {
  if (changes.price_unit_amount !== undefined || changes.price_unit_tiers !== undefined)
    throw invalid('price_unit_type', 'a FIAT price may not carry price unit fields');
  const definition = definePrice({
    ...statedBy(price),
    ...changes,
    ...chargeAfter(price, changes),
    start_date,
    end_date: null,
  });
  return { ...definition, parent_price_id: price.parent_price_id || price.id };
}

/** Between models a field is taken over where both go by it: what the old one did not use says nothing about the new one. */
function chargeAfter(price: Price, changes: PriceChanges): Partial<CreatePrice> {
  const billing_model = changes.billing_model ?? price.billing_model;
  const isTakenOver = (field: ChargedField) =>
    isChargedBy(billing_model, field) === isChargedBy(price.billing_model, field);
  for (const field of CHARGED_FIELDS) {
    // An amount is shown by every price, also where its model has none.
    if (field !== 'amount' && changes[field] && !isChargedBy(billing_model, field))
      throw invalid(field, `is used by ${chargingModels(field)} only, not by ${billing_model}`);
  }
  return Object.fromEntries(
    CHARGED_FIELDS.map((field) => [field, changes[field] ?? (isTakenOver(field) ? price[field] : null)]),
  );
}

/** A stored price as the request that would create it. */
function statedBy(price: Price): CreatePrice {
  return createPriceShape.parse(price, { error: whyInvalid });
}
