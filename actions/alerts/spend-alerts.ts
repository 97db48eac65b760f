/**
 * Checks the spend of a subscription, its lines and groups of lines in the running period, by the rating of usage
 * (docs/rules/alerts.md, "What is spent"). Checks are serialized, so an older sum does not override a newer one.
 */
import { type SpendEntity, toSpendAlertKey } from '../../core/catalog/alert/record.ts';
import { deriveAlertState, hasFallenBetween } from '../../core/catalog/alert/state.ts';
import { type Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import type { Milliseconds } from '../../core/foundation/time/instant.ts';
import type { SystemEventName } from '../../core/platform/system-event/catalogue.ts';
import type { Stores, Transaction } from '../../storage/foundation/stores.ts';
import { AlertSettingModel } from '../../storage/models/alerts/alert-setting.ts';
import { findReachedSpend, lockAlerts } from '../../storage/models/alerts/alert-states.ts';
import { FeatureModel } from '../../storage/models/catalog/feature.ts';
import { SubscriptionModel } from '../../storage/models/subscriptions/subscription.ts';
import { recordAlertState } from '../credits/balance-alerts/record-alert-state.ts';
import { emit } from '../foundation/emit.ts';
import { loadSubscriptionUsage, type SubscriptionUsageCharge } from '../invoicing/billing/subscription-usage.ts';

const WATCHED: readonly SubscriptionModel['subscription_status'][] = ['active', 'trialing'];

/** Returns the number of changed states. */
export async function checkSpend(
  stores: Stores,
  scope: Scope,
  { subscription_id, now }: { subscription_id: string; now: Date },
): Promise<number> {
  const [watched] = await AlertSettingModel.watching(scope, [subscription_id], stores.postgres).limit(1);
  if (!watched) return 0;
  return stores.postgres.transaction(async (transaction) => {
    await lockAlerts(transaction, subscription_id);
    const subscription = await SubscriptionModel.fetch(scope, subscription_id, { database: transaction });
    if (!WATCHED.includes(subscription.subscription_status)) return 0;
    const settings = await AlertSettingModel.watching(scope, [subscription_id], transaction);
    const { charges, period } = await loadSubscriptionUsage(stores, scope, { subscription_id }, now);
    const spent_from = new Date(Math.max(period.start, ...charges.map(({ service }) => service.start)));
    const groups = await loadGroupMeters(transaction, scope, settings);
    let changed = 0;
    for (const setting of settings) {
      const spent = { setting, subscription, spent_from, now };
      const spentIn = (some: readonly SubscriptionUsageCharge[]) => sumSpend(setting, some, groups);
      const value = spentIn(charges);
      const carried = (since: Milliseconds) => spentIn(charges.filter(({ service }) => service.start <= since));
      if (await recordPeriodStartAlert(transaction, { ...spent, value, carried })) changed += 1;
      if (await recordSpendAlert(transaction, { ...spent, value })) changed += 1;
    }
    return changed;
  });
}

async function loadGroupMeters(
  transaction: Transaction,
  scope: Scope,
  settings: readonly AlertSettingModel[],
): Promise<Map<string, Set<string>>> {
  const ids = settings.filter(({ entity_type }) => entity_type === 'group').map(({ entity_id }) => entity_id);
  const features =
    ids.length === 0 ? [] : await FeatureModel.in(scope, transaction).whereIn('group_id', ids).whereNotNull('meter_id');
  const listMeters = (id: string) =>
    features.filter(({ group_id }) => group_id === id).map(({ meter_id }) => meter_id!);
  return new Map(ids.map((id) => [id, new Set(listMeters(id))]));
}

/** Sums the spend per group. A line belongs to a group by its price, or by the feature of its meter. */
function sumSpend(
  { entity_type, entity_id }: AlertSettingModel,
  charges: readonly SubscriptionUsageCharge[],
  groups: ReadonlyMap<string, ReadonlySet<string>>,
): Decimal {
  const isInScope = ({ item }: SubscriptionUsageCharge) => {
    if (entity_type === 'subscription') return true;
    if (entity_type === 'subscription_line_item') return item.line_item.id === entity_id;
    return item.price.group_id === entity_id || groups.get(entity_id)!.has(item.meter_id ?? '');
  };
  return sumDecimals(charges.filter(isInScope).map(({ amount }) => amount));
}

const EVENTS: Record<SpendEntity, readonly [reached: SystemEventName, recovered: SystemEventName]> = {
  subscription: ['subscription.spend.threshold_reached', 'subscription.spend.threshold_recovered'],
  subscription_line_item: [
    'subscription.line_item_spend.threshold_reached',
    'subscription.line_item_spend.threshold_recovered',
  ],
  group: ['subscription.group_spend.threshold_reached', 'subscription.group_spend.threshold_recovered'],
};

type SpendAlertInput = {
  setting: AlertSettingModel;
  subscription: SubscriptionModel;
  value: Decimal;
  /** Start of the latest service period whose charges `value` includes. */
  spent_from: Date;
  now: Date;
};

/** `carried` sums the spend of the running service periods that had begun by `since`. */
type CarriedSpend = { carried(since: Milliseconds): Decimal };

/**
 * If a period began and its spend reached the threshold again since the last check, first records the lower state at the period's start.
 */
async function recordPeriodStartAlert(
  transaction: Transaction,
  { carried, ...spent }: SpendAlertInput & CarriedSpend,
): Promise<boolean> {
  const { setting, value } = spent;
  const reached = await findReachedSpend(transaction, setting, toSpendAlertKey(setting));
  if (reached === null) return false;
  const begun = carried(reached.spent_from);
  const deriveState = (spending: Decimal) => deriveAlertState(setting.config!, spending, UNLESS);
  if (!hasFallenBetween(reached.state, deriveState(begun), deriveState(value))) return false;
  return recordSpendAlert(transaction, { ...spent, value: begun });
}

const UNLESS = 'above' as const;

async function recordSpendAlert(transaction: Transaction, spent: SpendAlertInput): Promise<boolean> {
  const { setting, subscription, value, spent_from, now } = spent;
  const entity_type = setting.entity_type as SpendEntity;
  const { entity_id } = setting;
  const compared = {
    ...toSpendAlertKey(setting),
    entity_type,
    parent_entity_type: entity_type === 'subscription' ? null : ('subscription' as const),
    customer_id: subscription.customer_id,
    settings: setting.config!,
    unless: UNLESS,
    value,
    spent_from,
  };
  const change = await recordAlertState(transaction, setting, { compared, by: { now } });
  if (change === null) return false;
  const [reached, recovered] = EVENTS[entity_type];
  const also = {
    subscription_line_item_id: entity_type === 'subscription_line_item' ? entity_id : null,
    group_id: entity_type === 'group' ? entity_id : null,
    alert_type: compared.alert_type,
    alert_status: change.state,
    current_spend: value.toFixed(),
    threshold: change.threshold,
    triggered_at: now.toISOString(),
  };
  await emit(transaction, change.state === 'ok' ? recovered : reached, { record: subscription, by: { now }, also });
  return true;
}
