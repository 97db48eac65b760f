/**
 * Plan changes at the end of a period that break when their time has come: tried again some times, then failed, and nobody else waits
 * for them (docs/rules/subscriptions.md, "Schedules").
 */
import { expect } from 'chai';
import { billDuePeriods } from '../../actions/lifecycle/billing/bill-period.ts';
import type { Subscription } from '../support/answers.ts';
import { fixed, startWorld, type World } from '../support/world.ts';

const MINUTE_MS = 60_000;
const END = Date.UTC(2026, 1);

describe('scenario: plan changes that break', () => {
  let world: World;

  before(async () => {
    world = await startWorld();
    for (const [plan, amount] of Object.entries({ Plain: '31', Other: '62' }))
      await world.plan(plan, [fixed(amount, { invoice_cadence: 'ADVANCE', display_name: plan })]);
    await world.api.services.postgres.raw(`
      create function break_line() returns trigger language plpgsql as $$ begin raise exception 'a line is broken'; end $$`);
  });
  afterEach(mended);
  after(() => world.stop());

  const of = (customer: string) => world.id(`subscription ${customer}`);
  async function scheduled(customer: string): Promise<void> {
    world.at('2026-01-01T00:00:00Z');
    await world.subscribe(customer, 'Plain');
    await world.post(`/subscriptions/${of(customer)}/change/execute`, {
      target_plan_id: world.id('plan Other'),
      change_at: 'end_of_period',
      proration_behavior: 'none',
      billing_cadence: 'RECURRING',
      billing_period: 'MONTHLY',
      billing_cycle: 'anniversary',
    });
  }
  /** Nothing of this subscription gets a line. */
  const broken = (customer: string) =>
    world.api.services.postgres.raw(`
      create trigger broken before insert on subscription_line_items for each row
        when (new.subscription_id = '${of(customer)}') execute function break_line()`);
  async function mended(): Promise<void> {
    await world.api.services.postgres.raw('drop trigger if exists broken on subscription_line_items');
  }
  async function billed(minutes: number): Promise<[number, string[]]> {
    world.at(new Date(END + minutes * MINUTE_MS).toISOString());
    const report = await billDuePeriods(world.api.services, world.now);
    return [report.billed, report.failed.map(({ id }) => id)];
  }
  async function schedule(customer: string) {
    const { items } = await world.get(`/subscriptions/${of(customer)}/schedules`).then((answer) => ({
      items: answer.schedules!,
    }));
    const { status, failed_attempts, next_attempt_at, error_message } = items[0]!;
    const minutes = next_attempt_at && (Date.parse(next_attempt_at) - END) / MINUTE_MS;
    return [status, failed_attempts, minutes, error_message];
  }
  const told = async () => (await world.get('/webhooks/events?event_names=subscription.plan_change.failed')).items;
  const charged = async (customer: string) =>
    (await world.invoices(customer)).at(-1)!.line_items.map((line) => line.display_name);

  it('are tried again, while others are billed, and done when it goes', async () => {
    await scheduled('acme');
    await scheduled('bravo');
    await broken('acme');
    expect(await billed(0)).to.deep.equal([1, [of('acme')]]);
    expect(await schedule('acme')).to.deep.equal(['pending', 1, 1, 'an error of the service']);
    expect((await schedule('bravo'))[0]).to.equal('executed');
    // Its time has not come.
    expect(await billed(0.5)).to.deep.equal([0, []]);
    expect(await billed(1)).to.deep.equal([0, [of('acme')]]);
    expect(await schedule('acme')).to.deep.equal(['pending', 2, 11, 'an error of the service']);
    await mended();
    expect(await billed(2)).to.deep.equal([0, []]);
    expect(await billed(11)).to.deep.equal([1, []]);
    expect(await schedule('acme')).to.deep.equal(['executed', 2, null, null]);
    expect(await charged('acme')).to.deep.equal(['Other']);
    expect(await told()).to.deep.equal([]);
  });

  it('have failed after five tries, which is told, and the subscription goes on as it is', async () => {
    await scheduled('charlie');
    await broken('charlie');
    for (const minutes of [0, 1, 11, 71]) expect(await billed(minutes)).to.deep.equal([0, [of('charlie')]]);
    expect(await schedule('charlie')).to.deep.equal(['pending', 4, 431, 'an error of the service']);
    expect(await billed(431)).to.deep.equal([0, [of('charlie')]]);
    expect(await schedule('charlie')).to.deep.equal(['failed', 5, null, 'an error of the service']);
    expect(await billed(432)).to.deep.equal([1, []]);
    expect(await charged('charlie')).to.deep.equal(['Plain']);
    const { payload } = (await told())[0]!;
    expect((payload.subscription as Subscription).id).to.equal(of('charlie'));
    expect(payload.error).to.include({ code: 'internal_error', message: 'an error of the service' });
  });

  it('are tried with each try of an advance, which goes on when they have failed', async () => {
    const services = world.api.services;
    await scheduled('delta');
    await broken('delta');
    world.at(new Date(END).toISOString());
    for (let tries = 1; tries <= 5; tries++) {
      const { failed } = await billDuePeriods(services, world.now, { only: world.api.scope });
      expect(failed.map(({ id }) => id)).to.deep.equal([of('delta')]);
    }
    expect((await schedule('delta'))[0]).to.equal('failed');
    const { billed: more } = await billDuePeriods(services, world.now, { only: world.api.scope });
    expect(more).to.equal(1);
  });
}).timeout(120_000);
