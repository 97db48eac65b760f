/** The operations of the areas commitment.*: lines and invoices are priced as production prices them. */
import { z } from 'zod';
import type { TimeBucket } from '../../core/catalog/price/time-buckets.ts';
import type { PriceTerms } from '../../core/catalog/pricing/charge.ts';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import { anyCase } from '../../core/foundation/record.ts';
import { formatMs, type Milliseconds } from '../../core/foundation/time/instant.ts';
import { RECURRING_PERIODS } from '../../core/foundation/time/period.ts';
import { windowSize } from '../../core/metering/meter/record.ts';
import type { BilledSubscription } from '../../core/rating/charges.ts';
import type { LineCommitment } from '../../core/rating/commitments/line.ts';
import type { RecordedUsage } from '../../core/rating/commitments/part.ts';
import { type MeasuredUsage, type PricedItem, priceUsageCharge } from '../../core/rating/line-amount.ts';
import { buildInvoicePlan, chargeKey, type InvoicePlanInput, planLines } from '../../core/rating/plan-invoice.ts';
import { JANUARY, usageItem } from './january.ts';

const decimal = z.union([z.string(), z.number()]).transform(String);
const amount = decimal.transform((text) => new Decimal(text));
const factor = amount.nullish().transform((stated) => stated ?? new Decimal(1));
const price = z.custom<PriceTerms>((input) => input !== null && typeof input === 'object');

const DAY_MS = 86_400_000;
const UNIT: PriceTerms = { billing_model: 'FLAT_FEE', currency: 'usd', amount: '1' };

const item = (changes: Partial<PricedItem> = {}) => usageItem(UNIT, changes);

function measured(quantity: Decimal, changes: Partial<MeasuredUsage> = {}): MeasuredUsage {
  const as_of = formatMs(Date.UTC(2030, 0));
  return { quantity, event_count: 1, buckets: null, as_of, high_water: {}, meter_version: 1, ...changes };
}

function said({ amount: charge, commitment_info: info }: ReturnType<typeof priceUsageCharge>) {
  return {
    charge: charge.toFixed(),
    total: charge.toFixed(),
    utilized: info?.computed_commitment_utilized_amount,
    overage: info?.computed_overage_amount,
    true_up_amount: info?.computed_true_up_amount,
    true_up: info?.computed_true_up_amount,
  };
}

function lineCommitment(changes: Partial<LineCommitment>): LineCommitment {
  return {
    type: 'amount',
    value: null,
    overage_factor: new Decimal(1),
    true_up: false,
    duration: null,
    windows: null,
    time_buckets: [],
    ...changes,
  };
}

/** A charge of so much is so many units at 1 each. */
export function applyToLine(given: unknown) {
  const { usage_charge, commitment_amount, overage_factor, true_up } = z
    .object({ usage_charge: amount, commitment_amount: amount, overage_factor: factor, true_up: z.boolean() })
    .parse(given);
  const commitment = lineCommitment({ value: commitment_amount, overage_factor, true_up });
  return said(priceUsageCharge(item({ commitment }), JANUARY, { measured: measured(usage_charge), currency: 'usd' }));
}

export function applyToQuantity(given: unknown) {
  const { quantity, commitment_quantity, overage_factor, true_up, ...stated } = z
    .object({ price, quantity: amount, commitment_quantity: amount, overage_factor: factor, true_up: z.boolean() })
    .parse(given);
  const commitment = lineCommitment({ type: 'quantity', value: commitment_quantity, overage_factor, true_up });
  return said(
    priceUsageCharge(item({ ...stated, commitment }), JANUARY, {
      measured: measured(quantity),
      currency: stated.price.currency,
    }),
  );
}

const clock = z.string().transform((text) => {
  const [hour = 0, minute = 0] = text.split(':').map(Number);
  return { hour, minute };
});
const rates = z.object({
  unit_amount: decimal.optional(),
  tiers: z.array(z.record(z.string(), z.unknown())).optional(),
  tier_mode: z.string().optional(),
  commitment_amount: decimal.optional(),
  commitment_quantity: decimal.optional(),
  overage_factor: factor,
  true_up: z.boolean().default(false),
});
const windowedGiven = z.object({
  window_size: windowSize.default('HOUR'),
  line_item: rates,
  time_buckets: z.array(rates.extend({ start: clock, end: clock })).default([]),
  usage: z.array(z.object({ at: clock, qty: amount })).default([]),
  windows: z.array(amount).optional(),
  fill_empty: z.boolean().default(true),
  range: z.string().optional(),
});

/** One day: its windows, or as many from midnight on as are given. */
export function applyToWindows(given: unknown) {
  const { window_size, line_item, time_buckets, usage, windows, fill_empty } = windowedGiven.parse(given);
  const day = { start: JANUARY.start, end: JANUARY.start + DAY_MS };
  const length =
    { MINUTE: 60_000, '15MIN': 900_000, '30MIN': 1_800_000, HOUR: 3_600_000 }[window_size as 'HOUR'] ?? DAY_MS;
  const range = windows === undefined ? day : { start: day.start, end: day.start + windows.length * length };
  const used = windows?.map((qty, index) => ({ at: day.start + index * length, qty })) ?? usage.map(placed(day.start));
  const commitment = lineCommitment({
    ...statedValue(line_item),
    overage_factor: line_item.overage_factor,
    true_up: line_item.true_up,
    windows: { size: window_size, timezone: 'UTC' },
    time_buckets: time_buckets.map(timeBucket),
  });
  const answer = measured(sumDecimals(used.map(({ qty }) => qty)), {
    buckets: used.map(({ qty }) => [qty]),
    bucket_starts: used.map(({ at }) => at),
    as_of: formatMs(fill_empty ? range.end : range.start),
  });
  const line = item({ price: pricedBy(line_item), commitment });
  return said(priceUsageCharge(line, range, { measured: answer, currency: 'usd' }));
}

