/** The operation of the area billing.entitlement: usage lines are priced as production prices them. */
import { z } from 'zod';
import { combineGrants } from '../../core/catalog/entitlement/combine.ts';
import { USAGE_RESET_PERIODS } from '../../core/catalog/entitlement/record.ts';
import type { PriceTerms } from '../../core/catalog/pricing/charge.ts';
import { Decimal, sumDecimals, ZERO } from '../../core/foundation/decimal.ts';
import { anyCase } from '../../core/foundation/record.ts';
import type { Milliseconds } from '../../core/foundation/time/instant.ts';
import type { Period } from '../../core/foundation/time/period.ts';
import { listLimitWindows } from '../../core/rating/allowances/reset.ts';
import { type MeasuredUsage, priceUsageCharge } from '../../core/rating/line-amount.ts';
import { JANUARY, usageItem } from './january.ts';

const decimal = z.union([z.string(), z.number()]).transform(String);
const entitlement = z.object({
  usage_limit: decimal.nullish(),
  is_enabled: z.boolean().default(true),
  is_soft_limit: z.boolean().default(false),
  usage_reset_period: anyCase(USAGE_RESET_PERIODS).nullish(),
});
const amounts = z.array(decimal.transform((text) => new Decimal(text)));
const given = z.object({
  usage_price: z.custom<PriceTerms>((input) => input !== null && typeof input === 'object'),
  usage_quantity: decimal.optional(),
  daily_usage: amounts.optional(),
  period_usage: amounts.optional(),
  entitlement: entitlement.nullish(),
});

const month = (index: number): Period => ({ start: Date.UTC(2026, index), end: Date.UTC(2026, index + 1) });
const DAY_MS = 86_400_000;

const SUBSCRIPTION = {
  start_ms: JANUARY.start,
  end_ms: null,
  billing_anchor_ms: JANUARY.start,
  billing_period: 'MONTHLY',
  billing_period_count: 1,
  timezone: 'UTC',
} as const;

type Used = { readonly at: Milliseconds; readonly units: Decimal };

/** One charge for January, or one for each period whose usage is given; usage of a day or a period happens in its first hour. */
export function usageWithEntitlement(asked: unknown) {
  const { usage_price, usage_quantity, daily_usage, period_usage, entitlement: granted } = given.parse(asked);
  const used: Used[] = period_usage?.map((units, index) => ({ at: month(index).start, units })) ??
    daily_usage?.map((units, index) => ({ at: JANUARY.start + index * DAY_MS, units })) ?? [
      { at: JANUARY.start, units: new Decimal(usage_quantity ?? '0') },
    ];
  const lines = (period_usage ?? [ZERO]).map((_usage, index) => lineOf(usage_price, month(index), { used, granted }));
  const [first] = lines;
  return {
    billable_quantity: first!.quantity.toFixed(),
    amount: first!.amount.toFixed(),
    billable_per_period: lines.map(({ quantity }) => quantity.toFixed()),
    amount_per_period: lines.map(({ amount }) => amount.toFixed()),
  };
}

type Question = { used: readonly Used[]; granted: z.output<typeof entitlement> | null | undefined };

function lineOf(price: PriceTerms, service: Period, { used, granted }: Question) {
  const between = (start: number, end: number) =>
    sumDecimals(used.filter(({ at }) => start <= at && at < end).map(({ units }) => units));
  const limits = granted
    ? [{ ...granted, usage_limit: granted.usage_limit ?? null, quantity: 1, static_value: null, config_value: null }]
    : [];
  const { is_enabled, usage_limit: limit } = combineGrants('metered', limits);
  const windows = listLimitWindows(service, {
    subscription: SUBSCRIPTION,
    usage_reset_period: granted?.usage_reset_period ?? null,
    reset_usage: 'BILLING_PERIOD',
  });
  const measuredWindows = windows.map(({ start, end }) => ({
    start,
    end,
    before: between(start, service.start),
    after: between(start, end),
  }));
  const measured: MeasuredUsage = {
    quantity: between(service.start, service.end),
    event_count: used.length,
    buckets: null,
    as_of: '',
    high_water: {},
    meter_version: 1,
    allowances: is_enabled ? [{ limit, windows: measuredWindows }] : [],
  };
  return priceUsageCharge(usageItem(price), service, { measured, currency: price.currency });
}
