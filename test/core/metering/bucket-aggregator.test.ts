import { expect } from 'chai';
import fc from 'fast-check';
import { UsageBucket } from '../../../core/metering/bucket.ts';
import { BucketAggregator, type BucketRow, computeDailyRollups } from '../../../core/metering/bucket-aggregator.ts';
import { rowStart } from '../../../core/metering/bucket-size.ts';
import { type CompiledMeter, compileMeter, measure } from '../../../core/metering/compiled-meter.ts';
import { properties } from '../../../core/metering/event-text.ts';
import { exactText } from '../../../core/metering/exact.ts';
import type { MeterAggregation } from '../../../core/metering/meter-definition.ts';
import { fromScaled } from '../../../core/metering/quantity.ts';
import { samples } from '../../support/samples.ts';

const HOUR = 3_600_000_000;
const DAY = 24 * HOUR;
const ACME = { tenant_id: 't1', environment_id: 'prod' };

describe('plan: contributions in, base rows and daily rollups out', () => {
  it('one row per customer and hour, and one per customer and day of the days that have daily rollups', () => {
    const meter = meterOf({ type: 'SUM', field: 'v' });
    const plan = new BucketAggregator();
    for (const [customer, at, v] of [
      ['a', 0, '1'],
      ['a', HOUR - 1, '2.5'],
      ['a', HOUR, '4'],
      ['b', HOUR, '9007199254740993.25'],
      ['a', DAY, '8'],
    ] as const) {
      add(plan, meter, { customer, at, v });
    }
    const rows = drained(plan);
    expect(rows.map(shown)).to.deep.equal([
      'HOUR 0 a n=2 Σ=3.5',
      'HOUR 1 a n=1 Σ=4',
      'HOUR 1 b n=1 Σ=9007199254740993.25',
      'HOUR 24 a n=1 Σ=8',
    ]);
    const first = ['DAY 0 a n=3 Σ=7.5', 'DAY 0 b n=1 Σ=9007199254740993.25'];
    expect(computeDailyRollups(rows, 2).map(shown)).to.deep.equal([...first, 'DAY 24 a n=1 Σ=8']);
    expect(computeDailyRollups(rows, 1).map(shown)).to.deep.equal(first);
    expect(computeDailyRollups(rows, 0)).to.deep.equal([]);
    expect(drained(plan)).to.deep.equal([]);
  });

  it('keeps tenants, environments, meters and groups apart, whatever their names', () => {
    const grouped = meterOf({ type: 'MAX', field: 'v', bucket_size: '15MIN', group_by: 'g' }, 'm2');
    const plan = new BucketAggregator();
    const scopes = [ACME, { tenant_id: 't1', environment_id: 'dev' }, { tenant_id: 't1/prod', environment_id: '' }];
    for (const scope of scopes) add(plan, meterOf({ type: 'COUNT' }), { scope });
    add(plan, meterOf({ type: 'COUNT' }), { customer: '__proto__' });
    add(plan, grouped, { v: '5', g: 'x' });
    add(plan, grouped, { v: '7' });
    const rows = drained(plan);
    expect(
      rows
        .filter((row) => row.size === 'HOUR')
        .map((row) => [row.tenant_id, row.environment_id, row.external_customer_id]),
    ).to.have.deep.members([
      ['t1', 'prod', 'a'],
      ['t1', 'prod', '__proto__'],
      ['t1', 'dev', 'a'],
      ['t1/prod', '', 'a'],
    ]);
    const ofGrouped = rows.filter((row) => row.meter_id === 'm2' && row.size === '15MIN');
    expect(ofGrouped.map((row) => [row.group_key, row.count])).to.deep.equal([
      ['x', 1],
      ['', 1],
    ]);
  });

  it('numbers of customers are not remembered over a drain', () => {
    const plan = new BucketAggregator();
    const meter = meterOf({ type: 'COUNT' });
    add(plan, meter, { customer: 'a' });
    drained(plan);
    add(plan, meter, { customer: 'b' });
    add(plan, meter, { customer: 'a' });
    expect(drained(plan).map((row) => row.external_customer_id)).to.deep.equal(['b', 'a']);
    add(plan, meter, { customer: '' });
    expect(drained(plan).map((row) => row.external_customer_id)).to.deep.equal(['']);
  });

  it('rows of every type: base rows are the buckets of their events, daily rollups what their base rows combine to', () => {
    const meters = (
      [
        { type: 'COUNT' },
        { type: 'AVG', field: 'v' },
        { type: 'COUNT_UNIQUE', field: 'v' },
        { type: 'LATEST', field: 'v' },
        { type: 'MAX', field: 'v', bucket_size: 'MINUTE', group_by: 'g' },
        { type: 'WEIGHTED_SUM', field: 'v' },
      ] as MeterAggregation[]
    ).map((aggregation, index) => meterOf(aggregation, `m${index}`));
    const added = fc.record({
      meter: fc.nat(meters.length - 1),
      customer: fc.constantFrom('a', 'b', 'c'),
      at: fc.integer({ min: -2 * DAY, max: 2 * DAY - 1 }),
      v: fc.integer({ min: -50, max: 50 }).map((n) => String(n / 4)),
      g: fc.constantFrom('x', 'y', undefined),
    });
    fc.assert(
      fc.property(fc.array(added, { maxLength: 60 }), (all) => {
        const plan = new BucketAggregator();
        const expected = new Map<string, UsageBucket>();
        for (const [index, one] of all.entries()) {
          const meter = meters[one.meter]!;
          const contribution = add(plan, meter, { ...one, id: `e${index}` });
          for (const size of [meter.base_size, 'DAY'] as const) {
            const group = meter.group_by === undefined ? '' : (one.g ?? '');
            const key = [meter.id, one.customer, size, rowStart(one.at, size), group].join('|');
            if (!expected.has(key)) expected.set(key, new UsageBucket());
            meter.aggregation.add(expected.get(key)!, contribution);
          }
        }
        const base = drained(plan);
        const rows = [...base, ...computeDailyRollups(base, 2)];
        const keys = rows.map((row) =>
          [row.meter_id, row.external_customer_id, row.size, row.bucket_start_us, row.group_key].join('|'),
        );
        expect(new Set(keys).size).to.equal(rows.length);
        expect(new Set(keys)).to.deep.equal(new Set(expected.keys()));
        for (const [index, row] of rows.entries())
          expect(fieldsOf(row)).to.deep.equal(fieldsOf(expected.get(keys[index]!)!));
      }),
      { numRuns: samples(300) },
    );
  });
});

