/**
 * A price that is stated with the line that charges it: a price of the subscription's own, in its currency, sold from where
 * the line begins (docs/rules/subscriptions.md, "Extra lines"). Every rule of a price holds for it.
 */
import { z } from 'zod';
import { invalid } from '../error.ts';
import { type CreatePrice, createPriceShape } from '../price/record.ts';
import { orNull } from '../record.ts';

export const inlinePriceShape = createPriceShape.omit({ entity_type: true, entity_id: true }).extend({
  currency: orNull(z.string()).meta({ description: 'That of the subscription, also when absent.' }),
  start_date: createPriceShape.shape.start_date.meta({
    description: 'From when on it is sold; from the start of its line when absent.',
  }),
});
export type InlinePrice = z.output<typeof inlinePriceShape>;

/** Which price a line charges is said once. */
export function checkOnePrice(line: { price_id: string | null; price: InlinePrice | null }, field?: string): void {
  const at = (name: string) => (field === undefined ? name : `${field}.${name}`);
  if (line.price_id && line.price) throw invalid(at('price'), 'cannot be combined with price_id');
  if (!line.price_id && !line.price) throw invalid(at('price_id'), 'is required, or price instead of it');
}

/** The request that creates it. `start_date` is that of the line. */
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
