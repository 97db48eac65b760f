/** Alerts on what is spent: told once for each change of state, when usage lands (docs/rules/alerts.md). */
import { expect } from 'chai';
import { checkAlerts } from '../../actions/alerts/check-alerts.ts';
import { createWork } from '../../scheduler/main.ts';
import { ALERT_TASK } from '../../storage/progress/alert-arrivals.ts';
import { above, alertLog, listEvents } from '../support/alerts.ts';
import type { AlertSetting, Group, Subscription, SubscriptionLine } from '../support/answers.ts';
import { expectGolden, withoutIds } from '../support/golden.ts';
import { until } from '../support/until.ts';
import { startWorld, usage, type World } from '../support/world.ts';

const NAMES = ['spend', 'line_item_spend', 'group_spend'].flatMap((kind) =>
  ['reached', 'recovered'].map((how) => `subscription.${kind}.threshold_${how}`),
);

describe('scenario: alerts on spending', () => {
  let world: World;
  let subscription: Subscription;
  let line: SubscriptionLine;
  let group: Group;
  const watched: Record<string, AlertSetting> = {};

  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    await world.meter('storage');
    group = await world.post('/groups', { name: 'Disk', entity_type: 'price', lookup_key: 'disk' });
    await world.plan('Two', [
      usage('calls', '1', { display_name: 'calls' }),
      usage('storage', '2', { display_name: 'storage', group_id: group.id }),
    ]);
    await world.on('2026-01-01');
    subscription = await world.subscribe('acme', 'Two');
    line = subscription.line_items.find(({ display_name }) => display_name === 'calls')!;
  });
  after(() => world.stop());

  async function watch(entity_type: string, entity_id: string, config: object): Promise<void> {
    const parent =
      entity_type === 'subscription' ? {} : { parent_entity_type: 'subscription', parent_entity_id: subscription.id };
    watched[entity_type] = await world.post('/alerts/setting', { entity_type, entity_id, ...parent, config });
  }

  /** What the job does, twice at once, as two schedulers do. */
  async function look(date: string): Promise<number> {
    world.at(date);
    await world.waitForPipeline();
    const both = await Promise.all([1, 2].map(() => checkAlerts(world.api.services, { now: world.now })));
    for (const { failed } of both) if (failed.length > 0) throw failed[0]!.error;
    return both.reduce((sum, { alerted }) => sum + alerted, 0);
  }

  it('nothing is told of what has not been reached', async () => {
    await watch('subscription', subscription.id, above({ critical: '100', warning: '50', info: '10' }));
    await watch('subscription_line_item', line.id, above({ critical: '40' }));
    await watch('group', group.id, above({ critical: '30', info: '20' }));
    expect(await look('2026-01-02')).to.equal(0);
    await world.use('acme', 'calls', '9.99');
    expect(await look('2026-01-03')).to.equal(0);
  });

  it('each level is told once when it is reached, by two who look at once', async () => {
    await world.use('acme', 'calls', '0.01');
    expect(await look('2026-01-04')).to.equal(1);
    expect(await look('2026-01-04')).to.equal(0);
    await world.use('acme', 'storage', 10);
    await world.use('acme', 'calls', 30);
    expect(await look('2026-01-05')).to.equal(3);
    expect(await alertLog(world, subscription.id)).to.deep.equal([
      'subscription_spend info 10',
      'subscription_spend warning 60',
    ]);
    expect(await alertLog(world, line.id)).to.deep.equal(['subscription_line_item_spend in_alarm 40']);
    expect(await alertLog(world, group.id)).to.deep.equal(['subscription_group_spend info 20']);
    const told = await listEvents(world, 'subscription.');
    const spend = told.filter(({ event_type }) => (event_type as string).includes('spend'));
    expect(spend.map(({ event_type }) => event_type)).to.have.members([
      'subscription.spend.threshold_reached',
      'subscription.spend.threshold_reached',
      'subscription.line_item_spend.threshold_reached',
      'subscription.group_spend.threshold_reached',
    ]);
    const ofLine = spend.find(({ event_type }) => event_type === 'subscription.line_item_spend.threshold_reached');
    expect(ofLine).to.deep.include({
      subscription_line_item_id: line.id,
      group_id: null,
      alert_type: 'subscription_line_item_spend',
      alert_status: 'in_alarm',
      current_spend: '40',
      threshold: '40',
    });
    expect((ofLine!.subscription as Subscription).id).to.equal(subscription.id);
  });

  it('usage that lands asks for the look by itself, once for a customer', async () => {
    const { postgres } = world.api.services;
    const asked = () => postgres('graphile_worker.jobs').where('key', 'like', 'alerts:%').select('key');
    // Whoever sets an alert asks for a look, too: that one is done, or this would wait for nothing.
    await postgres.raw('delete from graphile_worker._private_jobs');
    await world.use('acme', 'storage', 5);
    await world.use('acme', 'storage', 5);
    await until('it is asked for', async () => (await asked()).length > 0);
    await world.waitForPipeline();
    expect(await asked()).to.have.length(1);
    const work = createWork(world.api.services, () => world.now).find(({ name }) => name === ALERT_TASK)!;
    const customer_id = subscription.customer_id;
    const payload = { ...world.api.scope, customer_id };
    await work.run(payload, { attempt: 1, is_last: true, signal: AbortSignal.timeout(60_000) } as never);
    expect(await alertLog(world, group.id)).to.deep.equal([
      'subscription_group_spend info 20',
      'subscription_group_spend in_alarm 40',
    ]);
    expect((await alertLog(world, subscription.id)).length).to.equal(2);
  });

  it('the next period begins with ok, and is told again', async () => {
    await world.on('2026-02-01');
    expect(await look('2026-02-01T01:00:00Z')).to.equal(3);
    expect((await alertLog(world, subscription.id)).at(-1)).to.equal('subscription_spend ok 0');
    const recovered = await listEvents(world, 'subscription.spend.threshold_recovered');
    expect(recovered).to.have.length(1);
    expect(recovered[0]).to.deep.include({ alert_status: 'ok', current_spend: '0', threshold: null });
    await world.use('acme', 'calls', 100);
    expect(await look('2026-02-02')).to.equal(2);
    expect((await alertLog(world, subscription.id)).at(-1)).to.equal('subscription_spend in_alarm 100');
  });

  it('other levels are compared with what is spent already; what is switched off or archived is not', async () => {
    const change = (entity_type: string, config: object) =>
      world.api.request('PUT', `/alerts/setting/${watched[entity_type]!.id}`, { body: { config } });
    expect((await change('subscription', above({ critical: '1000', warning: '100' }))).status).to.equal(200);
    expect(await look('2026-02-03')).to.equal(1);
    expect((await alertLog(world, subscription.id)).at(-1)).to.equal('subscription_spend warning 100');
    await change('subscription', { ...above({ critical: '100' }), alert_enabled: false });
    expect(
      (await world.api.request('DELETE', `/alerts/setting/${watched.subscription_line_item!.id}`)).status,
    ).to.equal(204);
    expect(await look('2026-02-04')).to.equal(0);
  });

  it('an alert that is set twice, on nothing, or on what does not belong together is refused', async () => {
    const send = (body: object) => world.api.request('POST', '/alerts/setting', { body });
    const config = above({ critical: '1' });
    const twice = { entity_type: 'subscription', entity_id: subscription.id, config };
    expect((await send(twice)).status).to.equal(409);
    expect((await send({ ...twice, entity_id: 'subs_none' })).status).to.equal(404);
    const parent = { parent_entity_type: 'subscription', parent_entity_id: subscription.id };
    const other = await world.subscribe('other', 'Two');
    const stranger = { entity_type: 'subscription_line_item', entity_id: other.line_items[0]!.id, ...parent, config };
    const refused = await send(stranger);
    expect([refused.status, refused.body.details?.field]).to.deep.equal([400, 'entity_id']);
    expect((await send({ entity_type: 'group', entity_id: 'group_none', ...parent, config })).status).to.equal(404);
    await world.post('/customers', { external_id: 'heir', name: 'heir' });
    const joins = { parent_subscription_id: other.id, external_customer_id: 'heir', plan_id: world.id('plan Two') };
    const heir = await world.post('/subscriptions', { ...joins, currency: 'usd', billing_period: 'MONTHLY' });
    const never = await send({ ...twice, entity_id: heir.id });
    expect([never.status, never.body.details?.field], 'what it uses is its parent’s').to.deep.equal([400, 'entity_id']);
    const below = { critical: { threshold: '1', condition: 'below' }, alert_enabled: true };
    const wrong = await send({ ...twice, entity_id: other.id, config: below });
    expect([wrong.status, wrong.body.details?.field]).to.deep.equal([400, 'config.critical.condition']);
    const { items } = await world.post('/alerts/setting/search', { enabled: true });
    expect(items.map(({ entity_type }) => entity_type)).to.deep.equal(['group']);
  });

  it('an alert on a group ends with it, and nothing is told of that', async () => {
    await world.use('acme', 'storage', 10);
    expect(await look('2026-02-05')).to.equal(1);
    const told = await alertLog(world, group.id);
    expect(told.at(-1)).to.equal('subscription_group_spend info 20');
    expect((await world.api.request('DELETE', `/groups/${group.id}`)).status).to.equal(204);
    expect(await look('2026-02-06')).to.equal(0);
    expect(await alertLog(world, group.id)).to.deep.equal(told);
    const { id } = watched.group!;
    expect((await world.get(`/alerts/setting/${id}`)).status).to.equal('archived');
  });

  it('the log is answered with its customer where that is asked for, and narrowed', async () => {
    const { items } = await world.post('/alerts/search', { alert_status: 'in_alarm', expand: 'customer' });
    expect(items.map(({ customer }) => customer!.external_id)).to.deep.equal(['acme', 'acme', 'acme', 'acme']);
    expect((await world.post('/alerts/search', { customer_id: 'cust_none' })).items).to.deep.equal([]);
  });

  for (const name of NAMES)
    it(`${name} has a body that stays`, async () => {
      const [body] = await listEvents(world, name);
      expectGolden(`webhooks/${name}.json`, withoutIds(body));
    });
});
