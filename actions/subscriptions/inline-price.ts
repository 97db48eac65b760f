/** Stores the inline price of a subscription line (core/subscriptions/inline-price.ts). */
import { prefixField } from '../../core/foundation/error.ts';
import { type InlinePrice, toCreatePrice } from '../../core/subscriptions/inline-price.ts';
import type { Subscription } from '../../core/subscriptions/record.ts';
import type { PriceModel } from '../../storage/models/catalog/price.ts';
import { addPrice, type PriceWriteContext } from '../catalog/prices/create-price.ts';

type InlineLine = {
  readonly subscription: Pick<Subscription, 'id' | 'currency' | 'start_date'>;
  /** Start of the line; null means the start of the subscription. */
  readonly start_date: string | null;
  /** Path of the price in the request: `line_items[0].price`. */
  readonly field: string;
};

/** Stores an inline price. `writing` holds the transaction that locks or creates the subscription. */
export async function storeInlinePrice(
  inline: InlinePrice,
  { subscription, start_date, field }: InlineLine,
  writing: PriceWriteContext,
): Promise<PriceModel> {
  try {
    const from = start_date ?? subscription.start_date;
    return await addPrice(toCreatePrice(inline, { subscription, start_date: from }), writing);
  } catch (error) {
    throw prefixField(error, field);
  }
}
