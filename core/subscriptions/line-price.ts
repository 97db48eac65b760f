/**
 * Price of a line whose charge changes. It belongs to the subscription and succeeds the price of the line; its root is
 * the first price of the line (docs/rules/subscriptions.md, "Lines that come and go"). Other subscriptions retain their
 * prices.
 */
import { CRITICAL_FIELDS, type CriticalField, type Price, type PriceDefinition } from '../catalog/price/record.ts';
import { planSuccessor } from '../catalog/price/successor.ts';

type LineCharge = Partial<Pick<Price, CriticalField>>;

/** Charge fields that the request sets. A null field is not set. */
export function toLineCharge(request: object): LineCharge {
  const requested = request as Readonly<Record<string, unknown>>;
  const fields = CRITICAL_FIELDS.filter((field) => requested[field] !== null && requested[field] !== undefined);
  return Object.fromEntries(fields.map((field) => [field, requested[field]]));
}

/** Builds the price of a changed line. `symbol` is the symbol of the price unit. */
export function buildLinePrice(
  price: Price,
  charge: LineCharge,
  { subscription_id, start_date, symbol }: { subscription_id: string; start_date: string; symbol: string },
): PriceDefinition {
  return {
    ...planSuccessor(price, charge, { start_date, symbol }),
    entity_type: 'SUBSCRIPTION',
    entity_id: subscription_id,
    lookup_key: null,
  };
}
