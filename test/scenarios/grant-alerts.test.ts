/** Of what is granted bit by bit it is told, once for each grant, that nothing is left (docs/rules/alerts.md, "Grants of entitlements"). */
import { expect } from 'chai';
import { checkAlerts } from '../../actions/alerts/check-alerts.ts';
import { ALERT_TASK } from '../../storage/progress/alert-arrivals.ts';
import { expectGolden, withoutIds } from '../support/golden.ts';
import { until } from '../support/until.ts';
import { startWorld, usage, type World } from '../support/world.ts';

// Answers of every shape.
type Answer = any;

describe('scenario: alerts of grants', () => {
  let world: World;

  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    const { id: meter_id } = await world.meter('tokens');
    await world.plan('Pro', [usage('tokens', '1')]);
    await world.plan('Plain', [usage('tokens', '1')]);
    const { id: feature_id } = await world.post('/features', { name: 'Tokens', type: 'metered', meter_id });
    const grant = { plan_id: world.id('plan Pro'), feature_id, feature_type: 'metered' };
    const terms = {
      grant_measure: 'quantity',
      grant_quota: '100',
      grant_duration_value: 5,
      grant_duration_unit: 'hour',
    };
    await world.post('/entitlements', { ...grant, ...terms });
    for (const external_id of ['child']) await world.post('/customers', { external_id });
    const inheritance = { external_customer_ids_to_inherit_subscription: ['child'] };
    await world.subscribe('acme', 'Pro', { inheritance });
    await world.subscribe('plain', 'Plain');
  });
  after(() => world.stop());

  const told = async (): Promise<Answer[]> => {
    const { items } = await world.get('/webhooks/events?limit=1000&order=asc&sort=id');
    return items.filter(({ event_name }: Answer) => event_name === 'entitlement.grant.exhausted');
  };
  const log = async () => {
    const { items } = await world.post('/alerts/search', {
      entity_type: 'entitlement_grant',
      sort: 'id',
      order: 'asc',
    });
    return items.map(({ alert_status, alert_info }: Answer) => `${alert_status} ${alert_info.value_at_time}`);
  };
  const look = async () => {
    await world.settle();
    const report = await checkAlerts(world.api.services, { now: world.now });
    expect(report.failed).to.deep.equal([]);
    return report.alerted;
  };

  it('each is told once, whoever has used it and however many look', async () => {
    world.at('2026-01-10T08:00:00Z');
    await world.use('acme', 'tokens', 99);
    expect(await look()).to.equal(0);
    await world.use('child', 'tokens', 5);
    await world.settle();
    await Promise.all([look(), look()]);
    const [event, ...others] = await told();
    expect(others).to.deep.equal([]);
    expect(event.payload).to.deep.include({ subscription_id: world.id('subscription acme'), usage_ratio: '1' });
    expect(event.payload).to.deep.include({ alert_type: 'entitlement_grant_exhausted', alert_status: 'in_alarm' });
    expectGolden('webhooks/entitlement.grant.exhausted.json', withoutIds(event.payload));
    expect(await log()).to.deep.equal(['in_alarm 1']);
    expect(await look()).to.equal(0);
    // The next one is another.
    world.at('2026-01-10T14:00:00Z');
    await world.use('acme', 'tokens', 100);
    expect(await look()).to.equal(1);
    const [, second] = await told();
    expect(second.payload.entitlement_grant_id).not.to.equal(event.payload.entitlement_grant_id);
  });

  it('what is given back is in the log, and told by no event', async () => {
    world.at('2026-01-10T15:00:00Z');
    await world.use('acme', 'tokens', -40);
    expect(await look()).to.equal(1);
    expect(await log()).to.deep.equal(['in_alarm 1', 'in_alarm 1', 'ok 0.6']);
    expect((await told()).length).to.equal(2);
  });

  it('usage that lands asks for a look at who has the grants, and at nobody else', async () => {
    const { postgres } = world.api.services;
    const asked = async () => {
      const { rows } = await postgres.raw(
        `select payload from graphile_worker._private_jobs j join graphile_worker._private_tasks t on t.id = j.task_id where t.identifier = ?`,
        [ALERT_TASK],
      );
      return rows.map(({ payload }: Answer) => payload.customer_id);
    };
    const { customer_id } = await world.subscription('acme');
    await postgres.raw(`delete from graphile_worker._private_jobs`);
    await world.use('plain', 'tokens', 1);
    await world.use('child', 'tokens', 1);
    await world.settle();
    await until('a look is asked for', async () => (await asked()).length > 0);
    expect(await asked()).to.deep.equal([customer_id]);
  });
});
