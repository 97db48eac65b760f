/** Questions to the one door of usage, compared with the reference model over the events that were sent. */
import { expect } from 'chai';
import fc from 'fast-check';
import type { WindowSize } from '../../../core/foundation/time/window.ts';
import type { WindowAnswer } from '../../../core/metering/usage.ts';
import { readUsageReport } from '../../../storage/usage/usage.ts';
import type { MeterUsageQuery } from '../../../storage/usage/usage-query.ts';
import { instantText, type ModelEvent, type ModelMeter, usageByModel } from '../../support/reference-model.ts';
import { samples } from '../../support/samples.ts';
import { startWorld, type World } from '../../support/world.ts';

// The clocks of Berlin go forward on 29 March 2026 at 01:00 UTC.
const FROM = Date.parse('2026-03-27T00:00:00Z') * 1000;
const TO = Date.parse('2026-04-02T00:00:00Z') * 1000;
const CUSTOMERS = ['acme', 'globex', 'initech'];

const AGGREGATIONS: Record<string, ModelMeter['aggregation']> = {
  count: { type: 'COUNT' },
  sum: { type: 'SUM', field: 'n' },
  avg: { type: 'AVG', field: 'n' },
  unique: { type: 'COUNT_UNIQUE', field: 'host' },
  latest: { type: 'LATEST', field: 'n' },
  multiplied: { type: 'SUM_WITH_MULTIPLIER', field: 'n', multiplier: '0.25' },
  max: { type: 'MAX', field: 'n' },
  weighted: { type: 'WEIGHTED_SUM', field: 'n' },
  'max per hour and host': { type: 'MAX', field: 'n', bucket_size: 'HOUR', group_by: 'host' },
  'max per 15 minutes': { type: 'MAX', field: 'n', bucket_size: '15MIN' },
  'max per day': { type: 'MAX', field: 'n', bucket_size: 'DAY' },
  'sum per week': { type: 'SUM', field: 'n', bucket_size: 'WEEK' },
};
const meterOf = (name: string): ModelMeter => ({ event_name: 'call', aggregation: AGGREGATIONS[name]! });

const ZONES = ['UTC', 'Europe/Berlin', 'Asia/Kolkata'];
const SIZES: WindowSize[] = ['MINUTE', '15MIN', '30MIN', 'HOUR', '3HOUR', '6HOUR', '12HOUR', 'DAY', 'WEEK', 'MONTH'];
const WINDOWS_MAX = 2000;

