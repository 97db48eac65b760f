/**
 * What entitlements make free of the meters of a subscription, and how much of it a charge meets: what was used in each reset
 * period until the charge begins and until it ends, from the same reader as the charge (docs/rules/entitlements.md, "What is free").
 */
import type { BilledSubscription } from '../../core/billing/charges.ts';
import type { MeasuredUsage, PricedItem } from '../../core/billing/line-amount.ts';
import { type Tariff, valueUsage } from '../../core/billing/valued-usage.ts';
import { type Decimal, ZERO } from '../../core/decimal.ts';
import {
  type Allowance,
  filterUnitAllowances,
  type GrantedAllowance,
  type LimitAllowance,
  type MeasuredAllowance,
  measureGrants,
} from '../../core/entitlement/allowance.ts';
import { parseAllowances } from '../../core/entitlement/allowances-text.ts';
import { combineGrants, type EntitlementHolding } from '../../core/entitlement/combine.ts';
import { hasGrants } from '../../core/entitlement/grant-record.ts';
import {
  computeFreeWindows,
  deriveGrantGroup,
  type FreeWindows,
  type Granting,
  sumGrants,
} from '../../core/entitlement/grants.ts';
import { splitAtLimits, type UsageInterval } from '../../core/entitlement/independent-limits.ts';
import type { OrderedUsage } from '../../core/entitlement/ordered-usage.ts';
import {
  computeLimitIn,
  deriveResetPeriod,
  listLimitWindows,
  listWholeLimitWindows,
} from '../../core/entitlement/reset.ts';
import { groupBy } from '../../core/group-by.ts';
import type { ComputedFrom } from '../../core/invoice/computed-from.ts';
import type { Milliseconds } from '../../core/time/instant.ts';
import type { Period } from '../../core/time/period.ts';
import { currentRecorder } from '../../storage/cache/dependency-recorder.ts';
import { joinBatch } from '../../storage/models/batched.ts';
import { FeatureModel } from '../../storage/models/feature.ts';
import type { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Database } from '../../storage/stores.ts';
import { runYielding } from '../../storage/time-slicer.ts';
import {
  listHoldings,
  listSourcesOfHoldings,
  type SubscriptionEntitlementSource,
} from '../entitlements/entitled-features.ts';

/** The same of one; of several that are billed side by side at one time. */
export async function loadSubscriptionAllowances(
  database: Database,
  subscription: SubscriptionModel,
  now: Date,
): Promise<ReadonlyMap<string, readonly Allowance[]>> {
  const { tenant_id, environment_id } = subscription;
  const key = `allowances ${tenant_id} ${environment_id} ${now.getTime()}`;
  const loaded = await joinBatch(database, { key, query: subscription, isMade: true }, async (subscriptions) => {
    const { allowances, made_of } = await gatherGrantedAllowances(database, subscriptions, now);
    return subscriptions.map(({ id }) => ({
      allowances: allowances.get(id) ?? new Map(),
      made_of: made_of.get(id) ?? [],
    }));
  });
  currentRecorder()?.dependsOn?.(loaded.made_of);
  return loaded.allowances;
}

/** By subscription and meter: what is in force at an instant. */
export type Allowances = ReadonlyMap<string, ReadonlyMap<string, readonly Allowance[]>>;

export async function loadAllowances(
  database: Database,
  subscriptions: readonly SubscriptionModel[],
  now: Date,
): Promise<Allowances> {
  return (await gatherGrantedAllowances(database, subscriptions, now)).allowances;
}

/** `made_of`: of each subscription the plans, add-ons and features that may grant something. */
type GrantedAllowances = { readonly allowances: Allowances; readonly made_of: ReadonlyMap<string, readonly string[]> };

