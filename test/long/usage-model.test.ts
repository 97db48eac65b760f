/**
 * Laws of the whole road, against the reference model: in any order, cut into any batches, on any number of partitions, with
 * events sent again (also with another content), with meters that come before, between or after the events, and with slices
 * that are run again, every meter of every type measures what the model says.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import type { MeterDefinition } from '../../core/metering/meter-definition.ts';
import { type Metering, startMetering } from '../support/metering.ts';
import { Decimal, type ModelEvent, type ModelMeter, usageByModel } from '../support/reference-model.ts';

const RANGE = ['2026-03-01T00:00:00Z', '2026-03-05T00:00:00Z'] as const;
const CUSTOMERS = ['acme', 'globex'];

const METERS: Omit<ModelMeter, 'event_name'>[] = [
  { aggregation: { type: 'COUNT' } },
  { aggregation: { type: 'COUNT' }, filters: [{ key: 'host', values: ['a', '1'] }] },
  { aggregation: { type: 'SUM', field: 'v' } },
  {
    aggregation: { type: 'SUM', expression: 'w * 1.5 + 2' },
    value: ({ w }) => new Decimal(w as number).times('1.5').plus(2),
  },
  { aggregation: { type: 'AVG', field: 'v' } },
  { aggregation: { type: 'COUNT_UNIQUE', field: 'host' } },
  { aggregation: { type: 'LATEST', field: 'v' } },
  { aggregation: { type: 'SUM_WITH_MULTIPLIER', field: 'v', multiplier: '-0.25' } },
  { aggregation: { type: 'MAX', field: 'v' } },
  { aggregation: { type: 'MAX', field: 'v', bucket_size: 'HOUR', group_by: 'host' } },
  { aggregation: { type: 'WEIGHTED_SUM', field: 'v' } },
];

const content = fc.record({
  customer: fc.constantFrom(...CUSTOMERS),
  // Few instants, so that some meet in one row, and some at one microsecond.
  minute: fc.integer({ min: 0, max: 4 * 24 * 60 - 1 }).map((at) => at - (at % 17)),
  v: fc.oneof(
    fc.integer({ min: -1000, max: 1000 }),
    fc.constantFrom('0.000000000000000001', '12345678901234567890.5', ' 7 ', 'abc', null),
  ),
  w: fc.integer({ min: 0, max: 1000 }),
  host: fc.constantFrom('a', 'b', 1, '1', true, null),
});

const plays = fc.record({
  events: fc.array(fc.record({ id: fc.nat(40), content }), { minLength: 1, maxLength: 80 }),
  batch: fc.integer({ min: 1, max: 30 }),
  /** After how many of the batches each meter comes. */
  meters: fc.array(fc.nat(6), { minLength: METERS.length, maxLength: METERS.length }),
  sentAgain: fc.boolean(),
});
type Play = typeof plays extends fc.Arbitrary<infer P> ? P : never;

describe('pipeline: what the reference model says', function () {
  this.timeout(120_000);

  for (const partitions of [1, 3]) {
    it(`on ${partitions === 1 ? 'one partition' : `${partitions} partitions`}`, async () => {
      const metering = await startMetering({ partitions, slice_events_max: 20 });
      let run = 0;
      try {
        await fc.assert(
          fc.asyncProperty(plays, (play) => playOn(metering, `run${++run}`, play)),
          { numRuns: 4, endOnFailure: true },
        );
      } finally {
        await metering.stop();
      }
    });
  }
});

async function playOn(metering: Metering, run: string, { events, batch, meters, sentAgain }: Play): Promise<void> {
  const sent = events.map(({ id, content: { customer, minute, ...properties } }) => ({
    event_id: `${run}-${id}`,
    event_name: run,
    external_customer_id: customer,
    timestamp: new Date(Date.parse(RANGE[0]) + minute * 60_000).toISOString(),
    properties,
  }));
  const announced = new Set<number>();
  const announce = async (isDue: (after: number) => boolean) => {
    for (const [index, after] of meters.entries()) {
      if (announced.has(index) || !isDue(after)) continue;
      announced.add(index);
      const { value: _value, filters, aggregation } = METERS[index]!;
      const definition = { event_name: run, filters: filters ?? [], aggregation };
      await metering.announce(`${run}-m${index}`, definition as Omit<MeterDefinition, 'id' | 'reset_usage'>);
    }
  };
  for (let from = 0, nth = 0; from < sent.length; from += batch, nth++) {
    await announce((after) => after <= nth);
    await metering.send(sent.slice(from, from + batch));
  }
  await announce(() => true);
  if (sentAgain) await metering.send([...sent].reverse());
  await metering.waitForPipeline();
  await compare(metering, run, sent);
}

async function compare(metering: Metering, run: string, sent: readonly ModelEvent[]): Promise<void> {
  const [start, end] = RANGE;
  for (const [index, meter] of METERS.entries()) {
    for (const customer of CUSTOMERS) {
      const model = usageByModel({ ...meter, event_name: run }, sent, { start, end, customers: [customer] });
      const measured = await metering.usage(`${run}-m${index}`, customer, RANGE);
      expect(measured, `${JSON.stringify(meter)} of ${customer}`).to.equal(model.value);
    }
  }
}
