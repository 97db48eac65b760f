/** Drafts that become final in one transaction (docs/decisions/0008-batched-billing.md), and depend on each other. */
import { expect } from 'chai';
import { billThresholds } from '../../actions/lifecycle/billing/bill-thresholds.ts';
import type { Price } from '../support/answers.ts';
import { startWorld, tiers, usage, type World } from '../support/world.ts';

describe('scenario: final together', () => {
  let world: World;
  let calls: Price;
  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    await world.plan('Calls', []);
    calls = await world.price('Calls', usage('calls', '1', { display_name: 'calls' }));
    const cheaper: [number | null, string][] = [
      [100, '1'],
      [null, '0.4'],
    ];
    await world.plan('Volume', [tiers('calls', cheaper, { display_name: 'calls', tier_mode: 'VOLUME' })]);
  });
  after(() => world.stop());

  it('what comes late for one of two drafts is on that one, and the other knows it', async () => {
    const terms = { commitment_amount: '100', overage_factor: '2', commitment_duration: 'QUARTERLY' };
    const line_item_commitments = { [calls.id]: terms };
    await world.on('2026-01-01', () => world.subscribe('committed', 'Calls', { line_item_commitments }));
    await world.use('committed', 'calls', 60, { at: '2026-01-10T00:00:00Z' });
    await world.use('committed', 'calls', 20, { at: '2026-02-10T00:00:00Z' });
    await world.on('2026-02-01');
    await world.on('2026-03-01');
    const said = async () => (await world.invoices('committed')).map(({ subtotal }) => subtotal);
    expect(await said()).to.deep.equal(['60', '20']);
    await world.use('committed', 'calls', 30, { at: '2026-01-20T00:00:00Z' });
    await world.waitForPipeline();
    expect((await world.finalize()).finalized).to.equal(2);
    // 90 of the 100 are drawn: ten more, and ten at twice the price.
    expect(await said()).to.deep.equal(['90', '30']);
  });

  it('what two of them give back to one customer is in the wallet, both', async () => {
    await world.on('2026-04-01');
    await world.finalize();
    const threshold = { auto_invoice_threshold: '100' };
    await world.subscribe('twice', 'Volume', threshold);
    const [first] = [world.id('subscription twice')];
    const again = { plan_id: world.id('plan Volume'), currency: 'usd', billing_period: 'MONTHLY', ...threshold };
    const { id: second } = await world.post('/subscriptions', { external_customer_id: 'twice', ...again });
    await world.use('twice', 'calls', 100);
    world.at('2026-04-05');
    await world.waitForPipeline();
    expect((await billThresholds(world.api.services, world.now)).invoiced).to.equal(2);
    const { customer_id } = await world.subscription('twice');
    const { items: charged } = await world.post('/invoices/search', { customer_id });
    for (const { id: destination_id, amount_remaining: amount, currency } of charged) {
      const received = { destination_type: 'INVOICE', destination_id, payment_method_type: 'OFFLINE' };
      await world.post('/payments', { ...received, amount, currency });
    }
    await world.use('twice', 'calls', 100);
    for (const id of [first, second])
      await world.post(`/subscriptions/${id}/cancel`, { cancellation_type: 'end_of_period' });
    await world.on('2026-05-01');
    await world.finalize();
    const wallets = await world.get(`/customers/${customer_id}/wallets`);
    expect(wallets.map(({ balance }) => balance)).to.deep.equal(['40']);
  });
});
