/** Questions to the one door of usage, compared with a plain fold over the events that were sent. */
import { expect } from 'chai';
import fc from 'fast-check';
import { formatTimestamp } from '../../../core/metering/timestamp.ts';
import type { WindowSize } from '../../../core/time/window.ts';
import { askUsage, type UsageAsked } from '../../../storage/usage/usage.ts';
import { type ModelEvent, type ModelMeter, modelUsage, modelWindows } from '../../support/usage-model.ts';
import { startWorld, type World } from '../../support/world.ts';

// The clocks of Berlin go forward on 29 March 2026 at 01:00 UTC.
const FROM = Date.parse('2026-03-27T00:00:00Z') * 1000;
const TO = Date.parse('2026-04-02T00:00:00Z') * 1000;
const CUSTOMERS = ['acme', 'globex', 'initech'];

const METERS: Record<string, ModelMeter> = {
  count: { type: 'COUNT' },
  sum: { type: 'SUM' },
  avg: { type: 'AVG' },
  unique: { type: 'COUNT_UNIQUE' },
  latest: { type: 'LATEST' },
  multiplied: { type: 'SUM_WITH_MULTIPLIER', multiplier: '0.25' },
  max: { type: 'MAX' },
  weighted: { type: 'WEIGHTED_SUM' },
  'max per hour and host': { type: 'MAX', bucket_size: 'HOUR', group_by: 'host' },
  'max per 15 minutes': { type: 'MAX', bucket_size: '15MIN' },
  'max per day': { type: 'MAX', bucket_size: 'DAY' },
  'sum per week': { type: 'SUM', bucket_size: 'WEEK' },
};

const ZONES = ['UTC', 'Europe/Berlin', 'Asia/Kolkata'];
const SIZES: WindowSize[] = ['15MIN', 'HOUR', '3HOUR', 'DAY', 'WEEK', 'MONTH'];

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
    external_customer_id: CUSTOMERS[next(CUSTOMERS.length)]!,
    // One in four stands exactly on an hour.
    at_us: next(4) === 0 ? FROM + next(144) * 3_600_000_000 : FROM + next(TO - FROM),
    n: next(3) === 0 ? values[next(values.length)]! : `${next(1000)}.${next(100)}`,
    host: `h${next(9)}`,
  }));
}

describe('usage: any question equals the fold over the events', () => {
  const events = madeEvents(700);
  let world: World;

  before(async () => {
    world = await startWorld({ now: '2026-04-10T00:00:00Z' });
    for (const [name, { type, multiplier, bucket_size, group_by }] of Object.entries(METERS)) {
      const field = type === 'COUNT_UNIQUE' ? 'host' : 'n';
      await world.meter(name, { type, field, multiplier, bucket_size, group_by }, { event_name: 'call' });
    }
    await world.send(events.slice(0, 400).map(sent));
    await world.settle();
    // What comes in another slice falls into the same buckets.
    await world.send(events.slice(400).map(sent));
    await world.settle();
  });
  after(() => world.stop());

  const sent = ({ event_id, external_customer_id, at_us, n, host }: ModelEvent) => ({
    event_id,
    event_name: 'call',
    external_customer_id,
    timestamp: formatTimestamp(at_us),
    properties: { n, host },
  });

  const ask = (name: string, asked: Omit<UsageAsked, 'meter'>) =>
    askUsage(world.api.services, world.api.scope, { meter: { id: world.id(`meter ${name}`) }, ...asked });

  const questions = fc.record({
    bounds: fc.tuple(
      fc.integer({ min: FROM - 1e10, max: TO + 1e10 }),
      fc.integer({ min: FROM - 1e10, max: TO + 1e10 }),
    ),
    aligned: fc.constantFrom(1, 1, 60_000_000, 3_600_000_000, 86_400_000_000),
    customers: fc.constantFrom(null, ['acme'], ['globex', 'initech'], ['nobody']),
    zone: fc.constantFrom(...ZONES),
    size: fc.constantFrom(undefined, ...SIZES),
    raw: fc.boolean(),
  });

  for (const [name, meter] of Object.entries(METERS)) {
    it(name, async () => {
      await fc.assert(
        fc.asyncProperty(questions, async ({ bounds, aligned, customers, zone, size, raw }) => {
          const [a, b] = bounds.map((at) => Math.floor(at / aligned) * aligned) as [number, number];
          const range = { start_us: Math.min(a, b), end_us: Math.max(a, b) + aligned };
          const report = await ask(name, {
            ...range,
            external_customer_ids: customers,
            timezone: zone,
            window_size: size,
            ...(raw ? { only: {} } : {}),
          });
          expect(report.from).to.equal(raw ? 'raw' : 'buckets');
          const mine = events.filter(
            (event) => (customers as string[] | null)?.includes(event.external_customer_id) ?? true,
          );
          const grid = { timezone: zone };
          const { total, windows } = report.usage[0]!;
          const told = { value: total.value.toFixed(), event_count: total.event_count };
          expect(told).to.deep.equal(modelUsage(meter, mine, { ...range, grid }));
          if (size === undefined) {
            expect(windows).to.deep.equal([]);
            return;
          }
          // A bucketed meter is not asked for windows that cut its buckets.
          if (meter.bucket_size && SIZES.indexOf(size) < SIZES.indexOf(meter.bucket_size)) return;
          const parts = Object.fromEntries(
            windows.map(({ window_us, value, event_count }) => [window_us, { value: value.toFixed(), event_count }]),
          );
          expect(parts).to.deep.equal(modelWindows(meter, mine, { ...range, grid, size }));
        }),
        { numRuns: 12 },
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

  it('by key: the events of each key', async () => {
    const range = { start_us: FROM, end_us: TO };
    const key_of: UsageAsked['key_of'] = ({ properties }) => properties.get('host')?.text ?? '';
    const report = await ask('sum', { ...range, external_customer_ids: ['acme'], key_of });
    const hosts = new Set(events.filter((event) => event.external_customer_id === 'acme').map(({ host }) => host));
    expect(report.usage.map(({ key }) => key)).to.have.members([...hosts]);
    for (const { key, total } of report.usage) {
      const mine = events.filter((event) => event.external_customer_id === 'acme' && event.host === key);
      const model = modelUsage({ type: 'SUM' }, mine, { ...range, grid: { timezone: 'UTC' } });
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
    const mine = events.filter(({ host }) => host === 'h1');
    const model = modelUsage({ type: 'MAX', bucket_size: 'HOUR' }, mine, { ...range, grid: { timezone: 'UTC' } });
    expect(report.from).to.equal('raw');
    expect(report.usage[0]!.total.value.toFixed()).to.equal(model.value);
  });

  it('a meter that nobody made is an error and no zero', async () => {
    const asked = { meter: { id: 'meter_none' }, external_customer_ids: null, start_us: FROM, end_us: TO };
    const failed = await askUsage(world.api.services, world.api.scope, asked).then(
      () => null,
      (error: Error) => error.message,
    );
    expect(failed).to.match(/no version/);
  });
});
