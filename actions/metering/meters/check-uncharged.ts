/**
 * A meter that charges something cannot be archived: it would match no more events, and later usage would be free
 * (docs/rules/records.md, "Archiving"). A new price locks the meter, so none is added meanwhile.
 */
import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Meter } from '../../../core/metering/meter/record.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { CostsheetModel } from '../../../storage/models/reporting/costsheet.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';

type MeterChargesQuery = { now: Date; database: Database };

export async function checkUncharged(
  scope: Scope,
  { id }: Pick<Meter, 'id'>,
  reading: MeterChargesQuery,
): Promise<void> {
  const prices = await listPrices(scope, id, reading);
  if (prices.length > 0)
    throw notAllowed(`meter ${id} is charged by ${formatCount(prices, 'price')}: end or archive them first`, {
      price_ids: prices.slice(0, NAMED_MAX),
    });
  const lines = await listLines(scope, id, reading);
  if (lines.length > 0)
    throw notAllowed(
      `meter ${id} is charged by ${formatCount(lines, 'line')} of subscriptions that are not cancelled`,
      {
        line_item_ids: lines.slice(0, NAMED_MAX),
      },
    );
}

const NAMED_MAX = 10;

/** Formats a count with the first ids, e.g. `12 prices (price_1, price_2, price_3, …)`. */
function formatCount(ids: readonly string[], noun: string): string {
  const named = ids.slice(0, 3).join(', ');
  return `${ids.length} ${noun}${ids.length === 1 ? '' : 's'} (${named}${ids.length > 3 ? ', …' : ''})`;
}

/**
 * Excludes prices that exist but charge nothing: a price of a subscription charges only through its line, which may have ended, and prices
 * of a deleted cost sheet remain.
 */
async function listPrices(scope: Scope, meter_id: string, { now, database }: MeterChargesQuery): Promise<string[]> {
  const sheets = CostsheetModel.in(scope, database).select('id').where('status', 'published');
  const prices = await PriceModel.current(scope, now, database)
    .select('id')
    .where('meter_id', meter_id)
    .whereNot('entity_type', 'SUBSCRIPTION')
    .where((sold) => void sold.whereNot('entity_type', 'COSTSHEET').orWhereIn('entity_id', sheets))
    .orderBy('id');
  return prices.map(({ id }) => id);
}

async function listLines(scope: Scope, meter_id: string, { now, database }: MeterChargesQuery): Promise<string[]> {
  const live = SubscriptionModel.in(scope, database)
    .select('id')
    .where('status', 'published')
    .whereNot('subscription_status', 'cancelled');
  const running = narrow(SubscriptionLineItemModel.in(scope, database), [
    ['meter_id', meter_id],
    ['status', 'published'],
    ['end_date', 'open at', now],
  ]);
  const lines = await running.select('id').whereIn('subscription_id', live).orderBy('id');
  return lines.map(({ id }) => id);
}
