/** Fixed charges of begun periods that are on no invoice yet, as the next invoice will contain them. */

import { Decimal } from '../../../core/foundation/decimal.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import type { EarnedAmount } from '../../../core/invoicing/revenue/earned.ts';
import { deriveServicePeriod, type EarnedLine } from '../../../core/invoicing/revenue/line.ts';
import { type BilledSubscription, computeServicesWithin, hasOwnPeriods } from '../../../core/rating/charges.ts';
import { priceFixedCharge } from '../../../core/rating/line-amount.ts';
import { invoicedKeys, listOpenCharges } from '../../../core/rating/plan-invoice.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import {
  type BillableItem,
  currentPeriodUntilEnd,
  requireRecord,
  toBillableItem,
  toBilledSubscription,
} from '../../rating/billable-items.ts';

type OpenFixedChargesQuery = {
  readonly subscriptions: readonly SubscriptionModel[];
  /** Invoice lines for a time that overlaps the range. */
  readonly lines: readonly EarnedLine[];
  readonly range: Period;
  readonly now: Date;
};

export async function listOpenFixedCharges(
  database: Database,
  scope: Scope,
  query: OpenFixedChargesQuery,
): Promise<EarnedAmount[]> {
  const running = query.subscriptions.filter(
    ({ subscription_status, opens_at }) => subscription_status === 'active' && !opens_at,
  );
  const records = await SubscriptionLineItemModel.in(scope, database)
    .whereIn('subscription_id', [...running.map(({ id }) => id)])
    .where({ status: 'published', price_type: 'FIXED' });
  const prices = await PriceModel.byId(
    scope,
    records.map(({ price_id }) => price_id),
    database,
  );
  const bySubscription = groupBy(records, ({ subscription_id }) => subscription_id);
  const invoiced = listInvoicedKeys(query.lines);
  return running.flatMap((subscription) => {
    const items = (bySubscription.get(subscription.id) ?? []).map((record) =>
      toBillableItem(record, { price: requireRecord(prices, record.price_id, 'price'), meter: null, subscription }),
    );
    const period = currentPeriodUntilEnd(subscription);
    if (items.length === 0 || period.end <= period.start) return [];
    const billed = toBilledSubscription(subscription);
    return items
      .flatMap((item) => {
        const until = computeChargedPeriod(item, { subscription: billed, period });
        return listOpenCharges({ subscription: billed, items: [item], period: until, reference: 'preview', invoiced });
      })
      .filter(({ service }) => service.start < query.range.end && service.start <= query.now.getTime())
      .map(({ item, service, share }) => {
        const { amount } = priceFixedCharge(item, share, subscription.currency);
        return { amount, currency: subscription.currency, service };
      });
  });
}

/**
 * Computes the running period. If an item has longer periods of its own, the result extends to the end of the item's period that begins in
 * the running period.
 */
function computeChargedPeriod(
  item: BillableItem,
  { subscription, period }: { subscription: BilledSubscription; period: Period },
) {
  if (item.billing_period === 'ONETIME' || !hasOwnPeriods(item, subscription)) return period;
  const ends = computeServicesWithin(period, item, subscription).map(({ end }) => end);
  return { start: period.start, end: Math.max(period.end, ...ends) };
}

/** Lists the keys of invoiced charges. A credit for unused time is no charge. */
function listInvoicedKeys(lines: readonly EarnedLine[]): Set<string> {
  const charges = lines.filter(({ line }) => line.price_type === 'FIXED' && !new Decimal(line.amount).isNegative());
  return new Set(
    charges.flatMap((one) => invoicedKeys(one.line.subscription_line_item_id ?? '', deriveServicePeriod(one))),
  );
}
