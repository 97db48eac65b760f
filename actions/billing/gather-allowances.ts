/**
 * What entitlements make free of the meters of a subscription, and how much of it a charge meets: what was used in each reset
 * period until the charge begins and until it ends, from the same reader as the charge (docs/rules/entitlements.md, "What is free").
 */
import type { BilledSubscription } from '../../core/billing/charges.ts';
import type { MeasuredUsage, PricedItem } from '../../core/billing/line-amount.ts';
import { Decimal, ZERO } from '../../core/decimal.ts';
import type { Allowance, MeasuredAllowance } from '../../core/entitlement/allowance.ts';
import { combine, type Holding } from '../../core/entitlement/combine.ts';
import { limitIn, limitWindowsWithin, resetPeriodOf } from '../../core/entitlement/reset.ts';
import { groupBy } from '../../core/group-by.ts';
import type { ComputedFrom } from '../../core/invoice/computed-from.ts';
import { instantOf } from '../../core/time/instant.ts';
import type { Period } from '../../core/time/period.ts';
import { currentNotes } from '../../storage/kept/noting.ts';
import { FeatureModel } from '../../storage/models/feature.ts';
import { together } from '../../storage/models/side-by-side.ts';
import type { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Database } from '../../storage/stores.ts';
import { type HeldSource, holdingsOf, sourcesHeld } from '../entitlements/entitled-features.ts';

/** The same of one; of several that are billed side by side at one time. */
export async function allowancesOfOne(
  database: Database,
  subscription: SubscriptionModel,
  now: Date,
): Promise<ReadonlyMap<string, readonly Allowance[]>> {
  const { tenant_id, environment_id } = subscription;
  const key = `allowances ${tenant_id} ${environment_id} ${now.getTime()}`;
  const granted = await together(database, { key, asked: subscription, isMade: true }, async (subscriptions) => {
    const { allowances, made_of } = await grantedTo(database, subscriptions, now);
    return subscriptions.map(({ id }) => ({
      allowances: allowances.get(id) ?? new Map(),
      made_of: made_of.get(id) ?? [],
    }));
  });
  currentNotes()?.madeOf?.(granted.made_of);
  return granted.allowances;
}

/** By subscription and meter: what is in force at an instant. */
export type Allowances = ReadonlyMap<string, ReadonlyMap<string, readonly Allowance[]>>;

export async function allowancesOf(
  database: Database,
  subscriptions: readonly SubscriptionModel[],
  now: Date,
): Promise<Allowances> {
  return (await grantedTo(database, subscriptions, now)).allowances;
}

/** `made_of`: of each subscription the plans, add-ons and features that may grant something. */
type Granted = { readonly allowances: Allowances; readonly made_of: ReadonlyMap<string, readonly string[]> };

async function grantedTo(database: Database, subscriptions: readonly SubscriptionModel[], now: Date): Promise<Granted> {
  const [first] = subscriptions;
  if (first === undefined) return { allowances: new Map(), made_of: new Map() };
  const scope = { tenant_id: first.tenant_id, environment_id: first.environment_id };
  const reading = { scope, database, now };
  const holdings = await holdingsOf(subscriptions, reading);
  const held = await sourcesHeld(subscriptions, holdings, reading);
  const metered = held.filter(({ feature_type }) => feature_type === 'metered');
  const featureIds = metered.map(({ feature_id }) => feature_id);
  const features = metered.length === 0 ? new Map() : await FeatureModel.byId(scope, featureIds, database);
  const meterOf = (source: HeldSource): string => features.get(source.feature_id)?.meter_id ?? '';
  const bySubscription = groupBy(metered, ({ subscription }) => subscription.id);
  const allowances = new Map(
    Array.from(
      bySubscription,
      ([id, sources]) =>
        [id, new Map(Array.from(groupBy(sources, meterOf), ([meter, of]) => [meter, added(of)]))] as const,
    ),
  );
  const ofHolding = ([id, own]: [string, readonly Holding[]]) => {
    const sources = bySubscription.get(id) ?? [];
    return [id, [...own.map(({ entity_id }) => entity_id), ...sources.map(({ feature_id }) => feature_id)]] as const;
  };
  return {
    allowances,
    made_of: new Map(
      Array.from(
        groupBy(holdings, (one) => one.subscription_id),
        ofHolding,
      ),
    ),
  };
}

