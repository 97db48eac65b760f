/** Of what is granted bit by bit it is told, once for each grant, that nothing is left, and which levels were reached (docs/rules/alerts.md, "Grants of entitlements"). */
import { expect } from 'chai';
import { checkAlerts } from '../../actions/alerts/check-alerts.ts';
import { checkGrants } from '../../actions/alerts/grant-alerts.ts';
import { lockAlerts } from '../../storage/models/alerts/alert-states.ts';
import { ALERT_TASK } from '../../storage/progress/alert-arrivals.ts';
import { expectGolden, withoutIds } from '../support/golden.ts';
import { until } from '../support/until.ts';
import { startWorld, usage, type World } from '../support/world.ts';

type Job = { payload: { customer_id: string } };

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

  const told = async () => {
    const { items } = await world.get('/webhooks/events?limit=1000&order=asc&sort=id');
    return items.filter(({ event_name }) => event_name === 'entitlement.grant.exhausted');
  };
  const log = async () => {
    const { items } = await world.post('/alerts/search', {
      entity_type: 'entitlement_grant',
      sort: 'id',
      order: 'asc',
    });
    return items.map(({ alert_status, alert_info }) => `${alert_status} ${alert_info.value_at_time}`);
  };
  const look = async () => {
    await world.waitForPipeline();
    const report = await checkAlerts(world.api.services, { now: world.now });
    expect(report.failed).to.deep.equal([]);
    return report.alerted;
  };

  it('each is told once, whoever has used it and however many look', async () => {
    world.at('2026-01-10T08:00:00Z');
    await world.use('acme', 'tokens', 99);
    expect(await look()).to.equal(0);
    await world.use('child', 'tokens', 5);
    await world.waitForPipeline();
    await Promise.all([look(), look()]);
    const [event, ...others] = await told();
    expect(others).to.deep.equal([]);
    expect(event!.payload).to.deep.include({ subscription_id: world.id('subscription acme'), usage_ratio: '1' });
    expect(event!.payload).to.deep.include({ alert_type: 'entitlement_grant_exhausted', alert_status: 'in_alarm' });
    expectGolden('webhooks/entitlement.grant.exhausted.json', withoutIds(event!.payload));
    expect(await log()).to.deep.equal(['in_alarm 1']);
    expect(await look()).to.equal(0);
    // The next one is another.
    world.at('2026-01-10T14:00:00Z');
    await world.use('acme', 'tokens', 100);
    expect(await look()).to.equal(1);
    const [, second] = await told();
    expect(second!.payload.entitlement_grant_id).not.to.equal(event!.payload.entitlement_grant_id);
  });

  it('what is given back is in the log, and told by no event', async () => {
    world.at('2026-01-10T15:00:00Z');
    await world.use('acme', 'tokens', -40);
    expect(await look()).to.equal(1);
    expect(await log()).to.deep.equal(['in_alarm 1', 'in_alarm 1', 'ok 0.6']);
    expect((await told()).length).to.equal(2);
  });

  describe('with levels', () => {
    const levels = (thresholds: Record<string, string>, alert_enabled = true) => ({
      alert_enabled,
      ...Object.fromEntries(
        ['critical', 'warning', 'info'].map((name) => [
          name,
          thresholds[name] ? { threshold: thresholds[name] } : null,
        ]),
      ),
    });
    const change = async (alert_settings: object | null) => {
      const { status, text } = await world.api.request('PUT', `/entitlements/${entitlement_id}`, {
        body: { alert_settings },
      });
      expect(status, text).to.equal(200);
    };
    let entitlement_id: string;
    const grantEvents = async () => {
      const { items } = await world.get('/webhooks/events?limit=1000&order=asc&sort=id');
      return items.filter(({ payload }) => payload.customer_id === customer_id && payload.entitlement_grant_id);
    };
    let customer_id: string;
    const seen = async () =>
      (await grantEvents()).map(
        ({ event_name, payload }) =>
          `${event_name.slice('entitlement.grant.'.length)} ${payload.alert_status} ${payload.usage_ratio}`,
      );

    before(async () => {
      world.at('2026-01-12T08:00:00Z');
      await world.plan('Levels', [usage('tokens', '1')]);
      const { feature_id } = (await world.get('/entitlements')).items[0]!;
      const terms = {
        grant_measure: 'quantity',
        grant_quota: '100',
        grant_duration_value: 1,
        grant_duration_unit: 'day',
      };
      const made = await world.post('/entitlements', {
        plan_id: world.id('plan Levels'),
        feature_id,
        feature_type: 'metered',
        ...terms,
        alert_settings: levels({ critical: '1', warning: '0.8', info: '0.5' }),
      });
      entitlement_id = made.id;
      await world.subscribe('levels', 'Levels');
      ({ customer_id } = await world.subscription('levels'));
    });

    it('each is told where it is reached, once, however many look', async () => {
      await world.use('levels', 'tokens', 49);
      expect(await look()).to.equal(0);
      await world.use('levels', 'tokens', 1);
      await world.waitForPipeline();
      await Promise.all([look(), look()]);
      expect(await seen()).to.deep.equal(['threshold_reached info 0.5']);
      await world.use('levels', 'tokens', 30);
      expect(await look()).to.equal(1);
      await world.use('levels', 'tokens', 10);
      expect(await look()).to.equal(0);
      await world.use('levels', 'tokens', 10);
      // The level at the quota, and that nothing is left, are two alerts.
      expect(await look()).to.equal(2);
      await world.use('levels', 'tokens', -60);
      expect(await look()).to.equal(2);
      expect(await seen()).to.deep.equal([
        'threshold_reached info 0.5',
        'threshold_reached warning 0.8',
        'threshold_reached in_alarm 1',
        'exhausted in_alarm 1',
        'threshold_recovered ok 0.4',
      ]);
      const { items } = await world.post('/alerts/search', {
        alert_type: 'entitlement_grant_threshold',
        sort: 'id',
        order: 'asc',
      });
      const said = items.map(({ alert_status, alert_info }) => `${alert_status} ${alert_info.value_at_time}`);
      expect(said).to.deep.equal(['info 0.5', 'warning 0.8', 'in_alarm 1', 'ok 0.4']);
      expect(items[0]!.alert_info.alert_settings!.warning).to.deep.equal({ threshold: '0.8', condition: 'above' });
      const events = await grantEvents();
      expectGolden('webhooks/entitlement.grant.threshold_reached.json', withoutIds(events[1]!.payload));
      expectGolden('webhooks/entitlement.grant.threshold_recovered.json', withoutIds(events[4]!.payload));
    });

    it('other levels are looked at, too, and who is watched anew begins with ok', async () => {
      const before = (await seen()).length;
      await change(levels({ critical: '0.4' }));
      expect(await look()).to.equal(1);
      await change(levels({ critical: '0.4' }, false));
      expect(await look()).to.equal(0);
      await change(levels({ critical: '0.4' }));
      expect(await look()).to.equal(1);
      await change(null);
      await world.use('levels', 'tokens', 1);
      expect(await look()).to.equal(0);
      await change(levels({ critical: '0.4' }));
      expect(await look()).to.equal(1);
      const again = [
        'threshold_reached in_alarm 0.4',
        'threshold_reached in_alarm 0.4',
        'threshold_reached in_alarm 0.41',
      ];
      expect((await seen()).slice(before)).to.deep.equal(again);
    });

    it('a look that waited for another goes by the levels as they are then', async () => {
      const before = (await seen()).length;
      const { services, scope } = world.api;
      let looked: Promise<number> | undefined;
      await services.postgres.transaction(async (transaction) => {
        await lockAlerts(transaction, `grants ${world.id('subscription levels')}`);
        looked = checkGrants(services, scope, { customer_id, now: world.now });
        await until('it waits', async () => {
          const waiting = `select 1 from pg_stat_activity where wait_event = 'advisory' and datname = current_database()`;
          return (await services.postgres.raw(waiting)).rows.length > 0;
        });
        await change(levels({ critical: '0.9' }));
      });
      expect(await looked).to.equal(1);
      expect((await seen()).slice(before)).to.deep.equal(['threshold_recovered ok 0.41']);
    });

    it('of a subscription, what has been reached already is looked at without usage', async () => {
      const { postgres } = world.api.services;
      const { id: subscription_id } = await world.subscription('plain');
      const { feature_id, ...plan } = await world.get(`/entitlements/${entitlement_id}`);
      const { grant_measure, grant_quota, grant_duration_value, grant_duration_unit } = plan;
      const own = await world.post('/entitlements', {
        entity_type: 'SUBSCRIPTION',
        entity_id: subscription_id,
        feature_id,
        feature_type: 'metered',
        grant_measure,
        grant_quota,
        grant_duration_value,
        grant_duration_unit,
      });
      await postgres.raw('delete from graphile_worker._private_jobs');
      const body = { alert_settings: levels({ critical: '0.4' }) };
      expect((await world.api.request('PUT', `/entitlements/${own.id}`, { body })).status).to.equal(200);
      const { rows } = await postgres.raw(
        'select payload from graphile_worker._private_jobs j join graphile_worker._private_tasks t on t.id = j.task_id where t.identifier = ?',
        [ALERT_TASK],
      );
      const { customer_id: plain } = await world.subscription('plain');
      expect(rows.map(({ payload }: Job) => payload.customer_id)).to.deep.equal([plain]);
    });
  });

  it('usage that lands asks for a look at who has the grants, and at nobody else', async () => {
    const { postgres } = world.api.services;
    const asked = async () => {
      const { rows } = await postgres.raw(
        `select payload from graphile_worker._private_jobs j join graphile_worker._private_tasks t on t.id = j.task_id where t.identifier = ?`,
        [ALERT_TASK],
      );
      return rows.map(({ payload }: Job) => payload.customer_id);
    };
    const { customer_id } = await world.subscription('acme');
    await postgres.raw(`delete from graphile_worker._private_jobs`);
    await world.use('plain', 'tokens', 1);
    await world.use('child', 'tokens', 1);
    await world.waitForPipeline();
    await until('a look is asked for', async () => (await asked()).length > 0);
    expect(await asked()).to.deep.equal([customer_id]);
  });
});
