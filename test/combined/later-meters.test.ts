/** Meters that come or change when there are events already: the past is counted exactly, and no closed period is billed again. */
import { expect } from 'chai';
import { computeInvoice } from '../../actions/invoicing/invoices/compute-invoice.ts';
import { until } from '../support/until.ts';
import { startWorld, usage, type World } from '../support/world.ts';

describe('scenario: meters that come later', () => {
  let world: World;
  before(async () => {
    world = await startWorld();
    await world.meter('calls', { type: 'COUNT' });
    await world.plan('Calls', [usage('calls', '1', { display_name: 'calls' })]);
    await world.on('2026-01-01', () => world.subscribe('acme', 'Calls'));
  });
  after(() => world.stop());

  const send = (day: string, region: string, count: number) =>
    world.send(
      Array.from({ length: count }, (_, index) => ({
        event_name: 'calls',
        event_id: `${day}-${region}-${index}`,
        external_customer_id: 'acme',
        timestamp: `2026-${day}T12:00:00Z`,
        properties: { region },
      })),
    );
  const meter = () => world.get(`/meters/${world.id('meter calls')}`);

  it('a changed meter counts the open period as if it had always been so, and leaves the closed one alone', async () => {
    await world.on(
      '2026-01-10',
      () => send('01-10', 'eu', 5),
      () => send('01-11', 'us', 3),
    );
    await world.on('2026-02-01');
    await world.finalize();
    const closed = (await world.statements('acme'))[0];
    expect(closed).to.include('FINALIZED 2026-01-01..2026-02-01 = 8');

    await world.on(
      '2026-02-05',
      () => send('02-05', 'eu', 7),
      () => send('02-06', 'us', 2),
    );
    await world.waitForPipeline();
    expect((await meter()).state).to.equal('live');
    const filters = [{ key: 'region', values: ['eu'] }];
    const { status } = await world.api.request('PUT', `/meters/${world.id('meter calls')}`, { body: { filters } });
    expect(status).to.equal(200);
    await world.waitForPipeline();
    const { state, backfill } = await meter();
    expect({ state, days_done: backfill.days_done, days: backfill.days }).to.deep.equal({
      state: 'live',
      days_done: 4,
      days: 4,
    });

    await world.on('2026-03-01');
    await world.on('2026-03-02');
    const [first, second] = await world.statements('acme');
    expect(first).to.equal(closed);
    expect(second).to.include('2026-02-01..2026-03-01 = 7');
  });

  it('an event that is voided changes the open draft and not the final invoice', async () => {
    const amounts = async () =>
      (await world.invoices('acme')).map(({ invoice_status, total }) => [invoice_status, total]);
    const before = await amounts();
    for (const id of ['01-10-eu-0', '02-05-eu-0']) {
      const { status } = await world.api.request('POST', `/events/${id}/void`, { body: { reason: 'test' } });
      expect(status).to.equal(202);
      await until('the event is void', async () => {
        const { items } = await world.get(`/events/${id}/corrections`);
        return items[0]!.state === 'applied';
      });
    }
    expect(before.slice(0, 2)).to.deep.equal([
      ['FINALIZED', '8'],
      ['DRAFT', '7'],
    ]);
    const { services, scope } = world.api;
    const [final, draft] = await world.invoices('acme');
    await computeInvoice(services, scope, draft!.id, world.now);
    expect((await amounts()).slice(0, 2)).to.deep.equal([
      ['FINALIZED', '8'],
      ['DRAFT', '6'],
    ]);
    await computeInvoice(services, scope, final!.id, world.now).catch(() => undefined);
    expect((await amounts())[0]).to.deep.equal(['FINALIZED', '8']);
  });

  it('a meter that nothing is charged by any more can be archived, and is stopped', async () => {
    expect((await world.api.request('DELETE', `/meters/${world.id('meter calls')}`)).body.message).to.match(
      /is charged by 1 price /,
    );
    await world.cancel('acme');
    await world.api.request('DELETE', `/plans/${world.id('plan Calls')}`);
    await world.api.request('DELETE', `/meters/${world.id('meter calls')}`);
    await world.waitForPipeline();
    expect((await meter()).state).to.equal('stopped');
  });
});
