/** Ranges that begin before everything and end behind it, as those of subscriptions may: the calendar of the engine is shorter. */
import { expect } from 'chai';
import { type Metering, startMetering } from '../../support/metering.ts';

const EVENTS = [
  '1900-01-01T00:00:00Z',
  '1900-01-01T12:00:00Z',
  '2026-01-01T00:00:00Z',
  '2254-12-31T12:00:00Z',
  '2254-12-31T23:59:59.999998Z',
];
const RANGES: [start: string, end: string, expected: string][] = [
  ['1900-01-01T00:00:00Z', '2255-01-01T00:00:00Z', '5'],
  ['0001-01-01T00:00:00Z', '9999-12-31T23:59:59.999Z', '5'],
  ['1899-06-15T00:30:00Z', '2300-05-05T05:05:05Z', '5'],
  ['0001-01-01T00:00:00Z', '1900-01-01T12:00:00Z', '1'],
  ['2254-12-31T12:00:00Z', '9999-01-01T00:00:00Z', '2'],
  ['2250-12-31T12:20:00Z', '2299-01-01T00:10:00Z', '2'],
  ['1700-12-31T12:20:00Z', '1899-12-31T00:10:00Z', '0'],
  ['2255-12-31T12:20:00Z', '2899-12-31T00:10:00Z', '0'],
];

describe('usage of ranges at the ends of time', () => {
  let metering: Metering;
  before(async () => {
    metering = await startMetering();
    await metering.announce('calls', { event_name: 'call', aggregation: { type: 'COUNT' }, filters: [] });
    await metering.send(
      EVENTS.map((timestamp, index) => ({
        event_id: `e${index}`,
        event_name: 'call',
        external_customer_id: 'acme',
        timestamp,
      })),
    );
    await metering.waitForPipeline();
  });
  after(() => metering.stop());

  for (const rows of ['hours', 'days']) {
    it(`from ${rows}`, async () => {
      if (rows === 'days') {
        await metering.requestDailyRollups('2255-01-01T00:00:00Z');
        await metering.waitForPipeline();
      }
      for (const [start, end, expected] of RANGES)
        expect(await metering.usage('calls', 'acme', [start, end]), `${start} – ${end}`).to.equal(expected);
    });
  }
});
