/** Requests that are on their way when the clock of their environment is advanced (docs/rules/clock.md, "Advancing"). */
import { expect } from 'chai';
import { waitBeforeRequest } from '../../actions/metering/events/wait-for-log.ts';
import { runAs } from '../../storage/foundation/request-context.ts';
import { CustomerModel } from '../../storage/models/catalog/customer.ts';
import { loadClock } from '../../storage/models/schedule/environment-clock.ts';
import { until } from '../support/until.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

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
    const clock = await loadClock(services.postgres, scope);
    const { customer_id } = await world.subscription('acme');
    const writing = await services.postgres.transaction();
    const customer = await CustomerModel.fetch(scope, customer_id, { database: writing });
    const caller = { scope, user_id: 'user_1', secret_id: null, request_id: null, clock };
    const by = { by: { user_id: 'user_1', now: clock!.now }, database: writing };
    await runAs(caller, () => CustomerModel.change(customer, { name: 'Acme' }, by));
    const advancing = world.requestAdvance('2031-01-03');
    await someoneWaits();
    expect((await world.testClock()).test_clock_status).to.equal('ready');
    await writing.commit();
    const { workflow_id } = await advancing;
    expect(await world.work(workflow_id!, AbortSignal.timeout(60_000))).to.equal('completed');
  });

  describe('usage that was accepted just before', () => {
    before(async () => {
      await world.meter('calls');
      await world.plan('Calls', [usage('calls', '1', { display_name: 'calls' })]);
      await world.subscribe('bravo', 'Calls');
      await world.advance('2031-01-05');
    });

    it('is on the last invoice of a cancellation that follows at once', async () => {
      await world.pausePipeline();
      await world.use('bravo', 'calls', 90, { at: '2031-01-04T12:00:00Z' });
      const cancelling = world.cancel('bravo');
      await world.resumePipeline();
      await cancelling;
      expect((await world.statements('bravo')).at(-1)).to.equal(
        'PRORATION DRAFT 2031-01-03..2031-01-05 = 90\n  calls 2031-01-03..2031-01-05: 90 = 90',
      );
    });

    it('is not waited for without an end', async () => {
      await world.pausePipeline();
      await world.use('bravo', 'calls', 1);
      const { services, scope } = world.api;
      const waiting = waitBeforeRequest(services, scope, { timeout_ms: 50 }).catch((error) => error);
      expect(await waiting).to.include({ code: 'service_unavailable', http_status_code: 503 });
      await world.resumePipeline();
    });
  });
});