/** Values of many shapes from a small generator of its own, the same in every run. */
function madeEvents(count: number): ModelEvent[] {
  let state = 7;
  const next = (below: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
  const values = ['1', '0.1', '-2.5', '12345678901234567890.000000000000000001', '0', '7'];
  return Array.from({ length: count }, (_, index) => ({
    event_id: `e${index}`,
    event_name: 'call',
    external_customer_id: CUSTOMERS[next(CUSTOMERS.length)]!,
    // One in four stands exactly on an hour.
    timestamp: timeOf(next(4) === 0 ? FROM + next(144) * 3_600_000_000 : FROM + next(TO - FROM)),
    properties: {
      n: next(3) === 0 ? values[next(values.length)]! : `${next(1000)}.${next(100)}`,
      host: `h${next(9)}`,
    },
  }));
}

function timeOf(at_us: number): string {
  return instantText(BigInt(at_us));
}

/** Groups of a window are in no order. */
function shown({ value, buckets, ...answer }: Omit<WindowAnswer, 'window_us'>) {
  const texts = buckets?.map((groups) => groups.map((one) => one.toFixed()).sort()) ?? null;
  return { ...answer, bucket_starts_us: answer.bucket_starts_us ?? null, value: value.toFixed(), buckets: texts };
}

const hostOf = ({ properties }: ModelEvent) => String(properties!['host']);

describe('usage: any question equals the reference model', () => {
  const events = madeEvents(700);
  let world: World;

  before(async () => {
    world = await startWorld({ now: '2026-04-10T00:00:00Z' });
    for (const [name, aggregation] of Object.entries(AGGREGATIONS))
      await world.meter(name, aggregation, { event_name: 'call' });
    await world.send(events.slice(0, 400));
    await world.waitForPipeline();
    // What comes in another slice falls into the same buckets.
    await world.send(events.slice(400));
    await world.waitForPipeline();
  });
  after(() => world.stop());

  const ask = (name: string, asked: Omit<MeterUsageQuery, 'meter'>) =>
    readUsageReport(world.api.services, world.api.scope, { meter: { id: world.id(`meter ${name}`) }, ...asked });

  const questions = fc.record({
    bounds: fc.tuple(
      fc.integer({ min: FROM - 1e10, max: TO + 1e10 }),
      fc.integer({ min: FROM - 1e10, max: TO + 1e10 }),
    ),
    aligned: fc.constantFrom(1, 1, 60_000_000, 3_600_000_000, 86_400_000_000),
    customers: fc.constantFrom(null, ['acme'], ['globex', 'initech'], ['nobody']),
    zone: fc.constantFrom(...ZONES),
    size: fc.constantFrom(undefined, ...SIZES),
    anchor: fc.constantFrom(null, '2026-01-30T12:00:00Z', '2026-02-15T23:00:00Z'),
    raw: fc.boolean(),
  });

  for (const name of Object.keys(AGGREGATIONS)) {
    it(name, async () => {
      await fc.assert(
        fc.asyncProperty(questions, async ({ bounds, aligned, customers, zone, size, anchor, raw }) => {
          const [a, b] = bounds.map((at) => Math.floor(at / aligned) * aligned) as [number, number];
          const range = { start_us: Math.min(a, b), end_us: Math.max(a, b) + aligned };
          // A bucketed meter is not asked for windows that cut its buckets, and nobody for so many windows.
          const { bucket_size } = AGGREGATIONS[name]!;
          const isCut = size && bucket_size && SIZES.indexOf(size) < SIZES.indexOf(bucket_size);
          const isLong = size === 'MINUTE' && range.end_us - range.start_us > WINDOWS_MAX * 60_000_000;
          const window_size = isCut || isLong ? undefined : size;
          const report = await ask(name, {
            ...range,
            external_customer_ids: customers,
            timezone: zone,
            window_size,
            ...(anchor ? { billing_anchor_ms: Date.parse(anchor) } : {}),
            ...(raw ? { only: {} } : {}),
          });
          expect(report.source).to.equal(raw ? 'raw' : 'buckets');
          const expected = usageByModel(meterOf(name), events, {
            start: timeOf(range.start_us),
            end: timeOf(range.end_us),
            customers: customers ?? undefined,
            timezone: zone,
            window_size,
            billing_anchor: anchor ?? undefined,
          });
          const { total, windows } = report.usage[0]!;
          const { value, event_count } = expected;
          expect({ value: total.value.toFixed(), event_count: total.event_count }).to.deep.equal({
            value,
            event_count,
          });
          const told = windows.map((window) => ({
            start: timeOf(window.window_us),
            value: window.value.toFixed(),
            event_count: window.event_count,
          }));
          expect(told).to.deep.equal(expected.windows);
          const buckets = total.buckets?.flat().map((bucket) => bucket.toFixed());
          expect(buckets?.sort()).to.deep.equal(expected.buckets?.map((bucket) => bucket.toFixed()).sort());
        }),
        { numRuns: 14 },
      );
    });
  }

  it('by customer: the same as one question for each', async () => {
    const range = { start_us: FROM + 12_345_678, end_us: TO - 87_654_321 };
    for (const name of ['sum', 'unique', 'max per day']) {
      const together = await ask(name, {
        ...range,
        external_customer_ids: null,
        by_customer: true,
        window_size: 'DAY',
      });
      expect(together.usage.map(({ key }) => key)).to.have.members(CUSTOMERS);
      for (const { key, total, windows } of together.usage) {
        const [alone] = (await ask(name, { ...range, external_customer_ids: [key], window_size: 'DAY' })).usage;
        expect({ total, windows }, `${name} of ${key}`).to.deep.equal({ total: alone!.total, windows: alone!.windows });
      }
    }
  });

  it('windows are the same as a question for each, also where they cut those of the meter, and where they run', async () => {
    const names = [
      'sum',
      'avg',
      'latest',
      'max per hour and host',
      'max per 15 minutes',
      'max per day',
      'sum per week',
    ];
    const asked = fc.record({
      name: fc.constantFrom(...names),
      start_us: fc.integer({ min: FROM - 1e10, max: TO }),
      days: fc.integer({ min: 1, max: 5 }),
      timezone: fc.constantFrom(...ZONES),
      customers: fc.constantFrom(['acme'], ['globex', 'initech']),
      running: fc.boolean(),
    });
    const law = fc.asyncProperty(asked, async ({ name, start_us, days, timezone, customers, running }) => {
      const of = { external_customer_ids: customers, by_customer: true, timezone } as const;
      const end_us = start_us + days * 86_400_000_000;
      const report = await ask(name, { ...of, start_us, end_us, window_size: 'DAY', running });
      // The queries of a customer are made at the same time, so that they share statements.
      for (const { key, windows } of report.usage)
        await Promise.all(
          windows.map(async ({ window_us, ...window }) => {
            const range = { start_us: running ? start_us : window.start_us, end_us: window.end_us };
            const alone = await ask(name, { ...of, external_customer_ids: [key], ...range });
            const { window_us: _, ...total } = alone.usage[0]!.total;
            expect(shown(window), `${name} of ${key} until ${timeOf(window.end_us)}`).to.deep.equal(shown(total));
            expect(window_us).to.be.below(window.end_us);
          }),
        );
    });
    await fc.assert(law, { numRuns: samples(30) });
  });

  it('by key: the events of each key', async () => {
    const range = { start_us: FROM, end_us: TO };
    const key_of: MeterUsageQuery['key_of'] = ({ properties }) => properties.get('host')?.text ?? '';
    const report = await ask('sum', { ...range, external_customer_ids: ['acme'], key_of });
    const hosts = new Set(events.filter((event) => event.external_customer_id === 'acme').map(hostOf));
    expect(report.usage.map(({ key }) => key)).to.have.members([...hosts]);
    for (const { key, total } of report.usage) {
      const mine = events.filter((event) => event.external_customer_id === 'acme' && hostOf(event) === key);
      const model = usageByModel(meterOf('sum'), mine, { start: timeOf(FROM), end: timeOf(TO) });
      expect(total.value.toFixed()).to.equal(model.value);
    }
  });

  it('a definition of its own is counted from raw events', async () => {
    const aggregation = { type: 'MAX' as const, field: 'n', bucket_size: 'HOUR' as const };
    const definition = {
      id: 'x',
      event_name: 'call',
      filters: [{ key: 'host', values: ['h1'] }],
      aggregation,
      reset_usage: 'NEVER' as const,
    };
    const range = { start_us: FROM, end_us: TO };
    const report = await ask('sum', { ...range, definition, external_customer_ids: null });
    const model = usageByModel(definition, events, { start: timeOf(FROM), end: timeOf(TO) });
    expect(report.source).to.equal('raw');
    expect(report.usage[0]!.total.value.toFixed()).to.equal(model.value);
  });

  it('a meter that nobody made is an error and no zero', async () => {
    const asked = { meter: { id: 'meter_none' }, external_customer_ids: null, start_us: FROM, end_us: TO };
    const failed = await readUsageReport(world.api.services, world.api.scope, asked).then(
      () => null,
      (error: Error) => error.message,
    );
    expect(failed).to.match(/no version/);
  });
});
