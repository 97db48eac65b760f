/**
 * Checks the used share and the remainder of each current entitlement grant (docs/rules/alerts.md, "Grants of entitlements"). Each grant
 * has its own state, identified by its entitlement and its start.
 */
import { createHash } from 'node:crypto';
import { EXHAUSTED, findAlertSettings, usageRatio } from '../../core/catalog/alert/grant.ts';
import { toPublishedEntitlement } from '../../core/catalog/entitlement/record.ts';
import type { AlertSettings } from '../../core/catalog/feature/record.ts';
import type { Decimal } from '../../core/foundation/decimal.ts';
import { formatId } from '../../core/foundation/id.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import type { SystemEventName } from '../../core/platform/system-event/catalogue.ts';
import { groupGrantsByDuration } from '../../core/rating/allowances/grants.ts';
import type { Stores, Transaction } from '../../storage/foundation/stores.ts';
import { deleteAlertStates, lockAlerts } from '../../storage/models/alerts/alert-states.ts';
import { EntitlementModel } from '../../storage/models/catalog/entitlement.ts';
import { recordAlertState } from '../credits/balance-alerts/record-alert-state.ts';
import { emit } from '../foundation/emit.ts';
import {
  type EntitlementReadContext,
  listEntitledFeatures,
  listGrantingSubscriptions,
  type SubscriptionEntitlementSource,
} from '../rating/allowances/entitled-features.ts';
import type { FeatureUsageSnapshot } from '../rating/entitlements/feature-usage.ts';
import { gatherGrantedUsage, isGranted } from '../rating/entitlements/granted-usage.ts';

/** Returns the number of changed states. */
export async function checkGrants(
  stores: Stores,
  scope: Scope,
  { customer_id, now }: { customer_id: string; now: Date },
): Promise<number> {
  const reading: EntitlementReadContext = { scope, database: stores.postgres, now };
  const subscriptions = await listGrantingSubscriptions(customer_id, undefined, reading);
  const granted = async () => (await listEntitledFeatures(subscriptions, undefined, reading)).filter(isGranted);
  if ((await granted()).length === 0) return 0;
  return stores.postgres.transaction(async (transaction) => {
    // Customers that share a subscription share its grants, so the lock is per subscription.
    for (const { id } of subscriptions) await lockAlerts(transaction, `grants ${id}`);
    // The grants and their thresholds are read under the lock, after the previous check, so that changed thresholds do not repeat an alert.
    const entitled = await granted();
    const usages = await gatherGrantedUsage(stores, { entitled, reading });
    const measured = usages.flatMap(listMeasuredGrants);
    const unwatched = measured
      .filter(({ levels }) => levels === null)
      .map(({ entitlement_grant_id }) => entitlement_grant_id);
    await deleteAlertStates(transaction, scope, { alert_type: 'entitlement_grant_threshold', entity_ids: unwatched });
    let changed = 0;
    for (const one of measured)
      for (const alert_type of Object.keys(EVENTS) as GrantAlert[])
        if (await recordGrantAlert(transaction, { ...one, alert_type, reading })) changed += 1;
    return changed;
  });
}

type GrantAlert = 'entitlement_grant_exhausted' | 'entitlement_grant_threshold';

const EVENTS: Record<GrantAlert, readonly [reached: SystemEventName, recovered: SystemEventName | null]> = {
  entitlement_grant_threshold: ['entitlement.grant.threshold_reached', 'entitlement.grant.threshold_recovered'],
  entitlement_grant_exhausted: ['entitlement.grant.exhausted', null],
};

/** A grant that has not ended. */
type MeasuredGrant = {
  readonly source: SubscriptionEntitlementSource;
  readonly entitlement_grant_id: string;
  readonly value: Decimal;
  /** Thresholds, if any are set. */
  readonly levels: AlertSettings | null;
};

function listMeasuredGrants({ sources, granted }: FeatureUsageSnapshot): MeasuredGrant[] {
  const alike = groupGrantsByDuration(sources.filter(({ is_enabled }) => is_enabled));
  return granted!.grants.flatMap((grant, index) => {
    const of = alike[index]!;
    if (grant.window === null) return [];
    const entitlement_grant_id = formatGrantId(of[0], grant.window.start);
    return [{ source: of[0], entitlement_grant_id, value: usageRatio(grant), levels: findAlertSettings(of) }];
  });
}

type GrantAlertInput = MeasuredGrant & { readonly alert_type: GrantAlert; readonly reading: EntitlementReadContext };

async function recordGrantAlert(
  transaction: Transaction,
  { source, entitlement_grant_id, value, levels, alert_type, reading }: GrantAlertInput,
): Promise<boolean> {
  const settings = alert_type === 'entitlement_grant_exhausted' ? EXHAUSTED : levels;
  if (settings === null) return false;
  const { subscription, entitlement_id } = source;
  const { scope, now } = reading;
  const { customer_id } = subscription;
  const compared = {
    alert_type,
    entity_type: 'entitlement_grant' as const,
    entity_id: entitlement_grant_id,
    parent_entity_type: 'subscription' as const,
    parent_entity_id: subscription.id,
    customer_id,
    settings,
    unless: 'above' as const,
    value,
  };
  const change = await recordAlertState(transaction, scope, { compared, by: { now } });
  if (change === null) return false;
  const [reached, recovered] = EVENTS[alert_type];
  const event = change.state === 'ok' ? recovered : reached;
  if (event === null) return true;
  const record = toPublishedEntitlement(await EntitlementModel.fetch(scope, entitlement_id, { database: transaction }));
  const also = {
    subscription_id: subscription.id,
    customer_id,
    entitlement_id,
    entitlement_grant_id,
    alert_type,
    alert_status: change.state,
    usage_ratio: value.toFixed(),
    triggered_at: now.toISOString(),
  };
  await emit(transaction, event, { record, by: { now }, also });
  return true;
}

/** Returns the id of a grant. A grant has no record, so its id is derived: every check computes the same one. */
function formatGrantId({ subscription, entitlement_id }: SubscriptionEntitlementSource, start: number): string {
  const bytes = createHash('sha256')
    .update(JSON.stringify([subscription.id, entitlement_id]))
    .digest();
  return formatId('entitlement_grant', start, bytes);
}
