/**
 * The price of a line that is to charge differently: one of the subscription's own, which follows the price of the line, with
 * the first of them as its root (docs/rules/subscriptions.md, "Lines that come and go"). Other subscriptions keep theirs.
 */
import { CRITICAL_FIELDS, type CriticalField, type Price, type PriceDefinition } from '../price/record.ts';
import { planSuccessor } from '../price/successor.ts';

export type LineCharge = Partial<Pick<Price, CriticalField>>;

/** What is stated of the charge; null states nothing. */
export function toLineCharge(request: object): LineCharge {
  const requested = request as Readonly<Record<string, unknown>>;
  const fields = CRITICAL_FIELDS.filter((field) => requested[field] !== null && requested[field] !== undefined);
  return Object.fromEntries(fields.map((field) => [field, requested[field]]));
}

/** `symbol` is that of its price unit. */
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
