/** A meter is changed while a question about it is under way: the answer is that of one version, never half of each. */
import { expect } from 'chai';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { readUsageReport } from '../../../storage/usage/usage.ts';
import { type Metering, SCOPE, startMetering } from '../../support/metering.ts';

describe('usage of a meter that changes during the question', () => {
  let metering: Metering;
  before(async () => {
    metering = await startMetering({ partitions: 3 });
    await metering.announce('m', meterOf('n'));
    await metering.waitForPipeline();
  });
  after(() => metering.stop());

  const meterOf = (field: string) => ({
    event_name: 'call',
    filters: [],
    aggregation: { type: 'SUM' as const, field },
  });
  const send = async (from: number, count: number) => {
    await metering.send(
      Array.from({ length: count }, (_none, index) => ({
        event_id: `e${from + index}`,
        event_name: 'call',
        external_customer_id: 'acme',
        timestamp: '2026-03-10T12:00:00Z',
        properties: { n: '1', twice: '2' },
      })),
    );
    await metering.waitForPipeline();
  };
  const total = async (stores: Stores) => {
    const range = { start_us: Date.UTC(2026, 2, 1) * 1000, end_us: Date.UTC(2026, 3, 1) * 1000 };
    const asked = { meter: { id: 'm' }, external_customer_ids: ['acme'], ...range };
    return (await readUsageReport(stores, SCOPE, asked)).usage[0]!.total.value.toFixed();
  };
  /** Returns stores whose first statement about bucket rows waits until `meanwhile` has run. */
  const interrupted = (meanwhile: () => Promise<void>): Stores => {
    let done = false;
    const clickhouse = new Proxy(metering.stores.clickhouse, {
      get(target, name) {
        const value = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        return async (...args: [{ query?: string }]) => {
          if (name === 'query' && !done && args[0].query?.includes('usage_buckets')) {
            done = true;
            await meanwhile();
          }
          return value.apply(target, args);
        };
      },
    });
    return { ...metering.stores, clickhouse };
  };

  it('is that of the version that is there at its end', async () => {
    await send(0, 50);
    const change = async () => {
      await metering.announce('m', meterOf('twice'));
      await metering.waitForPipeline();
      await send(50, 50);
    };
    expect(await total(interrupted(change))).to.equal('200');
    expect(await total(metering.stores)).to.equal('200');
  });

  it('counts what comes after a version was met by it alone', async () => {
    let announced = Promise.resolve();
    const change = async () => {
      announced = metering.announce('m', meterOf('n'));
      await announced;
    };
    expect(['100', '200']).to.include(await total(interrupted(change)));
    await metering.waitForPipeline();
    expect(await total(metering.stores)).to.equal('100');
  });
});