const placed =
  (midnight: Milliseconds) =>
  ({ at: { hour, minute }, qty }: { at: z.output<typeof clock>; qty: Decimal }) => ({
    at: midnight + (hour * 60 + minute) * 60_000,
    qty,
  });

function statedValue({ commitment_amount, commitment_quantity }: z.output<typeof rates>) {
  const value = commitment_amount ?? commitment_quantity;
  if (value === undefined) return null;
  return {
    type: commitment_amount === undefined ? ('quantity' as const) : ('amount' as const),
    value: new Decimal(value),
  };
}

function pricedBy({ unit_amount, tiers, tier_mode }: z.output<typeof rates>): PriceTerms {
  const model = tiers
    ? { billing_model: 'TIERED', tiers, tier_mode }
    : { billing_model: 'FLAT_FEE', amount: unit_amount };
  return { ...model, currency: 'usd' } as PriceTerms;
}

function timeBucket(stated: z.output<typeof rates> & Pick<TimeBucket, 'start' | 'end'>, index: number): TimeBucket {
  const { type, value } = statedValue(stated)!;
  return {
    id: `bucket ${index}`,
    start: stated.start,
    end: stated.end,
    price: pricedBy(stated) as unknown as TimeBucket['price'],
    commitment_type: type,
    commitment_value: value.toFixed(),
    overage_factor: stated.overage_factor.toFixed(),
    true_up_enabled: stated.true_up,
  };
}

const SUBSCRIPTION: BilledSubscription = {
  start_ms: JANUARY.start,
  end_ms: null,
  billing_anchor_ms: JANUARY.start,
  billing_period: 'MONTHLY',
  billing_period_count: 1,
  timezone: 'UTC',
};

type Charges = Pick<InvoicePlanInput<PricedItem>, 'commitment'> & {
  charges: readonly Decimal[];
  prior?: readonly Decimal[];
  currency?: string;
};

/** One invoice of a line for each charge, at the end of the month behind those of the earlier charges. */
function invoiceOf({ commitment, charges, prior = [], currency = 'usd' }: Charges) {
  const month = (index: number) => ({ start: Date.UTC(2026, index), end: Date.UTC(2026, index + 1) });
  const period = month(prior.length);
  const items = charges.map((_charge, index) => item({ id: `line ${index}`, price: { ...UNIT, currency } }));
  const recorded: RecordedUsage[] = prior.map((base_amount, index) => ({
    item_id: 'line 0',
    service: month(index),
    base_amount,
  }));
  const usage = new Map(charges.map((charge, index) => [chargeKey(`line ${index}`, period), measured(charge)]));
  const input = {
    subscription: SUBSCRIPTION,
    items,
    period,
    reference: 'period_end' as const,
    currency,
    invoiced: new Set<string>(),
    usage,
    closed: [],
    commitment,
    recorded,
    partial: [],
    true_ups: [],
    coupons: [],
  };
  const { lines, subtotal } = buildInvoicePlan(planLines(input), input);
  const sum = (of: typeof lines) => sumDecimals(of.map((line) => line.amount)).toFixed();
  const within = lines.filter((line) => !line.is_overage && !line.is_true_up);
  return {
    total: subtotal.toFixed(),
    within: sum(within),
    within_split: within.map((line) => line.amount.toFixed()),
    overage: sum(lines.filter((line) => line.is_overage)),
    true_up: sum(lines.filter((line) => line.is_true_up)),
  };
}

export function applyToSubscription(given: unknown) {
  const { usage_charges, commitment_amount, overage_factor, true_up } = z
    .object({
      usage_charges: z.array(amount),
      commitment_amount: amount,
      overage_factor: factor,
      true_up: z.boolean().default(false),
    })
    .parse(given);
  const commitment = { amount: commitment_amount, overage_factor, true_up, duration: null };
  const found = invoiceOf({ commitment, charges: usage_charges });
  return { total: found.total, overage_amount: found.overage, true_up_amount: found.true_up };
}

export function applyOverPeriods(given: unknown) {
  const stated = z
    .object({
      commitment_amount: amount,
      commitment_duration: anyCase(RECURRING_PERIODS),
      overage_factor: factor,
      prior_base_usage: z.array(amount).default([]),
      prior_overage_billed: amount.optional(),
      current_usage: z.array(amount),
      true_up: z.boolean().default(false),
    })
    .parse(given);
  const { commitment_amount, commitment_duration: duration, overage_factor, current_usage, true_up } = stated;
  const above = stated.prior_overage_billed?.dividedBy(overage_factor);
  const prior = [...stated.prior_base_usage, ...(above ? [above] : [])];
  const commitment = { amount: commitment_amount, overage_factor, true_up, duration };
  return invoiceOf({ commitment, charges: current_usage, prior });
}

export function trueUp(given: unknown) {
  const { commitment_amount, usage_charge, currency } = z
    .object({ commitment_amount: amount, usage_charge: amount, currency: z.string() })
    .parse(given);
  const commitment = { amount: commitment_amount, overage_factor: new Decimal(1), true_up: true, duration: null };
  return { true_up: invoiceOf({ commitment, charges: [usage_charge], currency }).true_up };
}
