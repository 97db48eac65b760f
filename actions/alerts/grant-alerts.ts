/**
 * Looks whether something is left of the grants of entitlements that last (docs/rules/alerts.md, "Grants of entitlements"). Each is told of by itself: it is named by
 * what grants it and by when it began.
 */
import { createHash } from 'node:crypto';
import { EXHAUSTED, usageRatio } from '../../core/alert/grant.ts';
import { alikeGrants, type GrantNow } from '../../core/entitlement/grants.ts';
import { formatId } from '../../core/id.ts';
import type { Scope } from '../../core/scope.ts';
import { holdAlertsOf } from '../../storage/alert-states.ts';
import { EntitlementModel } from '../../storage/models/entitlement.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';
import {
  entitledFeatures,
  grantingSubscriptions,
  type HeldSource,
  type Reading,
} from '../entitlements/entitled-features.ts';
import { grantedUsage, isGranted } from '../entitlements/granted-usage.ts';
import { emit } from '../system-events/emit.ts';
import { tellState } from './tell-state.ts';

/** Answers how many have changed their state. */
export async function checkGrants(
  stores: Stores,
  scope: Scope,
  { customer_id, now }: { customer_id: string; now: Date },
): Promise<number> {
  const reading: Reading = { scope, database: stores.postgres, now };
  const subscriptions = await grantingSubscriptions(customer_id, undefined, reading);
  const entitled = (await entitledFeatures(subscriptions, undefined, reading)).filter(isGranted);
  if (entitled.length === 0) return 0;
  return stores.postgres.transaction(async (transaction) => {
    // Of a family all look at the same: by the subscription.
    for (const { id } of subscriptions) await holdAlertsOf(transaction, `grants ${id}`);
    const usages = await grantedUsage(stores, { entitled, reading });
    let changed = 0;
    for (const { sources, granted } of usages) {
      const alike = alikeGrants(sources.filter(({ is_enabled }) => is_enabled));
      for (const [index, grant] of granted!.grants.entries())
        if (await tellGrant(transaction, { source: alike[index]![0], grant, reading })) changed += 1;
    }
    return changed;
  });
}

type Looked = { readonly source: HeldSource; readonly grant: GrantNow; readonly reading: Reading };

async function tellGrant(transaction: Transaction, { source, grant, reading }: Looked): Promise<boolean> {
  if (grant.window === null) return false;
  const { subscription, entitlement_id } = source;
  const { scope, now } = reading;
  const { customer_id } = subscription;
  const entitlement_grant_id = nameOf(source, grant.window.start);
  const value = usageRatio(grant);
  const alert_type = 'entitlement_grant_exhausted' as const;
  const compared = {
    alert_type,
    entity_type: 'entitlement_grant' as const,
    entity_id: entitlement_grant_id,
    parent_entity_type: 'subscription' as const,
    parent_entity_id: subscription.id,
    customer_id,
    settings: EXHAUSTED,
    unless: 'above' as const,
    value,
  };
  const told = await tellState(transaction, scope, { compared, by: { now } });
  if (told === null) return false;
  if (told.state === 'ok') return true;
  const record = await EntitlementModel.fetch(scope, entitlement_id, { database: transaction });
  const also = {
    subscription_id: subscription.id,
    customer_id,
    entitlement_id,
    entitlement_grant_id,
    alert_type,
    alert_status: told.state,
    usage_ratio: value.toFixed(),
    triggered_at: now.toISOString(),
  };
  await emit(transaction, 'entitlement.grant.exhausted', { record, by: { now }, also });
  return true;
}

/** A grant is no record: whoever looks at it names it the same. */
function nameOf({ subscription, entitlement_id }: HeldSource, start: number): string {
  const bytes = createHash('sha256')
    .update(JSON.stringify([subscription.id, entitlement_id]))
    .digest();
  return formatId('entitlement_grant', start, bytes);
}
