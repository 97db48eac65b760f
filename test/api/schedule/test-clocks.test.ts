/** An environment with a clock of its own: what it asks of who makes one, and what goes by it. */
import { expect } from 'chai';
import { tryAdvance } from '../../../actions/schedule/test-clocks/advance-test-clock.ts';
import { createTestClock } from '../../../actions/schedule/test-clocks/create-test-clock.ts';
import { connectPostgres, readUrl } from '../../../storage/postgres/pool/postgres.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { until } from '../../support/until.ts';

const START = '2026-01-01T00:00:00Z';

describe('test clocks', () => {
  let api: TestApi;
  let clock: { id: string };

  before(async () => {
    api = await startTestApi({ now: '2026-03-15T12:00:00Z' });
    const { status, body, text } = await api.request('POST', '/test-clocks', {
      body: { frozen_time: START, name: 'A year' },
    });
    expect(status, text).to.equal(201);
    clock = body;
  });
  after(() => api.stop());

  const advance = (frozen_time: string, { id = clock.id, key = api.key } = {}) =>
    api.request('POST', `/test-clocks/${id}/advance`, { body: { frozen_time }, key });
  const read = async () => (await api.request('GET', `/test-clocks/${clock.id}`)).body;
  const run = (workflow_id: string, signal = AbortSignal.timeout(60_000)) => {
    const { services, scope } = api;
    const how = { attempt: 1, is_last: false, clock: services.clock, signal, timeout_ms: 60_000 };
    return tryAdvance(services, { ...scope, workflow_id }, { ...how, settings: services.config });
  };
  const made = async <Path extends string>(path: Path, body: object) => {
    const answer = await api.request('POST', path, { body });
    expect(answer.status, answer.text).to.be.oneOf([200, 201]);
    return answer.body;
  };

  it('201: it stands where it was put, and what is written then is of that instant', async () => {
    expect(clock).to.deep.include({
      name: 'A year',
      test_clock_status: 'ready',
      frozen_time: START,
      target_time: null,
      failure: null,
      progress: { instants: 0, done: {} },
      created_at: '2026-03-15T12:00:00Z',
    });
    expect((await made('/plans', { name: 'Pro' })).created_at).to.equal(START);
    const key = await made('/secrets/api/keys', { name: 'k', type: 'private_key' });
    expect(key.secret.created_at, 'keys are of the machine').to.equal('2026-03-15T12:00:00Z');
    const { body } = await api.request('GET', '/test-clocks');
    expect(body.items).to.deep.equal([await read()]);
  });

  it('202: it advances in a workflow, and stands at the target then', async () => {
    const asked = await advance('2026-02-01T00:00:00Z');
    expect(asked.status, asked.text).to.equal(202);
    const target_time = '2026-02-01T00:00:00Z';
    expect(asked.body).to.deep.include({ test_clock_status: 'advancing', frozen_time: START, target_time });

    const write = await api.request('POST', '/plans', { body: { name: 'Meanwhile' } });
    expect([write.status, write.body.code, write.headers.get('retry-after')]).to.deep.equal([
      409,
      'version_conflict',
      '1',
    ]);
    expect((await api.request('GET', '/plans')).status, 'reads go on').to.equal(200);
    expect((await advance('2026-03-01T00:00:00Z')).status, 'one advance at a time').to.equal(400);

    expect(await run(asked.body.workflow_id!)).to.equal('completed');
    expect(await read()).to.deep.include({ test_clock_status: 'ready', frozen_time: target_time, target_time: null });
    const { workflow_id, run_id } = asked.body;
    const { body: summary } = await api.request('GET', `/workflows/${workflow_id}/${run_id}/summary`);
    expect(summary).to.deep.include({
      status: 'Completed',
      result: { is_stopped: false, frozen_time: target_time, instants: 0, done: {} },
    });
  });

  it('200: it stops where it is, and its workflow ends', async () => {
    const { frozen_time } = await read();
    const asked = await advance('2027-01-01T00:00:00Z');
    const stopped = await api.request('POST', `/test-clocks/${clock.id}/stop`);
    expect([stopped.status, stopped.body.test_clock_status]).to.deep.equal([200, 'ready']);
    expect(await run(asked.body.workflow_id!)).to.equal('completed');
    expect(await read()).to.deep.include({ test_clock_status: 'ready', frozen_time, target_time: null });
    expect((await api.request('POST', `/test-clocks/${clock.id}/stop`)).status, 'again').to.equal(200);
  });

  for (const [what, frozen_time, field] of [
    ['back', '2025-12-31T00:00:00Z', 'frozen_time'],
    ['to no instant', 'tomorrow', 'frozen_time'],
    ['beyond all calendars', '2201-01-01T00:00:00Z', 'frozen_time'],
  ] as const)
    it(`400: ${what}`, async () => {
      const { status, body } = await advance(frozen_time);
      expect([status, body.details!.field]).to.deep.equal([400, field]);
    });

  it('400: a production environment has none, nor one with subscriptions or invoices; 409: a second one', async () => {
    const other = await api.otherTenant();
    const refused = await api.request('POST', '/test-clocks', { body: { frozen_time: START }, key: other.key });
    expect([refused.status, refused.body.details]).to.deep.equal([400, { field: 'environment_id' }]);

    const { id } = await made('/environments', { name: 'Used', type: 'development' });
    const key = (await made('/secrets/api/keys', { name: 'k', type: 'private_key', environment_id: id })).api_key;
    const { body: customer } = await api.request('POST', '/customers', { body: { external_id: 'a', name: 'A' }, key });
    const amounts = { amount_due: '1', subtotal: '1', total: '1' };
    const invoice = {
      customer_id: customer.id,
      currency: 'usd',
      ...amounts,
      line_items: [{ display_name: 'x', quantity: '1', amount: '1' }],
    };
    expect((await api.request('POST', '/invoices', { body: invoice, key })).status).to.equal(201);
    const used = await api.request('POST', '/test-clocks', { body: { frozen_time: START }, key });
    expect([used.status, used.body.code]).to.deep.equal([400, 'invalid_operation']);

    const second = await api.request('POST', '/test-clocks', { body: { frozen_time: START } });
    expect([second.status, second.body.code]).to.deep.equal([409, 'already_exists']);
  });

  it('sells from its beginning on what was sold when it was made, and waits for what was asked for before', async () => {
    const { id } = await made('/environments', { name: 'Catalogue first', type: 'development' });
    const key = (await made('/secrets/api/keys', { name: 'k', type: 'private_key', environment_id: id })).api_key;
    const inThere = async <Path extends string>(path: Path, body: object = {}) =>
      (await api.request('POST', path, { body, key })).body;
    const { id: entity_id } = await inThere('/plans', { name: 'Pro' });
    const terms = { type: 'FIXED', billing_model: 'FLAT_FEE', billing_period: 'MONTHLY', invoice_cadence: 'ADVANCE' };
    const price = { ...terms, entity_type: 'PLAN', entity_id, currency: 'usd', amount: '10' };
    const sold = await inThere('/prices', price);
    const later = await inThere('/prices', { ...price, start_date: '2027-01-01T00:00:00Z' });
    const own = await inThere('/test-clocks', { frozen_time: START });
    const starts = async (price_id: string) =>
      (await api.request('GET', `/prices/${price_id}`, { key })).body.start_date;
    expect([await starts(sold.id), await starts(later.id)]).to.deep.equal([START, '2027-01-01T00:00:00Z']);

    const { workflow_id } = await inThere(`/plans/${entity_id}/sync/subscriptions`);
    const early = await advance('2026-02-01T00:00:00Z', { id: own.id, key });
    expect([early.status, early.body.code, early.body.details!.workflow_id]).to.deep.equal([
      409,
      'version_conflict',
      workflow_id,
    ]);
  });

  describe('no subscription begins beside it', () => {
    /** An environment with a plan and a customer, and what is asked there. */
    const place = async (name: string) => {
      const { id: environment_id } = await made('/environments', { name, type: 'development' });
      const key = (await made('/secrets/api/keys', { name: 'k', type: 'private_key', environment_id })).api_key;
      const ask = <Path extends string>(path: Path, body: object) => api.request('POST', path, { body, key });
      const { id: plan_id } = (await ask('/plans', { name: 'Pro' })).body;
      const terms = { type: 'FIXED', billing_model: 'FLAT_FEE', billing_period: 'MONTHLY', invoice_cadence: 'ADVANCE' };
      await ask('/prices', { ...terms, entity_type: 'PLAN', entity_id: plan_id, currency: 'usd', amount: '10' });
      const { id: customer_id } = (await ask('/customers', { external_id: 'a', name: 'A' })).body;
      const wanted = { customer_id, plan_id, currency: 'usd', billing_period: 'MONTHLY' };
      return { environment_id, customer_id, ask, subscribe: () => ask('/subscriptions', wanted) };
    };

    it('the clock is refused that waits for one', async () => {
      const { postgres } = api.services;
      const { customer_id, ask, subscribe } = await place('First');
      const waiting = (count: number) =>
        until('they wait for a lock', async () => {
          const found = postgres('pg_stat_activity').where({ wait_event_type: 'Lock' });
          return (await found.whereRaw('datname = current_database()')).length === count;
        });
      const holding = await postgres.transaction();
      await holding('customers').where({ id: customer_id }).forUpdate();
      const subscribing = subscribe();
      await waiting(1);
      const clocking = ask('/test-clocks', { frozen_time: START });
      await waiting(2);
      await holding.rollback();
      expect([(await subscribing).status, (await clocking).status]).to.deep.equal([201, 400]);
    });

    it('the subscription is refused that did not know of the clock of another process', async () => {
      const { environment_id, subscribe } = await place('Second');
      const elsewhere = connectPostgres(readUrl(api.services.postgres));
      const wanted = { frozen_time: START, name: null, metadata: null };
      const author = { user_id: '', now: api.services.clock() };
      await createTestClock({ postgres: elsewhere }, { ...api.scope, environment_id }, { wanted, author });
      await elsewhere.destroy();
      const late = await subscribe();
      expect([late.status, late.body.code], late.text).to.deep.equal([409, 'version_conflict']);
    });
  });

  it('401, 403, 404', async () => {
    expect((await api.request('GET', '/test-clocks', { key: null })).status).to.equal(401);
    const reader = await api.keyWithRoles(['all_reader']);
    expect((await advance('2028-01-01T00:00:00Z', { key: reader })).status).to.equal(403);
    const { key } = await api.otherTenant();
    expect((await api.request('GET', `/test-clocks/${clock.id}`, { key })).status).to.equal(404);
    expect((await advance('2028-01-01T00:00:00Z', { key })).status).to.equal(404);
  });
});