async function gatherGrantedAllowances(
  database: Database,
  subscriptions: readonly SubscriptionModel[],
  now: Date,
): Promise<GrantedAllowances> {
  const [first] = subscriptions;
  if (first === undefined) return { allowances: new Map(), made_of: new Map() };
  const scope = { tenant_id: first.tenant_id, environment_id: first.environment_id };
  const reading = { scope, database, now };
  const holdings = await listHoldings(subscriptions, reading);
  const grantSources = await listSourcesOfHoldings(subscriptions, holdings, reading);
  const metered = grantSources.filter(({ feature_type }) => feature_type === 'metered');
  const featureIds = metered.map(({ feature_id }) => feature_id);
  const features = metered.length === 0 ? new Map() : await FeatureModel.byId(scope, featureIds, database);
  const toMeterId = (source: SubscriptionEntitlementSource): string => features.get(source.feature_id)?.meter_id ?? '';
  const bySubscription = groupBy(metered, ({ subscription }) => subscription.id);
  const allowances = new Map(
    Array.from(
      bySubscription,
      ([id, sources]) =>
        [id, new Map(Array.from(groupBy(sources, toMeterId), ([meter, of]) => [meter, combineLimits(of)]))] as const,
    ),
  );
  const ofHolding = ([id, own]: [string, readonly EntitlementHolding[]]) => {
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

/** Of each measure what holds beside the other. */
function groupGrants(sources: readonly SubscriptionEntitlementSource[]): GrantedAllowance[] {
  const byMeasure = groupBy(sources, ({ grant_measure }) => grant_measure!);
  return Array.from(byMeasure, ([measure, of]) => ({
    measure,
    groups: Array.from(groupBy(of, deriveGrantGroup).values(), sumGrants),
  }));
}

/** A limit, and the stretches of its reset periods that a charge meets, with a limit of their own where the period is a short one. */
type LimitedWindows = Omit<FreeWindows, 'limit'> & { readonly limit: Decimal | null };
/** Or grants, whose stretches usage itself begins. */
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
    // Each billing period has an integral of its own, also of a meter that never resets.
    reset_usage: isLevel ? 'BILLING_PERIOD' : (reset_usage ?? 'BILLING_PERIOD'),
  } as const;
  const windows = listLimitWindows(window, limited).map((one) => {
    // A level is measured against whole periods, so that its limit is not cut where the period is.
    const own = isLevel ? limit : computeLimitIn(limit, one.start, limited);
    return own.eq(limit) ? one : { ...one, limit: own };
  });
  return { limit, windows };
}

/** As a line has recorded them: what was granted when it was charged is granted when it is looked at again. */
export function recordedWindows({ allowances }: ComputedFrom): AllowanceWindows[] {
  return parseAllowances(allowances ?? []);
}

/** Since when what was used bears on what is free of a charge. */
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

/** What a charge meets of allowances; `parts` where several of them cut it. */
export type MetAllowances = {
  readonly allowances: readonly MeasuredAllowance[];
  readonly parts: readonly UsageInterval[];
};

type AllowanceReading = MeasuredIn & {
  read: (window: Period) => Promise<MeasuredUsage>;
  granted: (granting: Granting) => Promise<GrantsMet>;
};
/** With what was used in any part of the charge. */
export type GrantsMet = { readonly allowance: MeasuredAllowance; readonly used: (part: Period) => Decimal };

/** Reads what the charge itself did not: most often nothing, where a reset period begins with the charge and holds it. */
export async function measureAllowances(
  limited: readonly AllowanceWindows[],
  { window, measured, read, granted }: AllowanceReading,
): Promise<MetAllowances> {
  const grants = await Promise.all(limited.filter(isGranting).map(granted));
  const met = { window, measured, grants };
  const limits = limited.filter(isLimit);
  const queried = new Map<string, Period>();
  // What has to be read is what is asked for where nothing is known.
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

/** The same where all usage is at hand. */
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
  // Of a meter with windows each is free or not.
  const beside = measured.buckets === null ? splitAtLimits(filterUnitAllowances(allowances), window) : [];
  const ofPart = grants[0]?.used ?? ((part: Period) => used(part.start, part.end));
  return { allowances, parts: beside.map((part) => ({ ...part, used: ofPart(part) })) };
}

/**
 * What they make free of usage since the first cycle began: of the charge that begins at an instant, or of a part of it. Of an amount
 * the usage is what it costs by the price.
 */
export async function computeGrants(
  granting: Granting,
  { usage, tariffs }: { usage: OrderedUsage; tariffs: readonly [Tariff, ...Tariff[]] },
): Promise<(charge: Period) => GrantsMet> {
  const used = granting.measure === 'amount' ? await runYielding(valueUsage(usage, tariffs)) : usage;
  const free = await runYielding(computeFreeWindows(granting, used));
  return (charge) => ({
    allowance: measureGrants(free, { usage: used, charge, granting }),
    used: (part) => usage.sumBetween(part),
  });
}
