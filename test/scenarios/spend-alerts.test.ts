/** Alerts on what is spent: told once for each change of state, when usage lands (docs/rules/alerts.md). */
import { expect } from 'chai';
import { checkAlerts } from '../../actions/alerts/check-alerts.ts';
import { checkSpend } from '../../actions/alerts/spend-alerts.ts';
import { workOf } from '../../scheduler/main.ts';
import { holdAlertsOf } from '../../storage/alert-states.ts';
import { ALERT_TASK } from '../../storage/progress/alert-arrivals.ts';
import { expectGolden, withoutIds } from '../support/golden.ts';
import { until } from '../support/until.ts';
import { startWorld, usage, type World } from '../support/world.ts';

// Answers of every shape.
type Answer = any;

const above = (levels: Record<string, string>) => ({
  alert_enabled: true,
  ...Object.fromEntries(Object.entries(levels).map(([level, threshold]) => [level, { threshold, condition: 'above' }])),
});

async function log(world: World, entity_id: string): Promise<string[]> {
  const { items } = (
    await world.api.request('POST', '/alerts/search', { body: { entity_id, sort: 'id', order: 'asc' } })
  ).body;
  return items.map(
    ({ alert_type, alert_status, alert_info }: Answer) =>
      `${alert_type} ${alert_status} ${Number(alert_info.value_at_time)}`,
  );
}

async function events(world: World, prefix: string): Promise<Answer[]> {
  const { items } = await world.get('/webhooks/events?limit=1000&order=asc&sort=id');
  return items.filter(({ event_name }: Answer) => event_name.startsWith(prefix)).map(({ payload }: Answer) => payload);
}

const NAMES = ['spend', 'line_item_spend', 'group_spend'].flatMap((kind) =>
  ['reached', 'recovered'].map((how) => `subscription.${kind}.threshold_${how}`),
);

