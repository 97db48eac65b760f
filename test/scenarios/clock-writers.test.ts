/** Requests that are on their way when the clock of their environment is advanced (docs/rules/clock.md, "Advancing"). */
import { expect } from 'chai';
import { onBehalfOf } from '../../storage/caller.ts';
import { clockOf } from '../../storage/environment-clock.ts';
import { CustomerModel } from '../../storage/models/customer.ts';
import { until } from '../support/until.ts';
import { fixed, startWorld, type World } from '../support/world.ts';

describe('scenario: writers beside an advance', () => {
  let world: World;

  before(async () => {
    world = await startWorld({ now: '2031-01-01T00:00:00Z', test_clock: true });
    await world.plan('Flat', [fixed('10', { invoice_cadence: 'ADVANCE' })]);
    await world.subscribe('acme', 'Flat');
  });
  after(() => world.stop());

  const someoneWaits = () =>
    until('somebody waits for a lock', async () => {
      const waiting = world.api.services.postgres('pg_stat_activity').where({ wait_event_type: 'Lock' });
      return (await waiting.whereRaw('datname = current_database()')).length > 0;
    });

  it('what had not written yet is refused: its instant is gone', async () => {
    const id = world.id('subscription acme');
    const { postgres } = world.api.services;
    const holding = await postgres.transaction();
    await holding('subscriptions').where({ id }).forUpdate();
    const body = { cancellation_type: 'immediate' };
    const cancelling = world.api.request('POST', `/subscriptions/${id}/cancel`, { body });
    await someoneWaits();
    await world.advance('2031-01-02');
    await holding.commit();
    const refused = await cancelling;
    expect([refused.status, refused.body.code]).to.deep.equal([409, 'version_conflict']);
    expect((await world.subscription('acme')).subscription_status).to.equal('active');
    await world.cancel('acme');
    expect((await world.subscription('acme')).cancelled_at).to.equal('2031-01-02T00:00:00Z');
  });

  it('what has written comes before the advance', async () => {
    const { services, scope } = world.api;
    const clock = await clockOf(services.postgres, scope);
    const { customer_id } = await world.subscription('acme');
    const writing = await services.postgres.transaction();
    const customer = await CustomerModel.fetch(scope, customer_id, { database: writing });
    const caller = { scope, user_id: 'user_1', secret_id: null, request_id: null, clock };
    const by = { by: { user_id: 'user_1', now: clock!.now }, database: writing };
    await onBehalfOf(caller, () => CustomerModel.change(customer, { name: 'Acme' }, by));
    const advancing = world.askToAdvance('2031-01-03');
    await someoneWaits();
    expect((await world.testClock()).test_clock_status).to.equal('ready');
    await writing.commit();
    const { workflow_id } = await advancing;
    expect(await world.work(workflow_id, AbortSignal.timeout(60_000))).to.equal('completed');
  });
});
