/**
 * Usage and charges of a subscription, measured through the real pipeline: the same numbers as the preview
 * (docs/rules/usage.md, "One number").
 */
import { expect } from 'chai';
import type { SubscriptionUsage } from '../../support/answers.ts';
import { fixed, startWorld, tiers, usage, type World } from '../../support/world.ts';

describe('POST /subscriptions/usage', () => {
  let world: World;

  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    await world.meter('seats', { type: 'SUM', field: 'n' }, { reset_usage: 'NEVER' });
    const slabs = tiers('calls', [
      [100, '0.10'],
      [null, '0.05'],
    ]);
    await world.plan('Pro', [fixed('10'), slabs, usage('seats', '2')]);
  });
  after(() => world.stop());

  const used = async (fields: Record<string, unknown> = {}) => {
    await world.waitForPipeline();
    return world.post('/subscriptions/usage', { subscription_id: world.id('subscription acme'), ...fields });
  };
  const byMeter = (answer: SubscriptionUsage) =>
    Object.fromEntries(answer.charges.map((charge) => [charge.meter_display_name, [charge.quantity, charge.amount]]));

  it('is what the preview says, per line item', async () => {
    await world.on('2026-01-01', () => world.subscribe('acme', 'Pro'));
    await world.on('2026-01-10', () => world.use('acme', 'calls', '150.5'));
    await world.on('2026-01-11', () => world.use('acme', 'seats', 3));
    const answer = await used();
    // 100 × 0.10 + 50.5 × 0.05 = 12.525, rounded half away from zero.
    expect(byMeter(answer)).to.deep.equal({ calls: ['150.5', '12.53'], seats: ['3', '6'] });
    expect(answer).to.include({ amount: '18.53', display_amount: '$18.53' });
    const preview = await world.preview('acme');
    const shown = preview.line_items
      .filter((line) => line.price_type === 'USAGE')
      .map((line) => [line.meter_display_name, [line.quantity, line.amount]]);
    expect(byMeter(answer)).to.deep.equal(Object.fromEntries(shown));
  });

  it('the next period begins at nothing, but for a meter that never resets', async () => {
    await world.on('2026-02-01');
    expect(byMeter(await used())).to.deep.equal({ calls: ['0', '0'], seats: ['3', '6'] });
  });

  it('analytics of the period say the same, with points of what was used in it alone', async () => {
    await world.on('2026-02-03', () => world.use('acme', 'seats', 2));
    expect(byMeter(await used()).seats).to.deep.equal(['5', '10']);
    const answer = await world.post('/events/analytics', {
      external_customer_id: 'acme',
      start_time: '2026-02-01T00:00:00Z',
      end_time: '2026-03-01T00:00:00Z',
      window_size: 'MONTH',
    });
    const shown = answer.items
      .filter((item) => item.meter_id === world.id('meter seats'))
      .map((item) => [item.total_usage, item.total_cost, item.points!.map((point) => point.usage)]);
    expect(shown).to.deep.equal([['5', '10', ['2']]]);
  });

  it('of a range, and of the whole life', async () => {
    await world.on('2026-02-05', () => world.use('acme', 'calls', 10));
    const january = { start_time: '2026-01-01T00:00:00Z', end_time: '2026-02-01T00:00:00Z' };
    expect(byMeter(await used(january)).calls).to.deep.equal(['150.5', '12.53']);
    const part = { start_time: '2026-01-01T00:00:00Z', end_time: '2026-01-10T00:00:00Z' };
    expect(byMeter(await used(part)).calls).to.deep.equal(['0', '0']);
    world.at('2026-02-06');
    expect(byMeter(await used({ lifetime_usage: true })).calls).to.deep.equal(['160.5', '13.03']);
  });

  it('immediate cancellation invoices what was used, once', async () => {
    await world.on('2026-02-10', () => world.cancel('acme'));
    const last = (await world.invoices('acme')).at(-1);
    expect(last).to.include({ billing_reason: 'PRORATION', invoice_status: 'DRAFT' });
    const calls = last!.line_items.find((line) => line.meter_display_name === 'calls');
    expect(calls).to.include({ quantity: '10', amount: '1' });
    const before = (await world.invoices('acme')).length;
    await world.on('2026-03-01');
    await world.on('2026-04-01');
    expect((await world.invoices('acme')).length).to.equal(before);
  });

  it('a subscription cancelled with policy skip leaves no last invoice', async () => {
    await world.on('2026-04-01', () => world.subscribe('frugal', 'Pro'));
    await world.on('2026-04-05', () => world.use('frugal', 'calls', 10));
    const skip = { cancellation_type: 'immediate', cancel_immediately_inovice_policy: 'skip' };
    await world.on('2026-04-10', () => world.cancel('frugal', skip));
    expect(await world.invoices('frugal')).to.deep.equal([]);
  });
});
