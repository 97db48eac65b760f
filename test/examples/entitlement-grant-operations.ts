/**
 * The operations of the areas entitlement.grant_*: stretches of time by the rule that opens grants, overage and parallel grants by
 * the rules that price a usage line. "cycle+2h" and "cycle_end-6h" are told from the ends of a billing period.
 */
import { z } from 'zod';
import { GRANT_MEASURES } from '../../core/catalog/entitlement/grant-record.ts';
import type { PriceTerms } from '../../core/catalog/pricing/charge.ts';
import { Decimal, sumDecimals, ZERO } from '../../core/foundation/decimal.ts';
import { formatMs, parseInstant } from '../../core/foundation/time/instant.ts';
import { type MeasuredAllowance, measureGrants } from '../../core/rating/allowances/allowance.ts';
import { computeGrantWindow, type GrantDuration } from '../../core/rating/allowances/grant-window.ts';
import { type FreeWindows, type Granting, mergeExhaustedIntervals } from '../../core/rating/allowances/grants.ts';
import { OrderedUsage } from '../../core/rating/allowances/ordered-usage.ts';
import { priceUsageCharge } from '../../core/rating/line-amount.ts';
import { valueUsage } from '../../core/rating/valued-usage.ts';
import { runSteps } from '../support/result-of.ts';
import type { Result } from './compare.ts';
import { JANUARY, usageItem } from './january.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const UNIT_MS = { d: DAY_MS, h: HOUR_MS, m: 60_000 } as const;
const decimal = z.union([z.string(), z.number()]).transform((text) => new Decimal(String(text)));

/** "10h35m" */
function span(text: string): number {
  const parts = [...text.matchAll(/(\d+)([dhm])/g)];
  if (parts.map(([part]) => part).join('') !== text) throw new Error(`${text} is no length of time`);
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS], 0);
}

/** Of January, unless it is a timestamp. */
function placed(text: string): number {
  const told = /^cycle(_start|_end)?(?:([+-])(.+))?$/.exec(text);
  if (!told) return parseInstant(text)!;
  const [, side, sign, length] = told;
  const from = side === '_end' ? JANUARY.end : JANUARY.start;
  return from + (length ? span(length) * (sign === '-' ? -1 : 1) : 0);
}

/** As the question tells instants: from the end that is nearer. */
function told(at: number, isRelative: boolean): string {
  if (!isRelative) return formatMs(at);
  const middle = (JANUARY.start + JANUARY.end) / 2;
  if (at === JANUARY.start) return 'cycle_start';
  if (at === JANUARY.end) return 'cycle_end';
  return at < middle ? `cycle+${length(at - JANUARY.start)}` : `cycle_end-${length(JANUARY.end - at)}`;
}

function length(ms: number): string {
  const [hours, minutes] = [Math.floor(ms / HOUR_MS), (ms % HOUR_MS) / 60_000];
  return `${hours}h${minutes === 0 ? '' : `${minutes}m`}`;
}

function durationOf(text: string): GrantDuration {
  if (text === 'subscription_period') return { unit: 'subscription_period' };
  const rolling = /^(\d+)h rolling$/.exec(text);
  if (rolling) return { unit: 'hour', value: Number(rolling[1]), allocation: 'first_usage' };
  const aligned = /^(\d+) (hour|day|week) aligned to unit start, UTC$/.exec(text);
  if (!aligned) throw new Error(`${text} is no grant`);
  return { unit: aligned[2] as 'hour', value: Number(aligned[1]), allocation: 'unit_start' };
}

const windowShape = z.object({
  grant: z.string(),
  first_usage_at: z.string().optional(),
  previous_ended_at: z.string().optional(),
  next_usage_at: z.string().optional(),
  cycle_start: z.string().optional(),
  usage: z.literal('none').optional(),
});