describe('scenario: alerts on spending', () => {
  let world: World;
  let subscription: Answer;
  let line: Answer;
  let group: Answer;
  const watched: Record<string, Answer> = {};

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
    line = subscription.line_items.find(({ display_name }: Answer) => display_name === 'calls');
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
    await world.settle();
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
    expect(await log(world, subscription.id)).to.deep.equal([
      'subscription_spend info 10',
      'subscription_spend warning 60',
    ]);
    expect(await log(world, line.id)).to.deep.equal(['subscription_line_item_spend in_alarm 40']);
    expect(await log(world, group.id)).to.deep.equal(['subscription_group_spend info 20']);
    const told = await events(world, 'subscription.');
    const spend = told.filter(({ event_type }) => event_type.includes('spend'));
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
    expect(ofLine.subscription.id).to.equal(subscription.id);
  });

  it('usage that lands asks for the look by itself, once for a customer', async () => {
    const { postgres } = world.api.services;
    const asked = () => postgres('graphile_worker.jobs').where('key', 'like', 'alerts:%').select('key');
    // Whoever sets an alert asks for a look, too: that one is done, or this would wait for nothing.
    await postgres.raw('delete from graphile_worker._private_jobs');
    await world.use('acme', 'storage', 5);
    await world.use('acme', 'storage', 5);
    await until('it is asked for', async () => (await asked()).length > 0);
    await world.settle();
    expect(await asked()).to.have.length(1);
    const work = workOf(world.api.services, () => world.now).find(({ name }) => name === ALERT_TASK)!;
    const customer_id = subscription.customer_id;
    const payload = { ...world.api.scope, customer_id };
    await work.run(payload, { attempt: 1, is_last: true, signal: AbortSignal.timeout(60_000) } as never);
    expect(await log(world, group.id)).to.deep.equal([
      'subscription_group_spend info 20',
      'subscription_group_spend in_alarm 40',
    ]);
    expect((await log(world, subscription.id)).length).to.equal(2);
  });

  it('the next period begins with ok, and is told again', async () => {
    await world.on('2026-02-01');
    expect(await look('2026-02-01T01:00:00Z')).to.equal(3);
    expect((await log(world, subscription.id)).at(-1)).to.equal('subscription_spend ok 0');
    const recovered = await events(world, 'subscription.spend.threshold_recovered');
    expect(recovered).to.have.length(1);
    expect(recovered[0]).to.deep.include({ alert_status: 'ok', current_spend: '0', threshold: null });
    await world.use('acme', 'calls', 100);
    expect(await look('2026-02-02')).to.equal(2);
    expect((await log(world, subscription.id)).at(-1)).to.equal('subscription_spend in_alarm 100');
  });

  it('other levels are compared with what is spent already; what is switched off or archived is not', async () => {
    const change = (entity_type: string, config: object) =>
      world.api.request('PUT', `/alerts/setting/${watched[entity_type].id}`, { body: { config } });
    expect((await change('subscription', above({ critical: '1000', warning: '100' }))).status).to.equal(200);
    expect(await look('2026-02-03')).to.equal(1);
    expect((await log(world, subscription.id)).at(-1)).to.equal('subscription_spend warning 100');
    await change('subscription', { ...above({ critical: '100' }), alert_enabled: false });
    expect((await world.api.request('DELETE', `/alerts/setting/${watched.subscription_line_item.id}`)).status).to.equal(
      204,
    );
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
    const stranger = { entity_type: 'subscription_line_item', entity_id: other.line_items[0].id, ...parent, config };
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
    expect(items.map(({ entity_type }: Answer) => entity_type)).to.deep.equal(['group']);
  });

  it('an alert on a group ends with it, and nothing is told of that', async () => {
    await world.use('acme', 'storage', 10);
    expect(await look('2026-02-05')).to.equal(1);
    const told = await log(world, group.id);
    expect(told.at(-1)).to.equal('subscription_group_spend info 20');
    expect((await world.api.request('DELETE', `/groups/${group.id}`)).status).to.equal(204);
    expect(await look('2026-02-06')).to.equal(0);
    expect(await log(world, group.id)).to.deep.equal(told);
    const { id } = watched.group;
    expect((await world.get(`/alerts/setting/${id}`)).status).to.equal('archived');
  });

  it('the log is answered with its customer where that is asked for, and narrowed', async () => {
    const { items } = await world.post('/alerts/search', { alert_status: 'in_alarm', expand: 'customer' });
    expect(items.map(({ customer }: Answer) => customer.external_id)).to.deep.equal(['acme', 'acme', 'acme', 'acme']);
    expect((await world.post('/alerts/search', { customer_id: 'cust_none' })).items).to.deep.equal([]);
  });

  it('a look waits for the one before it, and tells what is spent by then', async () => {
    const { services, scope } = world.api;
    world.at('2026-02-05');
    const { id } = await world.subscribe('waits', 'Two');
    const config = above({ critical: '100', info: '10' });
    await world.post('/alerts/setting', { entity_type: 'subscription', entity_id: id, config });
    await world.use('waits', 'calls', 20);
    await world.settle();
    let hasEnded = false;
    const waiting = await services.postgres.transaction(async (transaction) => {
      await holdAlertsOf(transaction, id);
      const look = checkSpend(services, scope, { subscription_id: id, now: world.now });
      void look.finally(() => (hasEnded = true)).catch(() => undefined);
      await until('it waits, or has ended', async () => {
        const { rows } = await services.postgres.raw(
          `select from pg_stat_activity where datname = current_database() and wait_event = 'advisory'`,
        );
        return hasEnded || rows.length > 0;
      });
      await world.use('waits', 'calls', 80);
      await world.settle();
      return { look };
    });
    expect(await waiting.look).to.equal(1);
    expect(await log(world, id)).to.deep.equal(['subscription_spend in_alarm 100']);
  });

  it('what was reached in one period is told again in the next, also where nobody has looked in between', async () => {
    await world.on('2026-02-06');
    const { id, customer_id } = await world.subscribe('again', 'Two');
    const config = above({ critical: '50', info: '10' });
    await world.post('/alerts/setting', { entity_type: 'subscription', entity_id: id, config });
    await world.use('again', 'calls', 60);
    await look('2026-02-07');
    // The end of the period asks for a look by itself: what was used since then and before it was billed is told without other usage.
    await world.api.services.postgres.raw('delete from graphile_worker._private_jobs');
    await world.on('2026-03-06T00:00:01Z');
    const asked = await world.api.services
      .postgres('graphile_worker.jobs')
      .where('key', 'like', 'alerts:%')
      .select('key');
    expect(asked.map(({ key }) => key)).to.include(`alerts:${customer_id}`);
    await world.use('again', 'calls', 20);
    await look('2026-03-07');
    await world.use('again', 'calls', 40);
    await look('2026-03-08');
    await world.on('2026-04-06');
    await world.use('again', 'calls', 70);
    await look('2026-04-07');
    await look('2026-04-08');
    expect(await log(world, id)).to.deep.equal([
      'subscription_spend in_alarm 60',
      'subscription_spend ok 0',
      'subscription_spend info 20',
      'subscription_spend in_alarm 60',
      'subscription_spend ok 0',
      'subscription_spend in_alarm 70',
    ]);
    const told = (await events(world, 'subscription.spend')).filter(({ subscription }) => subscription.id === id);
    expect(told.map(({ alert_status, current_spend }) => `${alert_status} ${current_spend}`)).to.deep.equal([
      'in_alarm 60',
      'ok 0',
      'info 20',
      'in_alarm 60',
      'ok 0',
      'in_alarm 70',
    ]);
  });

  it('what goes on in a longer period is not told again when a shorter one begins', async () => {
    await world.on('2026-05-01');
    await world.plan('Both', [usage('calls', '1'), usage('storage', '2', { billing_period: 'ANNUAL' })]);
    const { id } = await world.subscribe('both', 'Both');
    const config = above({ critical: '30' });
    await world.post('/alerts/setting', { entity_type: 'subscription', entity_id: id, config });
    await world.use('both', 'storage', 20);
    await look('2026-05-02');
    await world.on('2026-06-01');
    await world.use('both', 'calls', 5);
    await look('2026-06-02');
    expect(await log(world, id)).to.deep.equal(['subscription_spend in_alarm 40']);
    const now = await world.post('/subscriptions/usage', { subscription_id: id });
    expect(Number(now.amount)).to.equal(45);
  });

  for (const name of NAMES)
    it(`${name} has a body that stays`, async () => {
      const [body] = await events(world, name);
      expectGolden(`webhooks/${name}.json`, withoutIds(body));
    });
});

