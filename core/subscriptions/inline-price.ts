/**
 * A price that a request defines together with its line: it belongs to the subscription, has its currency and is sold
 * from the start of the line (docs/rules/subscriptions.md, "Extra lines"). Every rule of a price applies to it.
 */
import { z } from 'zod';
import { type CreatePrice, createPriceShape } from '../catalog/price/record.ts';
import { invalid } from '../foundation/error.ts';
import { orNull } from '../foundation/record.ts';

export const inlinePriceShape = createPriceShape.omit({ entity_type: true, entity_id: true }).extend({
  currency: orNull(z.string()).meta({
    description: 'Currency of the subscription, which is also the default. Any other currency is refused.',
  }),
  start_date: createPriceShape.shape.start_date.meta({
    description: 'Instant from which the price is sold. Default: the start of its line.',
  }),
});
export type InlinePrice = z.output<typeof inlinePriceShape>;

/** Throws unless the line names its price by exactly one of the two fields. */
export function checkOnePrice(line: { price_id: string | null; price: InlinePrice | null }, field?: string): void {
  const at = (name: string) => (field === undefined ? name : `${field}.${name}`);
  if (line.price_id && line.price) throw invalid(at('price'), 'cannot be combined with price_id');
  if (!line.price_id && !line.price) throw invalid(at('price_id'), 'is required, or price instead of it');
}

/** Builds the price of a line; `start_date` is the start of the line. */
export function toCreatePrice(
  inline: InlinePrice,
  { subscription, start_date }: { subscription: { id: string; currency: string }; start_date: string },
): CreatePrice {
  const { id, currency } = subscription;
  if (inline.currency !== null && inline.currency.toLowerCase() !== currency)
    throw invalid('currency', `must be ${currency}, the currency of the subscription`);
  return {
    ...inline,
    currency,
    start_date: inline.start_date ?? start_date,
    entity_type: 'SUBSCRIPTION',
    entity_id: id,
  };
}
