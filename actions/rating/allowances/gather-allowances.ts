/**
 * Free usage that entitlements grant on the meters of a subscription, and the part of it that applies to a charge
 * (docs/rules/entitlements.md, "What is free"). The caller passes a function that reads the usage of each reset period before and within
 * the charge.
 */

import { combineGrants } from '../../../core/catalog/entitlement/combine.ts';
import { hasGrants } from '../../../core/catalog/entitlement/grant-record.ts';
import { type Decimal, ZERO } from '../../../core/foundation/decimal.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import type { Milliseconds } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import {
  type Allowance,
  filterUnitAllowances,
  type GrantedAllowance,
  type LimitAllowance,
  type MeasuredAllowance,
} from '../../../core/rating/allowances/allowance.ts';
import { parseAllowances } from '../../../core/rating/allowances/allowances-text.ts';
import {
  computeFreeWindows,
  deriveGrantGroup,
  type FreeWindows,
  type Granting,
  sumGrants,
  type UsedGrants,
} from '../../../core/rating/allowances/grants.ts';
import { splitAtLimits, type UsageInterval } from '../../../core/rating/allowances/independent-limits.ts';
import type { OrderedUsage } from '../../../core/rating/allowances/ordered-usage.ts';
import {
  computeLimitIn,
  deriveResetPeriod,
  listLimitWindows,
  listWholeLimitWindows,
} from '../../../core/rating/allowances/reset.ts';
import type { BilledSubscription } from '../../../core/rating/charges.ts';
import type { ComputedFrom } from '../../../core/rating/computed-from.ts';
import type { MeasuredUsage, PricedItem } from '../../../core/rating/line-amount.ts';
import { type Tariff, valueUsage } from '../../../core/rating/valued-usage.ts';
import { joinBatch } from '../../../storage/concurrency/batched.ts';
import { runYielding } from '../../../storage/concurrency/time-slicer.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { FeatureModel } from '../../../storage/models/catalog/feature.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { listHoldings, listSourcesOfHoldings, type SubscriptionEntitlementSource } from './entitled-features.ts';

/** Loads the allowances of one subscription. Subscriptions of a batched transaction are loaded in one query. */
export async function loadSubscriptionAllowances(
  database: Database,
  subscription: SubscriptionModel,
  now: Date,
): Promise<ReadonlyMap<string, readonly Allowance[]>> {
  const { tenant_id, environment_id } = subscription;
  const key = `allowances ${tenant_id} ${environment_id} ${now.getTime()}`;
  return joinBatch(database, { key, query: subscription, isMade: true }, async (subscriptions) => {
    const allowances = await loadAllowances(database, subscriptions, now);
    return subscriptions.map(({ id }) => allowances.get(id) ?? new Map());
  });
}

/** Allowances in force at one instant, by subscription and meter. */
export type Allowances = ReadonlyMap<string, ReadonlyMap<string, readonly Allowance[]>>;

export async function loadAllowances(
  database: Database,
  subscriptions: readonly SubscriptionModel[],
  now: Date,
): Promise<Allowances> {
  const [first] = subscriptions;
  if (first === undefined) return new Map();
  const scope = { tenant_id: first.tenant_id, environment_id: first.environment_id };
  const reading = { scope, database, now };
  const holdings = await listHoldings(subscriptions, reading, { withNames: false });
  const grantSources = await listSourcesOfHoldings(subscriptions, holdings, reading);
  const metered = grantSources.filter(({ feature_type }) => feature_type === 'metered');
  const featureIds = metered.map(({ feature_id }) => feature_id);
  const features = metered.length === 0 ? new Map() : await FeatureModel.byId(scope, featureIds, database);
  const toMeterId = (source: SubscriptionEntitlementSource): string => features.get(source.feature_id)?.meter_id ?? '';
  const bySubscription = groupBy(metered, ({ subscription }) => subscription.id);
  return new Map(
    Array.from(
      bySubscription,
      ([id, sources]) =>
        [id, new Map(Array.from(groupBy(sources, toMeterId), ([meter, of]) => [meter, combineLimits(of)]))] as const,
    ),
  );
}

