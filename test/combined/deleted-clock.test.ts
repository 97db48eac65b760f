/** An environment whose test clock is deleted: refused while something would lie in the future or be late; then real time bills on. */
import { expect } from 'chai';
import { dispatchBatch } from '../../actions/delivery/webhooks/dispatch-events.ts';
import { billDuePeriods } from '../../actions/lifecycle/billing/bill-period.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

describe('scenario: a deleted test clock', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2031-01-01T00:00:00Z', test_clock: true });
    await world.meter('calls');
    await world.plan('Pro', [fixed('10', { invoice_cadence: 'ADVANCE' }), usage('calls', '1')]);
    await world.subscribe('acme', 'Pro');
  });
  after(() => world.stop());

  const dispatch = async ({ services }: TestApi) => {
    while ((await dispatchBatch(services, { has_targets: true, now: new Date() })).dispatched > 0);
  };
  const remove = async () => {
    await dispatch(world.api);
    return world.api.request('DELETE', `/test-clocks/${(await world.testClock()).id}`);
  };
  const periods = async () =>
    (await world.invoices('acme')).map(({ period_start, total }) => [period_start, total]).toSorted();

  it('is refused ahead of real time, and while work is due before the present; its periods are billed once', async () => {
    await world.use('acme', 'calls', 3, { at: '2031-01-10T00:00:00Z' });
    await world.advance('2031-02-10');
    const ahead = await remove();
    expect([ahead.status, ahead.body.code]).to.deep.equal([400, 'invalid_operation']);
    expect(ahead.body.message).to.include('ahead of real time, and the environment has customers');

    world.api.setNow('2031-03-15T00:00:00Z');
    const late = await remove();
    expect([late.status, late.body.code, late.body.details]).to.deep.equal([
      400,
      'invalid_operation',
      { due_at: '2031-03-01T00:00:00.000Z', now: '2031-03-15T00:00:00.000Z' },
    ]);

    const advancing = await world.requestAdvance('2031-03-15');
    expect((await remove()).status, 'while it advances').to.equal(400);
    await world.work(advancing.workflow_id!, AbortSignal.timeout(60_000));
    const before = await periods();
    expect(before).to.have.length(3);
    const undispatched = await world.api.request('DELETE', `/test-clocks/${(await world.testClock()).id}`);
    expect(undispatched.body.message).to.include('wait to be dispatched');
    const deleted = await remove();
    expect([deleted.status, deleted.body.message], deleted.text).to.deep.equal([200, 'test clock deleted']);
    expect((await world.api.request('GET', '/test-clocks')).body.items).to.deep.equal([]);

    world.at('2031-03-20');
    expect((await world.post('/plans', { name: 'Later' })).created_at).to.equal('2031-03-20T00:00:00Z');
    await world.use('acme', 'calls', 4);
    expect((await world.preview('acme')).total).to.equal('14');
    expect((await world.bill()).billed).to.equal(0);
    world.at('2031-04-01');
    expect((await world.bill()).billed).to.equal(1);
    expect((await billDuePeriods(world.api.services, world.now)).billed).to.equal(0);
    expect(await periods()).to.deep.equal([...before, ['2031-03-01T00:00:00Z', '14']]);
    const again = await world.api.request('POST', '/test-clocks', { body: { frozen_time: '2031-05-01T00:00:00Z' } });
    expect(again.body.code).to.equal('invalid_operation');
  });

  describe('that is ahead of real time', () => {
    const START = '2040-01-01T00:00:00Z';
    const place = async (name: string) => {
      world.at('2032-01-01');
      const { id: environment_id } = await world.post('/environments', { name, type: 'development' });
      const made = await world.post('/secrets/api/keys', { name, type: 'private_key', environment_id });
      const key = made.api_key as string;
      const ask = (method: string, path: string, body?: object) =>
        world.api.request(method as 'POST', path as '/plans', { key, ...(body ? { body } : {}) });
      const { id } = (await ask('POST', '/test-clocks', { frozen_time: START })).body;
      const remove = async () => {
        await dispatch(world.api);
        return ask('DELETE', `/test-clocks/${id}`);
      };
      return { ask, remove };
    };

    it('goes with a catalogue alone: what it sells is sold now', async () => {
      const { ask, remove } = await place('Catalogue');
      const { id: entity_id } = (await ask('POST', '/plans', { name: 'Pro' })).body;
      const sold_by = { entity_type: 'PLAN', entity_id, currency: 'usd', billing_cadence: 'RECURRING' };
      const terms = { ...sold_by, billing_period: 'MONTHLY', ...fixed('10') };
      const sold = (await ask('POST', '/prices', terms)).body as { id: string; start_date?: string };
      expect(sold.start_date).to.equal(START);
      const later = '2041-01-01T00:00:00Z';
      const { id: planned } = (await ask('POST', '/prices', { ...terms, start_date: later })).body;
      expect((await remove()).status).to.equal(200);
      const start = async (id: string) =>
        ((await ask('GET', `/prices/${id}`)).body as { start_date?: string }).start_date;
      expect([await start(sold.id), await start(planned)]).to.deep.equal(['2032-01-01T00:00:00Z', later]);
      const { id: customer_id } = (await ask('POST', '/customers', { external_id: 'a', name: 'A' })).body;
      const wanted = { customer_id, plan_id: entity_id, currency: 'usd', billing_period: 'MONTHLY' };
      expect((await ask('POST', '/subscriptions', wanted)).status).to.equal(201);
      expect((await remove()).status, 'twice').to.equal(404);
    });

    it('leaves a price that had ended by the clock ended, beside the one that replaced it', async () => {
      const { ask, remove } = await place('Replaced');
      const { id: entity_id } = (await ask('POST', '/plans', { name: 'Pro' })).body;
      const sold_by = { entity_type: 'PLAN', entity_id, currency: 'usd', billing_cadence: 'RECURRING' };
      const terms = { ...sold_by, billing_period: 'MONTHLY', ...fixed('10') };
      const span = async (id: string) => {
        const { start_date, end_date } = (await ask('GET', `/prices/${id}`)).body as {
          start_date?: string;
          end_date?: string;
        };
        return [start_date, end_date];
      };
      const end_date = '2036-01-01T00:00:00Z';
      const { id: old } = (await ask('POST', '/prices', { ...terms, start_date: '2030-01-01T00:00:00Z', end_date }))
        .body;
      const { id: brief } = (await ask('POST', '/prices', { ...terms, start_date: '2035-01-01T00:00:00Z', end_date }))
        .body;
      const { id: sold } = (await ask('POST', '/prices', { ...terms, start_date: end_date })).body;
      expect((await remove()).status).to.equal(200);
      const now = '2032-01-01T00:00:00Z';
      expect(await span(old)).to.deep.equal(['2030-01-01T00:00:00Z', now]);
      expect(await span(brief)).to.deep.equal([now, now]);
      expect(await span(sold)).to.deep.equal([now, null]);
    });

    it('stays until connections to providers are archived, whose credentials were never tested', async () => {
      const api = await startTestApi({ now: '2033-01-01T00:00:00Z', config: { SECRETS_KEYS: 'k'.repeat(32) } });
      try {
        const { id } = (await api.request('POST', '/test-clocks', { body: { frozen_time: START } })).body;
        const credentials = { encrypted_secret_data: { stripe: { secret_key: 'sk_test_never_tested' } } };
        const body = { name: 'Stripe', provider_type: 'stripe', ...credentials };
        const { id: connection_id } = (await api.request('POST', '/connections', { body })).body;
        const refused = await api.request('DELETE', `/test-clocks/${id}`);
        const { code, details } = refused.body;
        expect([refused.status, code, details], refused.text).to.deep.equal([
          400,
          'invalid_operation',
          { connection_ids: [connection_id] },
        ]);
        await api.request('DELETE', `/connections/${connection_id}`);
        await dispatch(api);
        expect((await api.request('DELETE', `/test-clocks/${id}`)).status).to.equal(200);
      } finally {
        await api.stop();
      }
    });

    it('stays with events of the future', async () => {
      const { ask, remove } = await place('Events');
      await ask('POST', '/events', { event_name: 'calls', external_customer_id: 'nobody', properties: {} });
      const refused = await remove();
      expect(refused.body.message).to.include('the environment has later events');
    });
  });
});
