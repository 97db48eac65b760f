/**
 * Finds meters that other subscriptions of the same customer charge, too. They are refused if the setting `subscription_config` requires it
 * (docs/rules/subscriptions.md, "One meter in two subscriptions").
 */

import { toInstant } from '../../core/foundation/time/instant.ts';
import {
  type ChargingLine,
  describeSharedMeter,
  findSharedMeters,
  refuseSharedMeter,
  type SharedMeter,
} from '../../core/subscriptions/shared-meters.ts';
import type { Database, Transaction } from '../../storage/foundation/stores.ts';
import { CustomerModel } from '../../storage/models/catalog/customer.ts';
import { loadSetting } from '../../storage/models/foundation/setting.ts';
import { MeterModel } from '../../storage/models/metering/meter.ts';
import { SubscriptionModel } from '../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../storage/models/subscriptions/subscription-line-item.ts';
import { toBilledSubscription, toScope } from '../rating/billable-items.ts';

export type SharedMeterLine = Pick<
  SubscriptionLineItemModel,
  'price_type' | 'meter_id' | 'start_date' | 'end_date' | 'subscription_id' | 'follows_line_item_id'
>;

/** Refuses lines that begin with a request. The customer's row lock decides the order of concurrent requests. */
export async function checkSharedMeters(
  transaction: Transaction,
  subscription: SubscriptionModel,
  begun: readonly SharedMeterLine[],
): Promise<void> {
  if (!(await refusesShared(transaction, subscription, begun))) return;
  await CustomerModel.fetch(toScope(subscription), subscription.customer_id, { database: transaction, lock: true });
  await refuseIfShared(transaction, subscription, begun);
}

/** Checks shared meters for a preview, which locks no rows. */
export async function checkSharedMetersAhead(
  database: Database,
  subscription: SubscriptionModel,
  begun: readonly SharedMeterLine[],
): Promise<void> {
  if (await refusesShared(database, subscription, begun)) await refuseIfShared(database, subscription, begun);
}

/** Whether the subscription refuses shared meters. A draft charges nothing, and is checked when it is activated. */
async function refusesShared(
  database: Database,
  subscription: SubscriptionModel,
  begun: readonly SharedMeterLine[],
): Promise<boolean> {
  if (subscription.subscription_status === 'draft' || withNewMeters(begun).length === 0) return false;
  return (await loadSetting(toScope(subscription), 'subscription_config', database)).refuse_shared_meters;
}

async function refuseIfShared(database: Database, subscription: SubscriptionModel, begun: readonly SharedMeterLine[]) {
  const [shared] = await loadSharedMeters(database, subscription, withNewMeters(begun));
  if (!shared) return;
  const meter = await MeterModel.fetch(toScope(subscription), shared.meter_id, { database });
  throw refuseSharedMeter(shared, meter.name);
}

/** Excludes lines that follow another line: they change its terms and charge no additional meter. */
function withNewMeters(begun: readonly SharedMeterLine[]): SharedMeterLine[] {
  return begun.filter(({ meter_id, follows_line_item_id }) => meter_id && !follows_line_item_id);
}

/** Formats messages for people, one sentence per meter. */
export async function describeSharedMeters(
  database: Database,
  subscription: SubscriptionModel,
  lines: readonly SharedMeterLine[],
): Promise<(SharedMeter & { readonly message: string })[]> {
  const shared = await loadSharedMeters(database, subscription, lines);
  const ids = shared.map(({ meter_id }) => meter_id);
  const meters = await MeterModel.byId(toScope(subscription), ids, database);
  return shared.map((one) => ({ ...one, message: describeSharedMeter(one, meters.get(one.meter_id)?.name ?? '') }));
}

async function loadSharedMeters(
  database: Database,
  subscription: SubscriptionModel,
  lines: readonly SharedMeterLine[],
): Promise<SharedMeter[]> {
  const scope = toScope(subscription);
  const own = lines.flatMap((line) => chargingLine(line, subscription) ?? []);
  if (own.length === 0) return [];
  const found = await SubscriptionLineItemModel.in(scope, database)
    .select('subscription_id', 'meter_id', 'price_type', 'start_date', 'end_date')
    .where({ customer_id: subscription.customer_id, status: 'published', price_type: 'USAGE' })
    .whereNot('subscription_id', subscription.id)
    .whereIn('meter_id', [...new Set(own.map(({ meter_id }) => meter_id))]);
  const subscriptions = await SubscriptionModel.byId(
    scope,
    found.map(({ subscription_id }) => subscription_id),
    database,
  );
  const others = found.flatMap((line) => {
    const other = subscriptions.get(line.subscription_id);
    const isCharging = other && other.status === 'published' && other.subscription_status !== 'draft';
    return isCharging ? (chargingLine(line, other) ?? []) : [];
  });
  return findSharedMeters(own, others);
}

/** Converts a line for the comparison; null if it charges no usage. A trial is never charged. */
function chargingLine(
  { price_type, meter_id, start_date, end_date }: SharedMeterLine,
  subscription: SubscriptionModel,
): ChargingLine | null {
  if (price_type !== 'USAGE' || !meter_id) return null;
  const { end_ms: over_ms, start_ms } = toBilledSubscription(subscription);
  const ends = [over_ms, end_date ? toInstant(end_date) : null].flatMap((end) => end ?? []);
  const end_ms = ends.length > 0 ? Math.min(...ends) : null;
  const begins = [start_ms, toInstant(start_date), subscription.trial_end ? toInstant(subscription.trial_end) : 0];
  const start = Math.max(...begins);
  if (end_ms !== null && end_ms <= start) return null;
  return { subscription_id: subscription.id, meter_id, start_ms: start, end_ms };
}