/** Limits with one reset period add up, also across several features of a meter. A disabled entitlement makes nothing free. */
function combineLimits(sources: readonly SubscriptionEntitlementSource[]): Allowance[] {
  const plainSources = sources.filter((source) => !hasGrants(source));
  const byPeriod = groupBy(plainSources, ({ usage_reset_period, subscription }) =>
    deriveResetPeriod(usage_reset_period, subscription),
  );
  const limits = [...byPeriod.values()].flatMap((of) => {
    const { is_enabled, usage_limit: limit } = combineGrants('metered', of, sources);
    return is_enabled ? [{ limit, usage_reset_period: of[0].usage_reset_period }] : [];
  });
  if (limits.some(({ limit }) => limit === null)) return limits;
  return [...limits, ...groupGrants(sources.filter((source) => hasGrants(source) && source.is_enabled))];
}

/** Builds one allowance per measure (units or money). Grants within a group add up; the groups apply independently. */
function groupGrants(sources: readonly SubscriptionEntitlementSource[]): GrantedAllowance[] {
  const byMeasure = groupBy(sources, ({ grant_measure }) => grant_measure!);
  return Array.from(byMeasure, ([measure, of]) => ({
    measure,
    groups: Array.from(groupBy(of, deriveGrantGroup).values(), sumGrants),
  }));
}

/** A limit, and the reset periods that overlap a charge. A reset period that is cut short has a lower limit of its own. */
type LimitedWindows = Omit<FreeWindows, 'limit'> & { readonly limit: Decimal | null };
/** A limit with its reset periods; or usage-ordered grants, whose intervals begin with usage. */
export type AllowanceWindows = LimitedWindows | Granting;

export function limitedWindows(
  { allowances = [], reset_usage, chain_terms }: Pick<PricedItem, 'allowances' | 'reset_usage' | 'chain_terms'>,
  window: Period,
  subscription: BilledSubscription,
): AllowanceWindows[] {
  return allowances.map((allowance) => {
    const isLevel = chain_terms?.rule === 'integral';
    if ('limit' in allowance)
      return computeLimitWindows(allowance, window, { billed: subscription, reset_usage, isLevel });
    const cycles = listWholeLimitWindows(window, subscription);
    return { ...allowance, cycles, timezone: subscription.timezone };
  });
}

export function computeLimitWindows(
  { limit, usage_reset_period }: LimitAllowance,
  window: Period,
  {
    billed,
    reset_usage,
    isLevel = false,
  }: { billed: BilledSubscription; reset_usage: PricedItem['reset_usage']; isLevel?: boolean },
): LimitedWindows {
  if (limit === null) return { limit, windows: [] };
  const limited = {
    subscription: billed,
    usage_reset_period,
    // Each billing period has an integral of its own, also for a meter that never resets.
    reset_usage: isLevel ? 'BILLING_PERIOD' : (reset_usage ?? 'BILLING_PERIOD'),
  } as const;
  const windows = listLimitWindows(window, limited).map((one) => {
    // A level is measured against whole billing periods, so a shorter period does not lower its limit.
    const own = isLevel ? limit : computeLimitIn(limit, one.start, limited);
    return own.eq(limit) ? one : { ...one, limit: own };
  });
  return { limit, windows };
}

/** Limits as a line has recorded them: a recomputed charge uses the grants of its first computation. */
export function recordedWindows({ allowances }: ComputedFrom): AllowanceWindows[] {
  return parseAllowances(allowances ?? []);
}

/** Computes the instant from which earlier usage affects the free units of a charge. */
export function computeLimitedSince(limited: readonly AllowanceWindows[]): Milliseconds {
  const intervals = limited.flatMap((one): readonly Period[] => ('groups' in one ? one.cycles : one.windows));
  return Math.min(Number.POSITIVE_INFINITY, ...intervals.map(({ start }) => start));
}

