/** What is decided in an environment whose clock is ahead of the machine's (docs/rules/clock.md, "What goes by it"). */
import { expect } from 'chai';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

describe('a clock that is ahead of the machine', () => {
  let world: World;
  beforeEach(async () => {
    world = await startWorld({ now: '2041-01-01T00:00:00Z', test_clock: true });
    await world.meter('calls');
    await world.plan('Calls', [usage('calls', '1', { display_name: 'calls' })]);
    await world.plan('Seats', [fixed('93', { display_name: 'seats' })]);
    await world.customer('acme');
  });
  afterEach(() => world.stop());

  it('a correction of a billed period that leaves as many events is on the next invoice', async () => {
    await world.subscribe('acme', 'Calls');
    const event = (n: number) =>
      world.event('acme', 'calls', { n, at: '2041-01-10T00:00:00Z' }) as Record<string, unknown>;
    const first = { ...event(10), event_id: 'first' };
    await world.advance('2041-01-20T00:00:00Z');
    await world.send([first]);
    await world.waitForPipeline();
    await world.advance('2041-02-10T00:00:00Z');
    expect((await world.invoices('acme')).map(({ total }) => total)).to.deep.equal(['10']);
    await world.replace('first', event(5000));
    await world.waitForPipeline();
    await world.advance('2041-03-10T00:00:00Z');
    expect((await world.invoices('acme')).map(({ total }) => total)).to.deep.equal(['10', '4990']);
  });

  it('a draft written by hand for a period that is not over does not stop it, and is final when the period is over', async () => {
    await world.subscribe('acme', 'Seats');
    const line_items = [{ price_id: (await prices())[0], amount: '93', quantity: '1', display_name: 'seats' }];
    const period = { period_start: '2041-02-01T00:00:00Z', period_end: '2041-03-01T00:00:00Z' };
    const { id } = await world.post('/invoices', {
      ...{ customer_id: world.id('customer acme'), subscription_id: world.id('subscription acme'), currency: 'usd' },
      ...{ invoice_type: 'SUBSCRIPTION', billing_reason: 'SUBSCRIPTION_CYCLE', billing_period: 'MONTHLY' },
      ...{ subtotal: '93', total: '93', amount_due: '93', ...period, line_items },
    });
    await world.advance('2041-02-20T00:00:00Z');
    expect((await world.get(`/invoices/${id}`)).invoice_status).to.equal('DRAFT');
    await world.advance('2041-03-20T00:00:00Z');
    const invoice = await world.get(`/invoices/${id}`);
    expect([invoice.invoice_status, invoice.total]).to.deep.equal(['FINALIZED', '93']);
    expect(invoice.finalized_at! >= '2041-03-01').to.equal(true);
  });

  async function prices(): Promise<string[]> {
    const { items } = await world.get(`/prices?entity_ids=${world.id('plan Seats')}&entity_type=PLAN`);
    return items.map(({ id }) => id);
  }
});
