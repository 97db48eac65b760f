/** A correction of an event while its preview or its thread reads usage: the answer is refused, never wrong or an internal error. */
import { expect } from 'chai';
import { previewCorrection } from '../../../../actions/lifecycle/invoices/preview-correction.ts';
import { followEvent } from '../../../../actions/reporting/events/event-thread.ts';
import type { Stores } from '../../../../storage/foundation/stores.ts';
import { startWorld, usage, type World } from '../../../support/world.ts';

describe('an event that is corrected while its usage is read', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-03-01T00:00:00Z' });
    await world.meter('call', { type: 'SUM', field: 'n' });
    await world.plan('Pro', [usage('call', '0.5')]);
    await world.subscribe('acme', 'Pro');
    await world.waitForPipeline();
    world.at('2026-03-20T00:00:00Z');
    const event = { event_name: 'call', external_customer_id: 'acme', properties: { n: 1 } };
    await world.send([
      { ...event, event_id: 'previewed', timestamp: '2026-03-15T12:00:00Z' },
      { ...event, event_id: 'followed', timestamp: '2026-03-16T12:00:00Z' },
      { ...event, event_id: 'moved', timestamp: '2026-03-17T12:00:00Z' },
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

  const voidEvent = async (event_id: string) => {
    const body = { reason: 'sent by mistake' };
    expect((await world.api.request('POST', `/events/${event_id}/void`, { body })).status).to.equal(202);
    await world.waitForPipeline();
  };
  const expectRefusal = async (event_id: string, read: Promise<unknown>) => {
    const outcome = await read.catch((error: unknown) => error);
    expect(outcome).to.include({ code: 'service_unavailable' });
    expect(String(outcome)).to.include(`event ${event_id} is still being processed`);
  };

  it('has no preview', async () => {
    const stores = interrupt(() => voidEvent('previewed'));
    const input = { event_id: 'previewed', action: 'void' as const, replacement: null, now: world.now };
    await expectRefusal('previewed', previewCorrection(stores, world.api.scope, input));
  });

  it('has no thread', async () => {
    const stores = interrupt(() => voidEvent('followed'));
    await expectRefusal('followed', followEvent(stores, world.api.scope, { id: 'followed', now: world.now }));
  });

  it('has no thread if its content changes', async () => {
    const content = { event_name: 'call', external_customer_id: 'acme', properties: { n: 2 } };
    const stores = interrupt(() => world.replace('moved', { ...content, timestamp: '2026-03-18T12:00:00Z' }));
    await expectRefusal('moved', followEvent(stores, world.api.scope, { id: 'moved', now: world.now }));
    const thread = await followEvent(world.api.services, world.api.scope, { id: 'moved', now: world.now });
    expect(thread!.meters.map(({ value }) => value)).to.deep.equal(['2']);
  });
});