export function isGranting(one: AllowanceWindows): one is Granting {
  return 'groups' in one;
}

export function isLimit(one: AllowanceWindows): one is LimitedWindows {
  return !isGranting(one);
}

type MeasuredIn = { readonly window: Period; readonly measured: MeasuredUsage };

/** Allowances that apply to a charge; `parts` is set if the boundaries of several limits divide the charge. */
type MetAllowances = {
  readonly allowances: readonly MeasuredAllowance[];
  readonly parts: readonly UsageInterval[];
};

type AllowanceReading = MeasuredIn & {
  read: (window: Period) => Promise<MeasuredUsage>;
  granted: (granting: Granting) => Promise<GrantsMet>;
};
/** Allowance that usage-ordered grants give to a charge, and the `usage` of the charge in units. */
type GrantsMet = { readonly allowance: MeasuredAllowance; readonly usage: OrderedUsage };

/**
 * Reads the usage that allowances need from outside the period of the charge. Usually there is nothing to read, because a reset period
 * begins with the charge and contains it.
 */
export async function measureAllowances(
  limited: readonly AllowanceWindows[],
  { window, measured, read, granted }: AllowanceReading,
): Promise<MetAllowances> {
  const grants = await Promise.all(limited.filter(isGranting).map(granted));
  const met = { window, measured, grants };
  const limits = limited.filter(isLimit);
  const queried = new Map<string, Period>();
  // A first pass with zero usage collects the windows to read.
  computeMetAllowances(limits, { ...met, usedIn: (one) => (queried.set(toPeriodKey(one), one), ZERO) });
  const used = new Map(
    await Promise.all(
      Array.from(queried, async ([key, one]): Promise<[string, Decimal]> => [key, (await read(one)).quantity]),
    ),
  );
  return computeMetAllowances(limits, { ...met, usedIn: (one) => used.get(toPeriodKey(one))! });
}

function toPeriodKey({ start, end }: Period): string {
  return `${start}/${end}`;
}

/** Computes the allowances of a charge with all usage in memory. */
export function computeMetAllowances(
  limited: readonly LimitedWindows[],
  {
    window,
    measured,
    usedIn,
    grants = [],
  }: MeasuredIn & { usedIn: (window: Period) => Decimal; grants?: readonly GrantsMet[] },
): MetAllowances {
  const used = (start: number, end: number): Decimal => {
    if (start >= end) return ZERO;
    if (start === window.start && end === window.end) return measured.quantity;
    return usedIn({ start, end });
  };
  const limits = limited.map(({ limit, windows }) => ({
    limit,
    windows: windows.map((one) => ({
      ...one,
      before: used(one.start, window.start),
      after: used(one.start, one.end),
    })),
  }));
  const allowances = [...limits, ...grants.map(({ allowance }) => allowance)];
  // The usage of a windowed meter is not divided at limits, because each of its windows is free as a whole, or not at all.
  const parts = measured.buckets === null ? splitAtLimits(filterUnitAllowances(allowances), window) : [];
  const ordered = grants[0]?.usage;
  const usedInPart = (part: Period) => (ordered ? ordered.sumBetween(part) : used(part.start, part.end));
  return { allowances, parts: parts.map((part) => ({ ...part, used: usedInPart(part) })) };
}

/**
 * Computes the free usage of grants since the first cycle began, for a charge or a part of it. For grants in money, the usage is converted
 * to its cost by the price.
 */
export async function computeGrants(
  granting: Granting,
  { usage, tariffs }: { usage: OrderedUsage; tariffs: readonly [Tariff, ...Tariff[]] },
): Promise<UsedGrants> {
  const used = granting.measure === 'amount' ? await runYielding(valueUsage(usage, tariffs)) : usage;
  return { free: await runYielding(computeFreeWindows(granting, used)), usage: used };
}
