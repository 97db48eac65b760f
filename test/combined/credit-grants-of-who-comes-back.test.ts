/** Credit grants that end, and begin anew, by the clock of an environment (docs/rules/credits.md). */
import { expect } from 'chai';
import { credits, grantOwn, MONTHLY, startGrantsWorld, upcoming } from '../support/grants.ts';
import type { World } from '../support/world.ts';

describe('scenario: credit grants of who comes back, and of grants that are archived', () => {
  let world: World;
  before(async () => {
    world = await startGrantsWorld();
  });
  after(() => world.stop());

  it('an archived grant gives nothing more', async () => {
    await world.on('2026-12-01', () => world.subscribe('own', 'Bare'));
    const once = await grantOwn(world, 'own', { ...MONTHLY, start_date: '2026-12-01T00:00:00Z' });
    expect(await upcoming(world, 'own')).to.deep.equal(['2027-01-01 10 pending']);
    const ending = { end_date: '2026-12-24T00:00:00Z' };
    await world.api.request('PUT', `/creditgrants/${once.id}`, { body: ending });
    expect(await upcoming(world, 'own')).to.deep.equal([]);
    await world.api.request('PUT', `/creditgrants/${once.id}`, { body: { end_date: null } });
    expect(await upcoming(world, 'own')).to.deep.equal(['2027-01-01 10 pending']);
    await world.api.request('DELETE', `/creditgrants/${once.id}`);
    expect(await upcoming(world, 'own')).to.deep.equal([]);
    await world.on('2027-02-01');
    expect(await credits(world, 'own')).to.deep.equal(['2026-12-01 10']);
  });

  it('who leaves a plan and comes back at the instant at which a period of its grant begins goes on getting its credits', async () => {
    const change = (plan: string) =>
      world.post(`/subscriptions/${world.id('subscription turning')}/change/execute`, {
        target_plan_id: world.id(`plan ${plan}`),
        proration_behavior: 'none',
        billing_period: 'MONTHLY',
        billing_period_count: 1,
        billing_cadence: 'RECURRING',
        billing_cycle: 'anniversary',
      });
    const { frozen_time } = await world.testClock();
    const now = new Date(frozen_time);
    const first = (months: number) =>
      new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + months, 1)).toISOString();
    await world.on(first(1), () => world.subscribe('turning', 'Pro'));
    await change('Bare');
    await change('Pro');
    await world.on(first(2));
    await change('Bare');
    await change('Pro');
    await world.on(first(4));
    const begun = (await credits(world, 'turning'))
      .filter((line) => line.includes(' 100'))
      .map((line) => line.slice(0, 14));
    expect(begun).to.deep.equal([1, 2, 3, 4].map((months) => `${first(months).slice(0, 10)} 100`));
  });
});
