import { expect } from 'chai';
import { billDuePeriods } from '../../actions/billing/bill-period.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

type Answer = any;

/** docs/rules/credit-notes.md, "No more than was charged": whoever gives back knows what others have given. */
describe('what was charged is given back once', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await world.meter('calls');
    await world.plan('Pro', [fixed('31', { invoice_cadence: 'ADVANCE' })]);
    await world.plan('Use', [usage('calls', '1')]);
    await world.post('/taxes/rates', { name: 'VAT', code: 'vat', percentage_value: '10' });
  });
  after(() => world.stop());

  const ask = (method: string, path: string, body?: unknown) =>
    world.api.request(method, path, body === undefined ? {} : { body });
  const note = (invoice: Answer, amount: string) =>
    ask('POST', '/creditnotes', {
      invoice_id: invoice.id,
      reason: 'BILLING_ERROR',
      line_items: [{ invoice_line_item_id: invoice.line_items[0].id, amount }],
    });
  const pay = (invoice: Answer) =>
    world.post('/payments', {
      destination_type: 'INVOICE',
      destination_id: invoice.id,
      payment_method_type: 'OFFLINE',
      amount: invoice.amount_remaining,
      currency: 'usd',
    });
  async function inWallet(customer: string): Promise<string[]> {
    const wallets: Answer[] = await world.get(`/customers/${world.id(`customer ${customer}`)}/wallets`);
    return wallets.map(({ balance }) => balance);
  }
  const cancel = (customer: string) =>
    world.cancel(customer, { cancellation_type: 'immediate', proration_behavior: 'create_prorations' });

  describe('by a refund of a payment and by a cancellation', () => {
    beforeEach(() => world.at('2026-01-01T00:00:00Z'));

    it('what was refunded goes into no wallet', async () => {
      await world.subscribe('refunded', 'Pro');
      const [opening] = await world.invoices('refunded');
      const { id } = await pay(opening);
      await world.post(`/payments/${id}/refund`, {});
      world.at('2026-01-11T00:00:00Z');
      await cancel('refunded');
      expect(await inWallet('refunded')).to.deep.equal([]);
    });

    it('of what was refunded in part the rest is given back, as far as it is unused', async () => {
      await world.subscribe('in part', 'Pro');
      const [opening] = await world.invoices('in part');
      const { id } = await pay(opening);
      await world.post(`/payments/${id}/refund`, { amount: '15' });
      world.at('2026-01-11T00:00:00Z');
      await cancel('in part');
      // 21 are unused, and 16 are left.
      expect(await inWallet('in part')).to.deep.equal(['16']);
    });

    it('and the other way round: what a cancellation and a note gave is not refunded', async () => {
      await world.customer('noted');
      await world.post('/taxes/associations', {
        tax_rate_code: 'vat',
        entity_type: 'customer',
        entity_id: world.id('customer noted'),
      });
      await world.subscribe('noted', 'Pro');
      const [opening] = await world.invoices('noted');
      const { id } = await pay(opening);
      world.at('2026-01-11T00:00:00Z');
      await cancel('noted');
      expect(await inWallet('noted')).to.deep.equal(['23.1']);
      expect((await note(opening, '4')).status).to.equal(201);
      const over = await ask('POST', `/payments/${id}/refund`, { amount: '6.61' });
      expect([over.status, over.body.details.field]).to.deep.equal([400, 'amount']);
      await world.post(`/payments/${id}/refund`, {});
      // 34.10 in all.
      expect((await world.get(`/payments/${id}`)).refunded_amount).to.equal('6.6');
      expect(await inWallet('noted')).to.deep.equal(['27.5']);
    });
  });

  describe('by a credit note and by a correction of usage', () => {
    async function used(customer: string, n: number): Promise<Answer> {
      await world.subscribe(customer, 'Use');
      await world.send([
        world.event(customer, 'calls', { n, at: '2026-01-20T00:00:00Z', event_id: `first ${customer}` }),
      ]);
      await world.settle();
      world.at('2026-02-01T00:00:00Z');
      await world.settle();
      await billDuePeriods(world.api.services, world.now);
      await world.finalize();
      return (await world.invoices(customer)).find((one) => one.subtotal !== '0');
    }
    async function corrected(customer: string, n: number): Promise<Answer> {
      await world.replace(
        `first ${customer}`,
        world.event(customer, 'calls', { n, at: '2026-01-20T00:00:00Z' }) as never,
      );
      await world.use(customer, 'calls', 500, { at: '2026-02-10T00:00:00Z' });
      await world.settle();
      world.at('2026-03-01T00:00:00Z');
      await world.settle();
      await billDuePeriods(world.api.services, world.now);
      await world.finalize();
      return (await world.invoices(customer)).find(({ period_end }) => period_end?.startsWith('2026-03-01'));
    }
    beforeEach(() => world.at('2026-01-01T00:00:00Z'));

    it('a note of all of it leaves nothing to correct', async () => {
      const first = await used('all', 100);
      expect((await note(first, '100')).status).to.equal(201);
      expect((await corrected('all', 10)).amount_due).to.equal('500');
    });

    it('a note of a part leaves the rest', async () => {
      const first = await used('part', 100);
      expect((await note(first, '40')).status).to.equal(201);
      expect((await corrected('part', 10)).amount_due).to.equal('440');
    });

    it('what a correction gave back is not noted', async () => {
      const first = await used('corrected', 100);
      expect((await corrected('corrected', 10)).amount_due).to.equal('410');
      const refused = await note(first, '10.01');
      expect([refused.status, refused.body.details.max_allowed]).to.deep.equal([400, '10']);
      expect((await note(first, '10')).status).to.equal(201);
    });

    it('a refund of a payment leaves nothing to correct', async () => {
      const first = await used('paid', 100);
      const { id } = await pay(first);
      await world.post(`/payments/${id}/refund`, { amount: '70' });
      expect((await corrected('paid', 10)).amount_due).to.equal('470');
    });
  });
});