type Added = { customer?: string; at?: number; v?: string; g?: string | undefined; id?: string; scope?: typeof ACME };

function add(plan: BucketAggregator, meter: CompiledMeter, one: Added) {
  const { customer = 'a', at = 0, v = '1', g, id = 'e', scope = ACME } = one;
  const sent = properties(`{"v":${v}${g === undefined ? '' : `,"g":"${g}"`}}`);
  const contribution = measure(meter, {
    event_id: id,
    external_customer_id: customer,
    timestamp_us: at,
    properties: sent,
  });
  if (contribution.unusable !== undefined) throw new Error(contribution.unusable);
  plan.add(scope, meter, contribution);
  return contribution;
}

function fieldsOf(fields: BucketRow | UsageBucket) {
  const { count, sum, weighted_sum, min, max, latest, uniques } = fields;
  return { count, sum, weighted_sum, min, max, latest, uniques: [...uniques].sort() };
}

function shown(row: BucketRow): string {
  const hour = row.bucket_start_us / HOUR;
  return `${row.size} ${hour} ${row.external_customer_id} n=${row.count} Σ=${exactText(fromScaled(row.sum))}`;
}

function meterOf(aggregation: MeterAggregation, id = 'm1'): CompiledMeter {
  return compileMeter({ id, event_name: 'call', filters: [], aggregation, reset_usage: 'BILLING_PERIOD' });
}

function drained(plan: BucketAggregator): BucketRow[] {
  return [...plan.drain()].flat();
}
