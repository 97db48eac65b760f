import { expect } from 'chai';
import { startWorld, type World } from '../support/world.ts';

describe('events: usage', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-03-15T12:00:00Z' });
  });
  after(() => world.stop());

  it('counts', async () => {
    await world.send([world.event('acme', 'call', { n: '1.5', at: '2026-03-14T23:30:00.000001Z', event_id: 'a' })]);
    await world.send([world.event('acme', 'call', { n: 2, at: '2026-03-15T00:30:00Z', event_id: 'b' })]);
    await world.settle();
    const a = await world.api.request('POST', '/events/usage', {
      body: { event_name: ' call', aggregation_type: 'sum', property_name: 'n', window_size: 'day' },
    });
    console.log(a.text);
    const m = await world.meter('call');
    await world.settle();
    console.log(
      (
        await world.api.request('POST', '/events/usage', {
          body: { event_name: ' call', aggregation_type: 'sum', property_name: 'n', window_size: 'day' },
        })
      ).text,
    );
    console.log(
      (
        await world.api.request('POST', '/events/usage/meter', {
          body: { meter_id: m.id, filters: { n: ['1.5'] }, window_size: 'day', start_time: '2026-03-14T23:30:00Z' },
        })
      ).text,
    );
    console.log(
      (await world.api.request('POST', '/events/usage', { body: { event_name: ' call', aggregation_type: 'sum' } }))
        .text,
    );
    console.log((await world.api.request('GET', '/events/monitoring?window_size=hour')).text);
    console.log((await world.api.request('GET', '/events/monitoring?start_time=2026-03-15T00:00:00Z')).text);
    expect(a.status).to.equal(200);
  });
});
