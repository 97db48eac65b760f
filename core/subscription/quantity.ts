/**
 * Which quantity changes are possible (docs/rules/subscriptions.md, "Modifications"): of fixed lines, inside the running
 * period and inside the life of the line. The same quantity changes nothing.
 */
import { Decimal } from '../decimal.ts';
import { invalid, notFound } from '../error.ts';
import { type Milliseconds, toInstant } from '../time/instant.ts';
import type { Period } from '../time/period.ts';
import type { QuantityChangeParams } from './modification.ts';
import type { Subscription, SubscriptionLineItem } from './record.ts';

export type QuantityChange<Item> = { readonly item: Item; readonly quantity: string; readonly at: Milliseconds };

type Changeable = { readonly record: SubscriptionLineItem; readonly price_record: { min_quantity: string | null } };

export function quantityChangesOf<Item extends Changeable>(
  { line_items }: QuantityChangeParams,
  { items, current, now }: { items: readonly Item[]; current: Period; now: Milliseconds },
): QuantityChange<Item>[] {
  return line_items.flatMap((stated, index) => {
    const field = `quantity_change_params.line_items[${index}]`;
    if (line_items.findIndex(({ id }) => id === stated.id) < index) throw invalid(`${field}.id`, 'is named twice');
    const item = items.find(({ record }) => record.id === stated.id);
    if (item === undefined) throw notFound('subscription line item', stated.id);
    const at = stated.effective_date ? toInstant(stated.effective_date) : now;
    checkInstant(at, { item, current, field });
    checkQuantity(stated.quantity, { item, field });
    return new Decimal(stated.quantity).eq(item.record.quantity) ? [] : [{ item, quantity: stated.quantity, at }];
  });
}

function checkInstant(
  at: Milliseconds,
  { item: { record }, current, field }: { item: Changeable; current: Period; field: string },
): void {
  if (at < current.start || at >= current.end)
    throw invalid(`${field}.effective_date`, 'must lie inside the running period of the subscription');
  if (at < toInstant(record.start_date) || (record.end_date && at >= toInstant(record.end_date)))
    throw invalid(`${field}.effective_date`, 'must lie between the start and the end of the line item');
}

function checkQuantity(stated: string, { item, field }: { item: Changeable; field: string }): void {
  const { record, price_record } = item;
  if (record.price_type !== 'FIXED')
    throw invalid(`${field}.id`, 'is a line item of a usage price, whose quantity is measured');
  if (record.billing_period === 'ONETIME') throw invalid(`${field}.id`, 'is charged once, and was charged already');
  checkUnits(stated, price_record.min_quantity, { field: `${field}.quantity`, price_id: record.price_id });
}

function checkUnits(
  stated: string,
  min_quantity: string | null | undefined,
  { field, price_id }: { field: string; price_id: string },
): void {
  const quantity = new Decimal(stated);
  if (quantity.isNegative()) throw invalid(field, 'must not be negative');
  if (min_quantity && quantity.lt(min_quantity))
    throw invalid(field, `is below the min_quantity ${min_quantity} of price ${price_id}`);
}

/** Of a change of one line, which may state another quantity with its charge: null where it is the one that the line has. */
export function changedQuantity(
  stated: string | null | undefined,
  { record, price_record }: Changeable,
): string | null {
  if (stated === null || stated === undefined || new Decimal(stated).eq(record.quantity)) return null;
  if (record.price_type !== 'FIXED') throw invalid('quantity', 'of a usage price is measured, and cannot be stated');
  checkUnits(stated, price_record.min_quantity, { field: 'quantity', price_id: record.price_id });
  return stated;
}

/** Only an active subscription is modified. */
export function checkModifiable(subscription: Pick<Subscription, 'subscription_status'>): void {
  if (subscription.subscription_status !== 'active')
    throw invalid(
      'subscription_status',
      `a subscription that is ${subscription.subscription_status} cannot be modified so`,
    );
}