export function windowOfGrant(given: Result): Result {
  const { grant, first_usage_at, previous_ended_at, next_usage_at, cycle_start } = windowShape.parse(given);
  const used = next_usage_at ?? first_usage_at ?? 'cycle_start';
  const isRelative = used.startsWith('cycle');
  const at = placed(used);
  // A timestamp lies in a month that began before it, unless it is said where.
  const start = cycle_start ? placed(cycle_start) : isRelative ? JANUARY.start : at - 10 * DAY_MS;
  const cycle = { start, end: isRelative ? JANUARY.end : start + 31 * DAY_MS };
  const free_from = previous_ended_at ? placed(previous_ended_at) : start;
  const window = computeGrantWindow(at, durationOf(grant), { cycle, free_from, timezone: 'UTC' });
  return { valid_from: told(window.start, isRelative), valid_to: told(window.end, isRelative) };
}

const quotaShape = z.object({ quota: decimal, usage: decimal });
const overageShape = z.object({
  measure: z.enum(GRANT_MEASURES),
  unit_amount: decimal.optional(),
  sequential_grants: z.array(quotaShape).optional(),
  grants: z.array(quotaShape).optional(),
});

/** One grant a day, each used at noon; what is measured as an amount costs 1 a unit. */
export function overageOfGrants(given: Result): Result {
  const { measure, unit_amount = new Decimal('1'), sequential_grants, grants } = overageShape.parse(given);
  const each = sequential_grants ?? grants ?? [];
  const windows = each.map(({ quota: limit }, day) => ({
    start: JANUARY.start + day * DAY_MS,
    end: JANUARY.start + (day + 1) * DAY_MS,
    limit,
  }));
  const usage = each.map(({ usage: used }, day) => ({ at: windows[day]!.start + 12 * HOUR_MS, used }));
  const line = chargeOf({ limit: ZERO, windows }, { measure, usage, unit_amount });
  return { overage_quantity: line.quantity.toFixed(), amount: line.amount.toFixed() };
}

const parallelShape = z.object({
  unit_amount: decimal,
  grants: z.array(z.object({ window: z.string(), quota: decimal, crossed_at: z.string() })),
  usage: z.array(z.object({ at: z.string(), qty: decimal })),
});

/** Each began with the period; from where its quota was crossed until it ends nothing is free. */
export function parallelGrants(given: Result): Result {
  const { unit_amount, grants, usage } = parallelShape.parse(given);
  const at = (text: string) => JANUARY.start + span(text.replace(/^\+/, ''));
  const stretches = grants.map(({ window, crossed_at }) => ({ start: at(crossed_at), end: at(window), limit: ZERO }));
  const used = usage.map(({ at: when, qty }) => ({ at: at(when), used: qty }));
  const line = chargeOf(mergeExhaustedIntervals(stretches), { measure: 'quantity', usage: used, unit_amount });
  return { billable: line.quantity.toFixed(), amount: line.amount.toFixed() };
}

type Question = {
  readonly measure: Granting['measure'];
  readonly usage: OrderedUsage['portions'];
  readonly unit_amount: Decimal;
};

/** The usage line of January. */
function chargeOf(free: FreeWindows, { measure, usage, unit_amount }: Question) {
  const price: PriceTerms = { billing_model: 'FLAT_FEE', currency: 'usd', amount: unit_amount.toFixed() };
  const granting = { measure, groups: [], cycles: [JANUARY], timezone: 'UTC' };
  const units = new OrderedUsage(usage);
  const used = measure === 'amount' ? runSteps(valueUsage(units, [{ from: JANUARY.start, price }])) : units;
  const allowances: MeasuredAllowance[] = [measureGrants(free, { usage: used, charge: JANUARY, granting })];
  const measured = {
    quantity: sumDecimals(usage.map(({ used }) => used)),
    event_count: usage.length,
    buckets: null,
    as_of: '',
    high_water: {},
    meter_version: 1,
    allowances,
  };
  return priceUsageCharge(usageItem(price), JANUARY, { measured, currency: 'usd' });
}
