/** Alerts on what is spent where periods follow one another, and two looks meet (docs/rules/alerts.md). */
import { expect } from 'chai';
import { checkAlerts } from '../../actions/alerts/check-alerts.ts';
import { checkSpend } from '../../actions/alerts/spend-alerts.ts';
import { billDuePeriods } from '../../actions/lifecycle/billing/bill-period.ts';
import { lockAlerts } from '../../storage/models/alerts/alert-states.ts';
import { above, alertLog, listEvents } from '../support/alerts.ts';
import { until } from '../support/until.ts';
import { startWorld, usage, type World } from '../support/world.ts';

describe('scenario: alerts on spending, from period to period', () => {
  let world: World;
  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    await world.meter('storage');
    await world.plan('Two', [usage('calls', '1'), usage('storage', '2')]);
    await world.on('2026-01-01');
  });
  after(() => world.stop());

  /** What the job does, twice at once, as two schedulers do. */
  async function look(date: string): Promise<number> {
    world.at(date);
    await world.waitForPipeline();
    const both = await Promise.all([1, 2].map(() => checkAlerts(world.api.services, { now: world.now })));
    for (const { failed } of both) if (failed.length > 0) throw failed[0]!.error;
    return both.reduce((sum, { alerted }) => sum + alerted, 0);
  }

  it('a look waits for the one before it, and tells what is spent by then', async () => {
    const { services, scope } = world.api;
    world.at('2026-02-05');
    const { id } = await world.subscribe('waits', 'Two');
    const config = above({ critical: '100', info: '10' });
    await world.post('/alerts/setting', { entity_type: 'subscription', entity_id: id, config });
    await world.use('waits', 'calls', 20);
    await world.waitForPipeline();
    let hasEnded = false;
    const waiting = await services.postgres.transaction(async (transaction) => {
      await lockAlerts(transaction, id);
      const look = checkSpend(services, scope, { subscription_id: id, now: world.now });
      void look.finally(() => (hasEnded = true)).catch(() => undefined);
      await until('it waits, or has ended', async () => {
        const { rows } = await services.postgres.raw(
          `select from pg_stat_activity where datname = current_database() and wait_event = 'advisory'`,
        );
        return hasEnded || rows.length > 0;
      });
      await world.use('waits', 'calls', 80);
      await world.waitForPipeline();
      return { look };
    });
    expect(await waiting.look).to.equal(1);
    expect(await alertLog(world, id)).to.deep.equal(['subscription_spend in_alarm 100']);
    await world.cancel('waits');
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
    expect(await alertLog(world, id)).to.deep.equal([
      'subscription_spend in_alarm 60',
      'subscription_spend ok 0',
      'subscription_spend info 20',
      'subscription_spend in_alarm 60',
      'subscription_spend ok 0',
      'subscription_spend in_alarm 70',
    ]);
    const told = (await listEvents(world, 'subscription.spend')).filter(
      ({ subscription }) => (subscription as { id: string }).id === id,
    );
    expect(told.map(({ alert_status, current_spend }) => `${alert_status} ${current_spend}`)).to.deep.equal([
      'in_alarm 60',
      'ok 0',
      'info 20',
      'in_alarm 60',
      'ok 0',
      'in_alarm 70',
    ]);
    await world.cancel('again');
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
    expect(await alertLog(world, id)).to.deep.equal(['subscription_spend in_alarm 40']);
    const now = await world.post('/subscriptions/usage', { subscription_id: id });
    expect(Number(now.amount)).to.equal(45);
    await world.cancel('both');
  });

  // Alone, and with others of its environment in one transaction.
  for (const [names, begins, eve, ends] of [
    [['alone'], '2026-07-10', '2026-08-09', '2026-08-10'],
    [['one', 'other'], '2026-08-20', '2026-09-19', '2026-09-20'],
  ] as const)
    it(`a period that was billed is said to be where the look behind it cannot be asked for, and that of the hour finds it: ${names}`, async () => {
      const { services, scope } = world.api;
      const { postgres } = services;
      await world.on(begins);
      const ids = await Promise.all(
        names.map(async (name) => {
          const { id: entity_id } = await world.subscribe(name, 'Two');
          const config = above({ critical: '50' });
          await world.post('/alerts/setting', { entity_type: 'subscription', entity_id, config });
          await world.use(name, 'calls', 60);
          return entity_id;
        }),
      );
      await look(`${begins}T12:00:00Z`);
      // What the subscriptions before these have due.
      await world.on(eve);
      world.at(`${ends}T01:00:00Z`);
      await world.waitForPipeline();
      await postgres.raw(
        `create function no_look() returns trigger language plpgsql as $$ begin raise exception 'no look'; end $$`,
      );
      await postgres.raw(`create trigger no_look before insert on graphile_worker._private_jobs for each row
                            when (new.key like 'alerts:%') execute function no_look()`);
      try {
        const { without_alert_checks: unasked, ...billing } = await billDuePeriods(services, world.now, {
          only: scope,
        });
        expect(billing).to.deep.equal({ billed: names.length, failed: [], waiting: [] });
        expect(unasked.map((each) => each.ids.toSorted())).to.deep.equal([ids.toSorted()]);
        expect(String(unasked[0]!.error)).to.match(/no look/);
      } finally {
        await postgres.raw('drop function no_look cascade');
      }
      await look(`${ends}T02:00:00Z`);
      for (const id of ids)
        expect(await alertLog(world, id)).to.deep.equal(['subscription_spend in_alarm 60', 'subscription_spend ok 0']);
      for (const name of names) await world.cancel(name);
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
        ({ created_at, alert_type, alert_status }) => `${created_at.slice(0, 10)} ${alert_type} ${alert_status}`,
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
        return items.map(({ created_at, alert_status }) => `${created_at} ${alert_status}`);
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