describe('scenario: alerts by the clock of an environment', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z', test_clock: true });
    await world.meter('calls');
    await world.plan('Calls', [usage('calls', '1', { display_name: 'calls' })]);
  });
  after(() => world.stop());

  it('are looked at at midnight, after days on which something was used', async () => {
    const { id, customer_id } = await world.subscribe('acme', 'Calls');
    await world.post('/wallets', {
      customer_id,
      currency: 'usd',
      initial_credits_to_load: '10',
      alert_settings: { alert_enabled: true, critical: { threshold: '2', condition: 'below' } },
    });
    const config = above({ critical: '8', info: '5' });
    await world.post('/alerts/setting', { entity_type: 'subscription', entity_id: id, config });
    await world.on('2026-01-03T10:00:00Z', () => world.use('acme', 'calls', 5));
    await world.on('2026-01-07T10:00:00Z', () => world.use('acme', 'calls', 3));
    await world.on('2026-01-20');
    const { items } = await world.post('/alerts/search', { customer_id, sort: 'id', order: 'asc' });
    expect(
      items.map(
        ({ created_at, alert_type, alert_status }: Answer) =>
          `${created_at.slice(0, 10)} ${alert_type} ${alert_status}`,
      ),
    ).to.have.members([
      '2026-01-04 subscription_spend info',
      '2026-01-08 subscription_spend in_alarm',
      '2026-01-08 low_ongoing_balance in_alarm',
    ]);
  });

  it('are looked at where a period begins, however far the clock is advanced, and told again in the next', async () => {
    await world.on('2026-01-20T06:00:00Z');
    const watched = await Promise.all(
      ['once', 'twice'].map(async (name) => {
        const { id, customer_id } = await world.subscribe(name, 'Calls');
        const config = above({ critical: '10' });
        await world.post('/alerts/setting', { entity_type: 'subscription', entity_id: id, config });
        await world.use(name, 'calls', 50);
        return customer_id;
      }),
    );
    await world.on('2026-02-20T06:00:00Z', () => world.use('twice', 'calls', 50));
    await world.on('2026-03-10');
    const told = await Promise.all(
      watched.map(async (customer_id) => {
        const { items } = await world.post('/alerts/search', { customer_id, sort: 'id', order: 'asc' });
        return items.map(({ created_at, alert_status }: Answer) => `${created_at} ${alert_status}`);
      }),
    );
    const reached = '2026-01-21T00:00:00Z in_alarm';
    const begun = '2026-02-20T06:00:00Z ok';
    expect(told).to.deep.equal([
      [reached, begun],
      [reached, begun, '2026-02-21T00:00:00Z in_alarm'],
    ]);
  });
});
