/**
 * Years of daily billing, invoice by invoice, come to what a line of arithmetic says: as many days as the calendar has, each charged
 * once, and of a line with longer periods of its own as many of those (docs/rules/periods.md).
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { Temporal } from 'temporal-polyfill';
import { Decimal, ZERO } from '../../../core/foundation/decimal.ts';
import { type Period, periodsFrom } from '../../../core/foundation/time/period.ts';
import type { BilledSubscription, ReferencePoint } from '../../../core/rating/charges.ts';
import type { PricedItem } from '../../../core/rating/line-amount.ts';
import { planLines } from '../../../core/rating/plan-invoice.ts';
import { samples } from '../../support/samples.ts';

/** While one works, fewer. */
const YEARS = Math.max(2, samples(10));

const zones = fc.constantFrom(
  'UTC',
  'America/New_York',
  'Europe/Berlin',
  'Australia/Lord_Howe',
  'Pacific/Tongatapu',
  'Pacific/Pago_Pago',
);
/** Any minute of 2024 to 2027: in most of them the ten years have three days that others do not have, in some two. */
const starts = fc
  .integer({ min: Date.UTC(2024, 0) / 60_000, max: Date.UTC(2028, 0) / 60_000 })
  .map((minute) => minute * 60_000);
const money = fc.integer({ min: 1, max: 100_000 }).map((n) => new Decimal(n).dividedBy(1000));
/** Where the last day is cut: so many of its milliseconds are served. */
const parts = fc.integer({ min: 1, max: 1_000_000 });

describe('years of daily billing', () => {
  it('are the days of the calendar, times the price of a day, in advance and in arrears, and the part of the day that is cut', () =>
    fc.assert(
      fc.property(starts, zones, money, money, money, parts, (start, timezone, advance, arrear, quarter, part) => {
        const local = Temporal.Instant.fromEpochMilliseconds(start).toZonedDateTimeISO(timezone);
        const whole = local.add({ years: YEARS });
        const days = local.toPlainDate().until(whole.toPlainDate(), { largestUnit: 'day' }).days;
        const next = local.add({ days: days + 1 });
        const day_ms = next.epochMilliseconds - whole.epochMilliseconds;
        const served_ms = Math.ceil((day_ms * part) / 1_000_001);
        const end_ms = whole.epochMilliseconds + served_ms;

        const subscription: BilledSubscription = {
          ...DAILY,
          start_ms: start,
          billing_anchor_ms: start,
          end_ms,
          timezone,
        };
        const items = [
          item('ahead', advance, start, { invoice_cadence: 'ADVANCE' }),
          item('behind', arrear, start),
          item('quarter', quarter, start, { billing_period: 'QUARTERLY' }),
        ];
        const billed = walk(subscription, items);

        const cut = new Decimal(served_ms).dividedBy(day_ms);
        // Each line is rounded, then they are added up.
        const daily = (price: Decimal) =>
          price.toDecimalPlaces(2).times(days).plus(price.times(cut).toDecimalPlaces(2));
        expect(billed.get('ahead')!.toFixed()).to.equal(daily(advance).toFixed());
        expect(billed.get('behind')!.toFixed()).to.equal(daily(arrear).toFixed());
        const lastQuarter = local.add({ months: 12 * YEARS + 3 }).epochMilliseconds - whole.epochMilliseconds;
        const rest = quarter.times(served_ms).dividedBy(lastQuarter).toDecimalPlaces(2);
        expect(billed.get('quarter')!.toFixed()).to.equal(
          quarter
            .toDecimalPlaces(2)
            .times(4 * YEARS)
            .plus(rest)
            .toFixed(),
        );
      }),
      { numRuns: samples(3) },
    )).timeout(60_000);
});

const DAILY = { billing_period: 'DAILY', billing_period_count: 1 } as const;

function item(id: string, amount: Decimal, start_ms: number, fields: Partial<PricedItem> = {}): PricedItem {
  return {
    ...DAILY,
    id,
    price: { billing_model: 'FLAT_FEE', currency: 'usd', amount: amount.toFixed() },
    quantity: new Decimal(1),
    price_type: 'FIXED',
    invoice_cadence: 'ARREAR',
    start_ms,
    end_ms: null,
    reset_usage: null,
    display_name: id,
    meter_id: null,
    ...fields,
  };
}

/** The opening, and an invoice at the end of each period: what each line comes to over all of them. */
function walk(subscription: BilledSubscription, items: readonly PricedItem[]): Map<string, Decimal> {
  const sums = new Map<string, Decimal>();
  const bill = (period: Period, reference: ReferencePoint) => {
    const question = { subscription, items, period, reference, currency: 'usd', invoiced: new Set<string>() };
    const before = { closed: [], recorded: [], partial: [], commitment: null, true_ups: [], coupons: [] };
    for (const line of planLines({ ...question, ...before, usage: new Map() }))
      sums.set(line.item.id, (sums.get(line.item.id) ?? ZERO).plus(line.amount));
  };
  const rule = {
    ...subscription,
    billing_anchor: subscription.billing_anchor_ms,
    subscription_end: subscription.end_ms,
  };
  let isFirst = true;
  for (const period of periodsFrom(subscription.start_ms, rule)) {
    if (isFirst) bill(period, 'period_start');
    isFirst = false;
    bill(period, 'period_end');
  }
  return sums;
}
