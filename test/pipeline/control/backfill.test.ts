/** Events that a meter cannot use have an outcome, whether they came before the meter or after it. */
import { expect } from 'chai';
import { type Metering, startMetering } from '../../support/metering.ts';

describe('back-fill', () => {
  let metering: Metering;
  before(async () => {
    metering = await startMetering();
  });
  after(() => metering.stop());

  const event = (event_id: string, n: unknown, timestamp = '2026-03-10T10:20:00Z') => ({
    event_id,
    event_name: 'call',
    external_customer_id: 'acme',
    timestamp,
    properties: { n },
  });
  const sum = (field: string) => ({ event_name: 'call', filters: [], aggregation: { type: 'SUM' as const, field } });
  const outcomes = (meter_id: string) =>
    metering.rows<Record<string, unknown>>(
      `select event_id, outcome, reason, partition, offset, position, toString(received_at) as received_at
         from event_outcomes where meter_id = '${meter_id}' order by event_id`,
    );

  it('the outcomes are those of a meter that was there from the beginning', async () => {
    await metering.announce('first', sum('n'));
    await metering.waitForPipeline();
    await metering.send([
      event('a', '1.5'),
      event('b', 'abc'),
      event('c', null, '2026-03-11T00:00:00Z'),
      event('d', true),
    ]);
    await metering.waitForPipeline();
    await metering.announce('later', sum('n'));
    await metering.waitForPipeline();
    expect(await metering.usage('later', 'acme', ['2026-03-01T00:00:00Z', '2026-04-01T00:00:00Z'])).to.equal('1.5');
    const later = await outcomes('later');
    expect(later.map(({ event_id }) => event_id)).to.deep.equal(['b', 'c', 'd']);
    expect(later).to.deep.equal(await outcomes('first'));
  });

  it('a day that arrived, and was not noted, is not written again', async () => {
    const before = await outcomes('later');
    await metering.pause();
    // As after a crash between the write of a day and the note that it is done.
    await metering.stores.postgres.raw(
      `update meter_versions set state = 'backfilling', backfilled_until = backfilled_until - 1, backfilled_days = 1
        where meter_id = 'later'`,
    );
    await metering.resume();
    await metering.waitForPipeline();
    expect(await outcomes('later')).to.deep.equal(before);
    expect(await metering.usage('later', 'acme', ['2026-03-01T00:00:00Z', '2026-04-01T00:00:00Z'])).to.equal('1.5');
  });

  it('many versions at once are settled with few connections', async () => {
    const names = Array.from({ length: 15 }, (_none, index) => `m${index}`);
    await Promise.all(names.map((name) => metering.announce(name, sum('n'))));
    await metering.waitForPipeline();
    for (const name of names)
      expect(await metering.usage(name, 'acme', ['2026-03-01T00:00:00Z', '2026-04-01T00:00:00Z'])).to.equal('1.5');
  });
});
