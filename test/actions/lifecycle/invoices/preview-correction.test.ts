/** A correction that is requested while a preview of the same event reads usage: the preview is refused, never wrong or an internal error. */
import { expect } from 'chai';
import { previewCorrection } from '../../../../actions/lifecycle/invoices/preview-correction.ts';
import type { Stores } from '../../../../storage/foundation/stores.ts';
import { startWorld, usage, type World } from '../../../support/world.ts';

describe('the preview of an event that is corrected meanwhile', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-03-01T00:00:00Z' });
    await world.meter('call', { type: 'SUM', field: 'n' });
    await world.plan('Pro', [usage('call', '0.5')]);
    await world.subscribe('acme', 'Pro');
    await world.waitForPipeline();
    world.at('2026-03-20T00:00:00Z');
    await world.send([
      {
        event_id: 'only',
        event_name: 'call',
        external_customer_id: 'acme',
        timestamp: '2026-03-15T12:00:00Z',
        properties: { n: 1 },
      },
    ]);
    await world.waitForPipeline();
  });
  after(() => world.stop());

  /** Returns stores whose first statement about bucket rows waits until `meanwhile` has run. */
  const interrupt = (meanwhile: () => Promise<void>): Stores => {
    const { services } = world.api;
    let isDone = false;
    const clickhouse = new Proxy(services.clickhouse, {
      get(target, name) {
        const value = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        return async (...args: [{ query?: string }]) => {
          if (name === 'query' && !isDone && args[0].query?.includes('usage_buckets')) {
            isDone = true;
            await meanwhile();
          }
          return value.apply(target, args);
        };
      },
    });
    return { ...services, clickhouse };
  };

  it('is refused until the correction is counted', async () => {
    const stores = interrupt(async () => {
      const body = { reason: 'sent by mistake' };
      expect((await world.api.request('POST', '/events/only/void', { body })).status).to.equal(202);
      await world.waitForPipeline();
    });
    const input = { event_id: 'only', action: 'void' as const, replacement: null, now: world.now };
    const outcome = await previewCorrection(stores, world.api.scope, input).catch((error: unknown) => error);
    expect(outcome).to.include({ code: 'service_unavailable' });
    expect(String(outcome)).to.include('event only is still being processed');
  });
});