/** Limits of one reset period add up, also those of several features of a meter. What is not enabled makes nothing free. */
function added(sources: readonly HeldSource[]): Allowance[] {
  const byPeriod = groupBy(sources, ({ usage_reset_period, subscription }) =>
    resetPeriodOf(usage_reset_period, subscription),
  );
  return [...byPeriod.values()].flatMap((of) => {
    const { is_enabled, usage_limit: limit } = combine('metered', of, sources);
    return is_enabled ? [{ limit, usage_reset_period: of[0].usage_reset_period }] : [];
  });
}

/** A limit, and the stretches of its reset periods that a charge meets. */
export type LimitedWindows = {
  readonly limit: Decimal | null;
  /** With a limit of its own where the period is a short one. */
  readonly windows: readonly (Period & { readonly limit?: Decimal })[];
};

export function limitedWindows(
  { allowances = [], reset_usage }: Pick<PricedItem, 'allowances' | 'reset_usage'>,
  window: Period,
  subscription: BilledSubscription,
): LimitedWindows[] {
  return allowances.map(({ limit, usage_reset_period }) => {
    if (limit === null) return { limit, windows: [] };
    const limited = { subscription, usage_reset_period, reset_usage: reset_usage ?? 'BILLING_PERIOD' } as const;
    const windows = limitWindowsWithin(window, limited).map((one) => {
      const own = limitIn(limit, one.start, limited);
      return own.eq(limit) ? one : { ...one, limit: own };
    });
    return { limit, windows };
  });
}

/** As a line has recorded them: what was granted when it was charged is granted when it is looked at again. */
export function recordedWindows({ allowances }: ComputedFrom): LimitedWindows[] {
  return (allowances ?? []).map(({ limit, windows }) => ({
    limit: typeof limit === 'string' ? new Decimal(limit) : null,
    windows: (windows as { start: string; end: string; limit?: string }[]).map(({ start, end, limit: own }) => ({
      start: instantOf(start),
      end: instantOf(end),
      ...(own ? { limit: new Decimal(own) } : {}),
    })),
  }));
}

type MeasuredIn = { readonly window: Period; readonly measured: MeasuredUsage };

/** Reads what the charge itself did not: most often nothing, where a reset period begins with the charge and holds it. */
export async function measureAllowances(
  limited: readonly LimitedWindows[],
  { window, measured, read }: MeasuredIn & { read: (window: Period) => Promise<MeasuredUsage> },
): Promise<MeasuredAllowance[]> {
  const asked = new Map<string, Period>();
  // What has to be read is what is asked for where nothing is known.
  allowancesOfUsage(limited, { window, measured, usedIn: (one) => (asked.set(keyOf(one), one), ZERO) });
  const used = new Map(
    await Promise.all(
      Array.from(asked, async ([key, one]): Promise<[string, Decimal]> => [key, (await read(one)).quantity]),
    ),
  );
  return allowancesOfUsage(limited, { window, measured, usedIn: (one) => used.get(keyOf(one))! });
}

function keyOf({ start, end }: Period): string {
  return `${start}/${end}`;
}

/** The same where all usage is at hand. */
export function allowancesOfUsage(
  limited: readonly LimitedWindows[],
  { window, measured, usedIn }: MeasuredIn & { usedIn: (window: Period) => Decimal },
): MeasuredAllowance[] {
  const used = (start: number, end: number): Decimal => {
    if (start >= end) return ZERO;
    if (start === window.start && end === window.end) return measured.quantity;
    return usedIn({ start, end });
  };
  return limited.map(({ limit, windows }) => ({
    limit,
    windows: windows.map((one) => ({
      ...one,
      before: used(one.start, window.start),
      after: used(one.start, one.end),
    })),
  }));
}
