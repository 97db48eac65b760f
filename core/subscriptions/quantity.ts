/**
 * Checks quantity changes (docs/rules/subscriptions.md, "Modifications"): fixed lines only, inside the running period
 * and the active interval of the line. An equal quantity changes nothing.
 */
import { Decimal } from '../foundation/decimal.ts';
import { buildStateError, invalid, notFound } from '../foundation/error.ts';
import { type Milliseconds, toInstant } from '../foundation/time/instant.ts';
import type { Period } from '../foundation/time/period.ts';
import type { QuantityChangeParams } from './modification.ts';
import type { Subscription, SubscriptionLineItem } from './record.ts';

type QuantityChange<Item> = { readonly item: Item; readonly quantity: string; readonly at: Milliseconds };

type QuantityChangeItem = {
  readonly line_item: SubscriptionLineItem;
  readonly price: { min_quantity: string | null };
};

export function planQuantityChanges<Item extends QuantityChangeItem>(
  { line_items }: QuantityChangeParams,
  { items, current, now }: { items: readonly Item[]; current: Period; now: Milliseconds },
): QuantityChange<Item>[] {
  return line_items.flatMap((requested, index) => {
    const field = `quantity_change_params.line_items[${index}]`;
    if (line_items.findIndex(({ id }) => id === requested.id) < index) throw invalid(`${field}.id`, 'is named twice');
    const item = items.find(({ line_item }) => line_item.id === requested.id);
    if (item === undefined) throw notFound('subscription line item', requested.id);
    const at = requested.effective_date ? toInstant(requested.effective_date) : now;
    checkInstant(at, { item, current, field });
    checkQuantity(requested.quantity, { item, field });
    return new Decimal(requested.quantity).eq(item.line_item.quantity)
      ? []
      : [{ item, quantity: requested.quantity, at }];
  });
}

function checkInstant(
  at: Milliseconds,
  { item: { line_item }, current, field }: { item: QuantityChangeItem; current: Period; field: string },
): void {
  if (at < current.start || at >= current.end)
    throw invalid(`${field}.effective_date`, 'must lie inside the running period of the subscription');
  if (at < toInstant(line_item.start_date) || (line_item.end_date && at >= toInstant(line_item.end_date)))
    throw invalid(`${field}.effective_date`, 'must lie between the start and the end of the line item');
}

function checkQuantity(requested: string, { item, field }: { item: QuantityChangeItem; field: string }): void {
  const { line_item, price } = item;
  if (line_item.price_type !== 'FIXED')
    throw invalid(`${field}.id`, 'is a line item of a usage price, whose quantity is measured');
  if (line_item.billing_period === 'ONETIME') throw invalid(`${field}.id`, 'is charged once, and was charged already');
  checkUnits(requested, price.min_quantity, { field: `${field}.quantity`, price_id: line_item.price_id });
}

function checkUnits(
  requested: string,
  min_quantity: string | null | undefined,
  { field, price_id }: { field: string; price_id: string },
): void {
  const quantity = new Decimal(requested);
  if (quantity.isNegative()) throw invalid(field, 'must not be negative');
  if (min_quantity && quantity.lt(min_quantity))
    throw invalid(field, `is below the min_quantity ${min_quantity} of price ${price_id}`);
}

/** Quantity in a request that changes a line's charge. Null if it equals the quantity of the line. */
export function parseChangedQuantity(
  requested: string | null | undefined,
  { line_item, price }: QuantityChangeItem,
): string | null {
  if (requested === null || requested === undefined || new Decimal(requested).eq(line_item.quantity)) return null;
  if (line_item.price_type !== 'FIXED') throw invalid('quantity', 'of a usage price is measured, and cannot be stated');
  checkUnits(requested, price.min_quantity, { field: 'quantity', price_id: line_item.price_id });
  return requested;
}

export function checkModifiable(subscription: Pick<Subscription, 'subscription_status'>): void {
  if (subscription.subscription_status !== 'active')
    throw buildStateError(
      'subscription_status',
      `a subscription that is ${subscription.subscription_status} cannot be modified so`,
    );
}
