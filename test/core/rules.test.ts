/** The worked examples of docs/rules, computed by what counts and bills: what a customer reads there is what is charged. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { deriveLookupKey } from '../../core/catalog/feature/record.ts';
import { chargeParts, type PriceTerms } from '../../core/catalog/pricing/charge.ts';
import { priceUnitToFiat } from '../../core/catalog/pricing/price-unit.ts';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import { toLookupKeys } from '../../core/foundation/lookup-key.ts';
import { roundMoney } from '../../core/foundation/money.ts';
import * as eventTime from '../../core/foundation/time/instant.ts';
import { calendarAnchor, type Period, periodsFrom, type RecurringPeriod } from '../../core/foundation/time/period.ts';
import { listWindows, windowAt } from '../../core/foundation/time/window.ts';
import { DEFAULT_INVOICE_NUMBERS, formatDocumentNumber, toNumberToken } from '../../core/invoicing/document/number.ts';
import { type CompiledMeter, compileMeter, measure } from '../../core/metering/compiled-meter.ts';
import type { MeteredEvent } from '../../core/metering/contribution.ts';
import { properties } from '../../core/metering/event-text.ts';
import { matches } from '../../core/metering/match.ts';
import type { MeterAggregation, MeterFilterDefinition } from '../../core/metering/meter-definition.ts';
import { type BilledItem, type BilledSubscription, planDueCharges } from '../../core/rating/charges.ts';
import { dueDate } from '../../core/rating/due.ts';
import { planCorrections } from '../../core/rating/late-events.ts';
import { type MeasuredUsage, type PricedItem, priceUsageCharge } from '../../core/rating/line-amount.ts';
import { computeShare, prorate, regularPeriod } from '../../core/rating/proration.ts';
import { usageOfEvents } from '../support/usage-of-events.ts';

describe('the worked examples of docs/rules', () => {
  describe('pricing', () => {
    const tiers = table('pricing', 'Tiers').map(([up_to, unit_amount, flat_amount]) => ({
      up_to: up_to === 'open' ? null : plain(up_to!),
      unit_amount: plain(unit_amount!),
      flat_amount: flat_amount ? plain(flat_amount) : null,
    }));
    for (const [name, tier_mode] of Object.entries({ 'Volume tiers': 'VOLUME', 'Slab tiers': 'SLAB' } as const)) {
      for (const [quantity, sum] of table('pricing', name)) {
        it(`${name}: ${quantity}`, () => {
          const price = { billing_model: 'TIERED', currency: 'usd', tier_mode, tiers } as const;
          expect(cost(price, plain(quantity!))).to.equal(result(sum!));
        });
      }
    }

    it('Flat fee', () => {
      says('pricing', '1,500 at $0.0125 are $18.75');
      expect(cost({ billing_model: 'FLAT_FEE', currency: 'usd', amount: '0.0125' }, '1500')).to.equal('18.75');
    });

    it('Prices in units of your own', () => {
      says('pricing', 'At a rate of 0.02, 35 units at 4 credits each are 35 × 4 × 0.02 = $2.80.');
      const amount = priceUnitToFiat('4', '0.02');
      expect(cost({ billing_model: 'FLAT_FEE', currency: 'usd', amount }, '35')).to.equal('2.8');
    });

    const packages = (round: 'up' | 'down'): PriceTerms => ({
      billing_model: 'PACKAGE',
      currency: 'usd',
      amount: '5',
      transform_quantity: { divide_by: 100, round },
    });

    it('Packages', () => {
      says('pricing', 'At $5 per 100 units, 250 units are 3 packages, $15; with `down` they are 2, $10.');
      expect([cost(packages('up'), '250'), cost(packages('down'), '250')]).to.deep.equal(['15', '10']);
    });

    it('Each window is priced by itself', () => {
      says('pricing', 'At $5 per 100 units, hours of 150 and 50 units are 2 + 1 packages, $15.');
      const buckets = [[new Decimal(150)], [new Decimal(50)]];
      expect(charged(packages('up'), { quantity: new Decimal(200), buckets })).to.equal('15');
    });
  });

  describe('numbers and money', () => {
    for (const [amount, rounded] of table('numbers', 'Rounding money')) {
      it(`Rounding money: ${amount}`, () => {
        const [text, currency] = amount!.replace('−', '-').split(' ');
        expect(roundMoney(text!, currency!).eq(rounded!.replace('−', '-'))).to.equal(true);
      });
    }

    it('Each line first, then the sum', () => {
      says('numbers', 'three lines of $0.005 are $0.03');
      expect(sumDecimals(Array.from({ length: 3 }, () => roundMoney('0.005', 'usd'))).toFixed()).to.equal('0.03');
    });
  });

  describe('periods', () => {
    for (const [start, anchor, period, ends] of table('periods', "The anchor's grid")) {
      it(`The anchor's grid: from ${start}, anchored at ${anchor}`, () => {
        const [count, unit] = period!.split(' ');
        const rule = { billing_anchor: at(anchor!), billing_period_count: Number(count), timezone: 'UTC' };
        const periods = periodsFrom(at(start!), { ...rule, billing_period: unit as RecurringPeriod });
        const expected = ends!.split(', ').map(at);
        expect(expected.map(() => periods.next().value!.end)).to.deep.equal(expected);
      });
    }

    for (const [period, anchor] of table('periods', 'Anniversary and calendar')) {
      it(`Anniversary and calendar: ${period}`, () => {
        expect(calendarAnchor(at('2026-05-20 10:00'), period as RecurringPeriod, 'UTC')).to.equal(at(anchor!));
      });
    }

    it('Periods and clock changes', () => {
      says('periods', 'anchor at 1 March 00:00 in Berlin (28 February 23:00 UTC)');
      says('periods', '1 April 00:00 in Berlin (31 March 22:00 UTC)');
      const start = at('2026-02-28 23:00');
      const rule = { billing_anchor: start, billing_period_count: 1, timezone: 'Europe/Berlin' };
      const [first] = periodsFrom(start, { ...rule, billing_period: 'MONTHLY' });
      expect(first!.end).to.equal(at('2026-03-31 22:00'));
    });

    it('Line items with periods of their own', () => {
      says('periods', 'puts three lines on the invoice of 1 July: April, May and June');
      const subscription: BilledSubscription = { ...SUBSCRIPTION, billing_period: 'QUARTERLY' };
      const period = { start: at('2026-04-01'), end: at('2026-07-01') };
      const due = planDueCharges({ subscription, items: [ITEM], period, reference: 'period_end' });
      expect(due.map(({ service }) => service.start)).to.deep.equal(['2026-04-01', '2026-05-01', '2026-06-01'].map(at));
    });
  });

  describe('proration', () => {
    for (const [charge, rule, from, to, whole, amount] of table('proration', 'A share of the whole period')) {
      it(`A share of the whole period: ${from} to ${to}`, () => {
        const [billing_period, anchor] = rule!.split(', ');
        const served: Period = { start: at(from!), end: at(to!.split(' (')[0]!) };
        const regular = regularPeriod(served, {
          billing_anchor: at(anchor!),
          billing_period: billing_period as RecurringPeriod,
          billing_period_count: 1,
          timezone: 'UTC',
        });
        const [, start, end, days] = /^(\S+) to (\S+), (\d+) days$/.exec(whole!)!;
        expect(regular).to.deep.equal({ start: at(start!), end: at(end!) });
        expect((regular.end - regular.start) / 86_400_000).to.equal(Number(days));
        const share = prorate(new Decimal(plain(charge!)), computeShare(served, regular));
        expect(roundMoney(share, 'usd').toFixed(2)).to.equal(/\$([\d.]+)$/.exec(amount!)![1]);
      });
    }
  });

  describe('windows', () => {
    const NEW_YORK = { timezone: 'America/New_York' };

    it('Windows follow the local clock', () => {
      says('windows', '10:40 lies in 10:30 to 11:30');
      const window = windowAt(at('2026-05-20 10:40'), 'HOUR', { timezone: 'Asia/Kolkata' });
      expect(window).to.deep.equal({ start: at('2026-05-20 10:30'), end: at('2026-05-20 11:30') });
    });

    it('Days of 23 and 25 hours', () => {
      says(
        'windows',
        '8 March 2026 lasts from 05:00 to 04:00 of the next day (23 h); its first window of 6HOUR is 5 hours',
      );
      const day = windowAt(at('2026-03-08 12:00'), 'DAY', NEW_YORK);
      expect(day).to.deep.equal({ start: at('2026-03-08 05:00'), end: at('2026-03-09 04:00') });
      expect(windowAt(day.start, '6HOUR', NEW_YORK).end - day.start).to.equal(5 * 3_600_000);
      expect(listWindows(day.start, day.end, 'HOUR', NEW_YORK)).to.have.length(23);
    });

    it('Months from the billing anchor', () => {
      says('windows', '31 January to 28 February, 28 February to 31 March, 31 March to 30 April');
      const grid = { timezone: 'UTC', billing_anchor: at('2026-01-31') };
      const months = listWindows(at('2026-01-31'), at('2026-04-30'), 'MONTH', grid);
      expect(months.map(({ end }) => end)).to.deep.equal(['2026-02-28', '2026-03-31', '2026-04-30'].map(at));
    });
  });

  describe('metering', () => {
    it('Which events count', () => {
      says('metering', 'accept `{"model":"large","region":"eu"}` and refuse `{"model":"large"}`');
      const filters = [
        { key: 'model', values: ['small', 'large'] },
        { key: 'region', values: ['eu'] },
      ];
      const counting = meter({ type: 'COUNT' }, filters);
      expect(matches(counting, properties('{"model":"large","region":"eu"}'))).to.equal(true);
      expect(matches(counting, properties('{"model":"large"}'))).to.equal(false);
    });

    it('Unusable events', () => {
      says('metering', '*property "tokens" is not a number*');
      const answer = measure(meter({ type: 'SUM', field: 'tokens' }), event('2026-01-01', '{"tokens":"many"}'));
      expect(answer.unusable).to.equal('property "tokens" is not a number');
    });

    it('Expressions', () => {
      says('metering', '`tokens * 2 + images * 10` of `{"tokens": 1.5}` is 3');
      const sum: MeterAggregation = { type: 'SUM', expression: 'tokens * 2 + images * 10' };
      expect(used(sum, [['2026-01-01', '{"tokens": 1.5}']], ['2026-01-01', '2026-01-02'])).to.equal('3');
    });

    it('Aggregations: WEIGHTED_SUM', () => {
      says('metering', 'are 30 × 30/30 + 10 × 15/30 = 35');
      const sent: Sent = [
        ['2026-04-01', '{"v":30}'],
        ['2026-04-16', '{"v":10}'],
      ];
      expect(used({ type: 'WEIGHTED_SUM', field: 'v' }, sent, ['2026-04-01', '2026-05-01'])).to.equal('35');
    });

    it('Meters with windows of their own', () => {
      says('metering', "5 in eu and 2 in us at ten o'clock, 3 in eu at eleven: (5 + 2) + 3 = 10");
      const max: MeterAggregation = { type: 'MAX', field: 'gpus', bucket_size: 'HOUR', group_by: 'region' };
      const sent: Sent = [
        ['2026-01-01 10:00', '{"gpus":5,"region":"eu"}'],
        ['2026-01-01 10:30', '{"gpus":2,"region":"us"}'],
        ['2026-01-01 11:00', '{"gpus":3,"region":"eu"}'],
      ];
      expect(used(max, sent, ['2026-01-01', '2026-01-02'])).to.equal('10');
    });

    it('Meters that never reset', () => {
      says('metering', '3 seats, $6 for January; 5 seats, $10 for February');
      const seats: BilledItem = { ...ITEM, price_type: 'USAGE', reset_usage: 'NEVER', start_ms: at('2026-01-01') };
      const subscription = { ...SUBSCRIPTION, start_ms: at('2026-01-01') };
      const period = { start: at('2026-02-01'), end: at('2026-03-01') };
      const [february] = planDueCharges({ subscription, items: [seats], period, reference: 'period_end' });
      expect(february!.usage_window).to.deep.equal({ start: at('2026-01-01'), end: at('2026-03-01') });
      const sent: Sent = [
        ['2026-01-10', '{"seats":3}'],
        ['2026-02-10', '{"seats":2}'],
      ];
      const counted = used({ type: 'SUM', field: 'seats' }, sent, ['2026-01-01', '2026-03-01']);
      expect(charged({ ...PRICED.price, amount: '2' }, { quantity: new Decimal(counted) })).to.equal('10');
    });
  });

  describe('invoices', () => {
    it('Numbers', () => {
      says('invoices', '`INV-202602-00001`');
      const token = toNumberToken(DEFAULT_INVOICE_NUMBERS, at('2026-02-01 02:00'));
      expect(formatDocumentNumber(DEFAULT_INVOICE_NUMBERS, token, 1n)).to.equal('INV-202602-00001');
    });

    it('Due date', () => {
      says('invoices', 'For a period that ends on 1 February: 3 March, or 2 February.');
      expect(dueDate(at('2026-02-01'), '30 NET', 1)).to.equal(at('2026-03-03'));
      expect(dueDate(at('2026-02-01'), null, 1)).to.equal(at('2026-02-02'));
      expect(dueDate(at('9999-12-31'), '30 NET', 1)).to.equal(Date.parse('9999-12-31T23:59:59.999Z'));
    });

    it('Late events', () => {
      says('invoices', 'a line of 50 calls, $0.50');
      const january: Period = { start: at('2026-01-01'), end: at('2026-02-01') };
      const item: PricedItem = { ...PRICED, price: { billing_model: 'FLAT_FEE', currency: 'usd', amount: '0.01' } };
      const charge = {
        item,
        service: january,
        usage_window: january,
        billed_amount: new Decimal(10),
        billed_quantity: new Decimal(1000),
        billed_event_count: 1000,
        invoice_line_item_id: 'inv_line_1',
        measured: { ...MEASURED, quantity: new Decimal(1050), event_count: 1050 },
      };
      const [line] = planCorrections([charge], { currency: 'usd', available: new Decimal(100) });
      expect([line!.quantity.toFixed(), line!.amount.toFixed(2)]).to.deep.equal(['50', '0.50']);
      expect(line!.display_name).to.match(/\(late events\)$/);
    });
  });

  it('records: Lookup keys', () => {
    says('records', '`API calls (v2)` becomes `api-calls-v2`');
    expect(deriveLookupKey('API calls (v2)')).to.equal('api-calls-v2');
    expect(toLookupKeys('API calls (v2)').slice(1, 3)).to.deep.equal(['api-calls-v2-2', 'api-calls-v2-3']);
  });
});

const SUBSCRIPTION: BilledSubscription = {
  start_ms: at('2026-04-01'),
  end_ms: null,
  billing_anchor_ms: at('2026-04-01'),
  billing_period: 'MONTHLY',
  billing_period_count: 1,
  timezone: 'UTC',
};

const ITEM: BilledItem = {
  id: 'item',
  price_type: 'FIXED',
  invoice_cadence: 'ARREAR',
  billing_period: 'MONTHLY',
  billing_period_count: 1,
  start_ms: at('2026-04-01'),
  end_ms: null,
  reset_usage: null,
};

const PRICED: PricedItem = {
  ...ITEM,
  price_type: 'USAGE',
  reset_usage: 'BILLING_PERIOD',
  price: { billing_model: 'FLAT_FEE', currency: 'usd', amount: '1' },
  quantity: new Decimal(0),
  display_name: 'API calls',
  meter_id: 'meter',
};

const MEASURED: MeasuredUsage = {
  quantity: new Decimal(0),
  event_count: 0,
  buckets: null,
  as_of: '2026-02-01T00:00:00Z',
  high_water: {},
  meter_version: 1,
};

function charged(price: PriceTerms, measured: Partial<MeasuredUsage>): string {
  const window = { start: at('2026-01-01'), end: at('2026-02-01') };
  const line = priceUsageCharge({ ...PRICED, price }, window, {
    measured: { ...MEASURED, ...measured },
    currency: 'usd',
  });
  return line.amount.toFixed();
}

function cost(price: PriceTerms, quantity: string): string {
  return sumDecimals(chargeParts(price, quantity).map(({ amount }) => amount)).toFixed();
}

type Sent = readonly (readonly [time: string, properties: string])[];

function used(aggregation: MeterAggregation, sent: Sent, [start, end]: [string, string]): string {
  const range = { start_us: at(start) * 1000, end_us: at(end) * 1000 };
  const events = sent.map(([time, text]) => event(time, text));
  return usageOfEvents(meter(aggregation), events, range).value.toFixed();
}

function meter(aggregation: MeterAggregation, filters: MeterFilterDefinition[] = []): CompiledMeter {
  return compileMeter({ id: 'meter', event_name: 'call', filters, aggregation, reset_usage: 'BILLING_PERIOD' });
}

function event(time: string, text: string): MeteredEvent {
  const timestamp_us = eventTime.parseEventTime(new Date(at(time)).toISOString()) as number;
  return { event_id: time, external_customer_id: 'acme', timestamp_us, properties: properties(text) };
}

/** `2026-01-31`, or with an hour `2026-01-31 09:00`. */
function at(text: string): number {
  const instant = Date.parse(text.length === 10 ? `${text}T00:00:00Z` : `${text.replace(' ', 'T')}:00Z`);
  expect(instant, text).to.be.a('number').that.is.not.NaN;
  return instant;
}

/** `$1,000` as it is computed with. */
function plain(number: string): string {
  return number.replace(/[$,]/g, '');
}

/** `1,001 × 0.08 = $80.08`: what stands behind the sign of equality. */
function result(sum: string): string {
  return plain(sum.split('= ')[1]!);
}

/** The page has this sentence, in however many lines. */
function says(page: string, sentence: string): void {
  expect(textOf(page).replace(/\s+/g, ' ')).to.include(sentence);
}

/** The rows of the table under a heading, without its head. */
function table(page: string, rule: string): string[][] {
  const section = textOf(page).split(`\n## ${rule}\n`)[1]!.split('\n## ')[0]!;
  const rows = section.split('\n').filter((line) => line.startsWith('|'));
  expect(rows.length, rule).to.be.greaterThan(2);
  return rows.slice(2).map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

function textOf(page: string): string {
  return readFileSync(join(import.meta.dirname, '../../docs/rules', `${page}.md`), 'utf8');
}
