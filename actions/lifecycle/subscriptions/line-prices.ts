/** Prices of the lines of a new subscription: of the plan, overridden, or inline. */
import type { Price } from '../../../core/catalog/price/record.ts';
import { invalid, notFound } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { checkOnePrice } from '../../../core/subscriptions/inline-price.ts';
import { buildOverriddenPrice, hasPriceChange } from '../../../core/subscriptions/lines.ts';
import type { ExtraLine, PlanPart } from '../../../core/subscriptions/phases.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { loadUnitSymbol } from '../../catalog/prices/create-price.ts';
import { storeInlinePrice } from '../../subscriptions/inline-price.ts';
import { storeOwnPrice } from '../../subscriptions/line-commitments.ts';

type PriceAuthor = { readonly scope: Scope; readonly author: Author };

export async function storePartPrice(
  { scope, author }: PriceAuthor,
  { part: { plan_price, override }, subscription }: { part: PlanPart; subscription: SubscriptionModel },
  database: Database,
): Promise<Price> {
  if (override === null || !hasPriceChange(override)) return plan_price;
  const { id, start_date } = subscription;
  const symbol = await loadUnitSymbol(plan_price, { scope, database, author });
  return storeOwnPrice(
    buildOverriddenPrice(plan_price, override, { id, start_date, symbol }),
    { scope, author },
    database,
  );
}

/** Loads an existing price, or stores the inline price of the line. Refuses a price in another currency than the subscription's. */
export async function loadExtraPrice(
  { extras, terms, scope, author }: PriceAuthor & { extras: ReadonlyMap<string, Price>; terms: { currency: string } },
  { requested, field, subscription }: ExtraLine & { subscription: SubscriptionModel },
  database: Database,
): Promise<Price> {
  checkOnePrice(requested, field);
  if (requested.price) {
    const inline = { subscription, start_date: requested.start_date, field: `${field}.price` };
    return storeInlinePrice(requested.price, inline, { scope, database, author });
  }
  const price = extras.get(requested.price_id!);
  if (!price) throw notFound('price', requested.price_id!);
  if (price.currency !== terms.currency) {
    throw invalid(`${field}.price_id`, `is in ${price.currency}, the subscription in ${terms.currency}`);
  }
  return price;
}
