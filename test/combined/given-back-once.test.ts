import { expect } from 'chai';
import { billDuePeriods } from '../../actions/lifecycle/billing/bill-period.ts';
import { createPayment } from '../../actions/lifecycle/payments/create-payment.ts';
import type { Invoice } from '../support/answers.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

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

  const ask = <Method extends string, Path extends string>(method: Method, path: Path, body?: unknown) =>
    world.api.request(method, path, body === undefined ? {} : { body });
  const note = (invoice: Invoice, amount: string, memo = '') =>
    ask('POST', '/creditnotes', {
      invoice_id: invoice.id,
      memo,
      reason: 'BILLING_ERROR',
      line_items: [{ invoice_line_item_id: invoice.line_items[0]!.id, amount }],
    });
  const pay = (invoice: Invoice) =>
    world.post('/payments', {
      destination_type: 'INVOICE',
      destination_id: invoice.id,
      payment_method_type: 'OFFLINE',
      amount: invoice.amount_remaining,
      currency: invoice.currency,
    });
  async function inWallet(customer: string): Promise<string[]> {
    const wallets = await world.get(`/customers/${world.id(`customer ${customer}`)}/wallets`);
    return wallets.map(({ balance }) => balance);
  }
  const cancel = (customer: string) =>
    world.cancel(customer, { cancellation_type: 'immediate', proration_behavior: 'create_prorations' });

  describe('by a refund of a payment and by a cancellation', () => {
    beforeEach(() => world.at('2026-01-01T00:00:00Z'));

    it('what was refunded goes into no wallet', async () => {
      await world.subscribe('refunded', 'Pro');
      const [opening] = await world.invoices('refunded');
      const { id } = await pay(opening!);
      await world.post(`/payments/${id}/refund`, {});
      world.at('2026-01-11T00:00:00Z');
      await cancel('refunded');
      expect(await inWallet('refunded')).to.deep.equal([]);
    });

    it('of what was refunded in part the rest is given back, as far as it is unused', async () => {
      await world.subscribe('in part', 'Pro');
      const [opening] = await world.invoices('in part');
      const { id } = await pay(opening!);
      await world.post(`/payments/${id}/refund`, { amount: '15' });
      world.at('2026-01-11T00:00:00Z');
      await cancel('in part');
      // 21 are unused, and 16 are left.
      expect(await inWallet('in part')).to.deep.equal(['16']);
    });

    for (const [lines, price, currency, refund, rest] of [
      [3, '100', 'jpy', '100', '200'],
      [20, '1', 'usd', '6.88', '13.12'],
      [20, '1', 'usd', '6.9', '13.1'],
    ] as const)
      it(`${refund} of ${lines} lines of ${price} ${currency} leave ${rest}, to the minor unit`, async () => {
        const [name, plan] = [`${lines} of ${refund}`, `${lines} lines`];
        const line = { invoice_cadence: 'ADVANCE', currency } as const;
        if (!world.has(`plan ${plan}`))
          await world.plan(
            plan,
            Array.from({ length: lines }, (_, n) => fixed(price, { ...line, display_name: `${n}` })),
          );
        await world.subscribe(name, plan, { currency });
        const [opening] = await world.invoices(name);
        const { id } = await pay(opening!);
        await world.post(`/payments/${id}/refund`, { amount: refund });
        world.at('2026-01-01T00:00:00.001Z');
        await cancel(name);
        expect(await inWallet(name)).to.deep.equal([rest]);
      });

    it('what a note gave back of a line was not refunded: the refund is of the others', async () => {
      const line = { invoice_cadence: 'ADVANCE' } as const;
      await world.plan('Two', [
        fixed('100', { ...line, display_name: 'one' }),
        fixed('100', { ...line, display_name: 'other' }),
      ]);
      await world.subscribe('two', 'Two');
      const [opening] = await world.invoices('two');
      const { id } = await pay(opening!);
      expect((await note(opening!, '100')).status).to.equal(201);
      await world.post(`/payments/${id}/refund`, { amount: '60' });
      world.at('2026-01-01T00:00:00.001Z');
      await cancel('two');
      expect(await inWallet('two')).to.deep.equal(['140']);
    });

    it('what a note returned to lots leaves the rest of the money to be refunded, and no more', async () => {
      await world.customer('with credits');
      const config = { allowed_price_types: ['ALL'] };
      const wallet = await world.post('/wallets', { external_customer_id: 'with credits', currency: 'usd', config });
      const free = { credits_to_add: '10', transaction_reason: 'FREE_CREDIT_GRANT' };
      await world.post(`/wallets/${wallet.id}/top-up`, free);
      await world.subscribe('with credits', 'Pro');
      const [opening] = await world.invoices('with credits');
      const { id } = await pay(opening!);
      // Credits paid 10 of 31: of 12 they paid 3.87, and 8.13 of the 21 in money.
      expect((await note(opening!, '12')).status).to.equal(201);
      expect((await ask('POST', `/payments/${id}/refund`, { amount: '12.88' })).status).to.equal(400);
      await world.post(`/payments/${id}/refund`, { amount: '12.87' });
      expect(await inWallet('with credits')).to.deep.equal(['12']);
      expect((await world.get(`/invoices/${opening!.id}`)).payment_status).to.equal('PARTIALLY_REFUNDED');
      expect((await note(opening!, '6.13')).status).to.equal(201);
      expect(await inWallet('with credits')).to.deep.equal(['18.13']);
      expect((await world.get(`/invoices/${opening!.id}`)).payment_status).to.equal('REFUNDED');
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
      const { id } = await pay(opening!);
      world.at('2026-01-11T00:00:00Z');
      await cancel('noted');
      expect(await inWallet('noted')).to.deep.equal(['23.1']);
      expect((await note(opening!, '4')).status).to.equal(201);
      const over = await ask('POST', `/payments/${id}/refund`, { amount: '6.61' });
      expect([over.status, over.body.details!.field]).to.deep.equal([400, 'amount']);
      await world.post(`/payments/${id}/refund`, {});
      // 34.10 in all.
      expect((await world.get(`/payments/${id}`)).refunded_amount).to.equal('6.6');
      expect(await inWallet('noted')).to.deep.equal(['27.5']);
    });
  });

  describe('by credit notes and by a cancellation, to the minor unit', () => {
    beforeEach(() => world.at('2026-01-01T00:00:00Z'));

    it('of the tax that notes gave back nothing comes again', async () => {
      await world.customer('small notes');
      const of = { entity_type: 'customer', entity_id: world.id('customer small notes') };
      await world.post('/taxes/associations', { ...of, tax_rate_code: 'vat' });
      await world.subscribe('small notes', 'Pro');
      const [opening] = await world.invoices('small notes');
      await pay(opening!);
      for (const memo of ['a', 'b', 'c', 'd', 'e', 'f'])
        expect((await note(opening!, '0.05', memo)).status).to.equal(201);
      world.at('2026-01-01T00:00:00.001Z');
      await cancel('small notes');
      // A note of 0.05 gives 0.01 of tax back, not 0.005.
      expect(await inWallet('small notes')).to.deep.equal([opening!.total]);
    });

    it('two discounts of a line take what they took, and no cent more or less', async () => {
      const percentage = { type: 'percentage', cadence: 'forever' };
      await world.post('/coupons', { ...percentage, name: 'L', coupon_code: 'L15', percentage_off: '15' });
      await world.post('/coupons', { ...percentage, name: 'I', coupon_code: 'I10', percentage_off: '10' });
      await world.plan('Seat', []);
      const { id: price_id } = await world.price('Seat', fixed('100', { invoice_cadence: 'ADVANCE' }));
      for (const amount of ['0.31', '23.45']) {
        world.at('2026-01-01T00:00:00Z');
        await world.subscribe(amount, 'Seat', { coupons: ['I10'], line_item_coupons: { [price_id]: ['L15'] } });
        const [opening] = await world.invoices(amount);
        await pay(opening!);
        expect((await note(opening!, amount)).status).to.equal(201);
        world.at('2026-01-01T00:00:00.001Z');
        await cancel(amount);
        expect(await inWallet(amount)).to.deep.equal([opening!.total]);
      }
    });
  });

  describe('by a credit note and by a correction of usage', () => {
    /** Each has used 100 on 20 January, and the invoice of January is final. */
    async function used(...customers: string[]): Promise<Invoice[]> {
      world.at('2026-01-01T00:00:00Z');
      for (const customer of customers) await world.subscribe(customer, 'Use');
      await world.send(
        customers.map((customer) =>
          world.event(customer, 'calls', { n: 100, at: '2026-01-20T00:00:00Z', event_id: `first ${customer}` }),
        ),
      );
      await world.on('2026-02-01');
      await world.finalize();
      return Promise.all(
        customers.map(async (customer) => (await world.invoices(customer)).find((one) => one.subtotal !== '0')!),
      );
    }
    /** 10 are left of them; in February 500 are used, and its invoice is final. */
    async function corrected(...customers: string[]): Promise<Invoice[]> {
      await Promise.all(
        customers.map((customer) =>
          world.replace(`first ${customer}`, world.event(customer, 'calls', { n: 10, at: '2026-01-20T00:00:00Z' })),
        ),
      );
      await world.send(
        customers.map((customer) => world.event(customer, 'calls', { n: 500, at: '2026-02-10T00:00:00Z' })),
      );
      await world.on('2026-03-01');
      await world.finalize();
      return Promise.all(customers.map(inFebruary));
    }
    const inFebruary = async (customer: string) =>
      (await world.invoices(customer)).find(({ period_end }) => period_end?.startsWith('2026-03-01'))!;

    it('what a note or a refund gave back is not corrected, and what a correction gave back is not noted', async () => {
      const names = ['all', 'part', 'corrected', 'paid'];
      const [all, part, first, paid] = await used(...names);
      expect((await note(all!, '100')).status).to.equal(201);
      expect((await note(part!, '40')).status).to.equal(201);
      const { id } = await pay(paid!);
      await world.post(`/payments/${id}/refund`, { amount: '70' });
      const amounts = (await corrected(...names)).map(({ amount_due }) => amount_due);
      expect(amounts).to.deep.equal(['500', '440', '410', '470']);
      const refused = await note(first!, '10.01');
      expect([refused.status, refused.body.details!.max_allowed]).to.deep.equal([400, '10']);
      expect((await note(first!, '10')).status).to.equal(201);
    });

    it('what a correction gave back is in no wallet when the invoice is void: the correction is voided first, or both billed again', async () => {
      const [first, other] = await used('void', 'void both');
      await pay(first!);
      await pay(other!);
      const [later, correcting] = await corrected('void', 'void both');
      expect(later!.amount_due).to.equal('410');
      const refused = await ask('POST', `/invoices/${first!.id}/void`);
      expect([refused.status, refused.body.details!.invoice_id], refused.text).to.deep.equal([400, later!.id]);
      expect(await inWallet('void')).to.deep.equal([]);
      // 100 back, of which 100 pay for it again: 10 were used, and 90 are lacking on the later one.
      const again = await ask('POST', `/invoices/${first!.id}/recalculate?finalize=true`);
      expect([again.body.subtotal, await inWallet('void')]).to.deep.equal(['100', ['0']]);

      expect((await ask('POST', `/invoices/${correcting!.id}/void`)).status).to.equal(200);
      expect((await ask('POST', `/invoices/${other!.id}/void`)).status).to.equal(200);
      expect(await inWallet('void both')).to.deep.equal(['100']);
    });

    it('what a draft corrects comes off it when the invoice is void, also where it is made final by hand', async () => {
      const [first] = await used('by hand');
      await world.use('by hand', 'calls', 50, { at: '2026-02-10T00:00:00Z' });
      world.at('2026-03-01T00:00:00Z');
      await world.replace(
        'first by hand',
        world.event('by hand', 'calls', { n: 80, at: '2026-01-20T00:00:00Z' }) as never,
      );
      await world.waitForPipeline();
      await billDuePeriods(world.api.services, world.now);
      const draft = (await world.invoices('by hand')).at(-1);
      expect([draft!.invoice_status, draft!.total]).to.deep.equal(['DRAFT', '30']);
      expect((await ask('POST', `/invoices/${first!.id}/void`)).status).to.equal(200);
      await ask('POST', `/invoices/${draft!.id}/finalize`);
      expect(await world.get(`/invoices/${draft!.id}`)).to.include({ invoice_status: 'FINALIZED', total: '50' });
    });

    it('what is void stays so, whatever comes late or is corrected, until its period is billed again', async () => {
      const [first] = await used('open');
      world.at('2026-02-02T00:00:00Z');
      await world.send([world.event('open', 'calls', { n: 7, at: '2026-01-21T00:00:00Z' })]);
      world.at('2026-03-01T00:00:00Z');
      await world.waitForPipeline();
      await billDuePeriods(world.api.services, world.now);
      await world.finalize();
      expect((await world.invoices('open')).at(-1)!.total).to.equal('7');
      expect((await ask('POST', `/invoices/${first!.id}/void`)).status).to.equal(200);
      await world.replace('first open', world.event('open', 'calls', { n: 90, at: '2026-01-20T00:00:00Z' }) as never);
      await world.send([world.event('open', 'calls', { n: 2, at: '2026-01-22T00:00:00Z' })]);
      await world.use('open', 'calls', 5, { at: '2026-03-10T00:00:00Z' });
      world.at('2026-04-01T00:00:00Z');
      await world.waitForPipeline();
      await billDuePeriods(world.api.services, world.now);
      await world.finalize();
      expect((await world.invoices('open')).at(-1)!.total).to.equal('5');
      // 99 were used, of which 7 are on the invoice of February.
      const again = await ask('POST', `/invoices/${first!.id}/recalculate?finalize=true`);
      expect(again.body.total, again.text).to.equal('92');
    });
  });

  /** docs/rules/payments.md, "Making a payment": who presses twice pays, and gives back, once. */
  describe('equal requests without a key', () => {
    const oneOff = async (customer: string) => {
      await world.customer(customer);
      const amounts = {
        currency: 'usd',
        amount_due: '100',
        total: '100',
        subtotal: '100',
        invoice_status: 'FINALIZED',
      };
      return world.post('/invoices', { customer_id: world.id(`customer ${customer}`), ...amounts });
    };
    const half = (invoice: Invoice) => ({
      destination_type: 'INVOICE',
      destination_id: invoice.id,
      payment_method_type: 'OFFLINE',
      amount: '50',
      currency: 'usd',
    });

    it('within a minute are one, also where the minute of the clock changes between them', async () => {
      world.at('2026-01-01T00:00:00Z');
      const invoice = await oneOff('twice');
      const at = <Method extends string, Path extends string>(
        instant: string,
        method: Method,
        path: Path,
        body: object,
      ) => {
        world.at(instant);
        return ask(method, path, body);
      };
      const first = await at('2026-01-01T00:00:59.950Z', 'POST', '/payments', half(invoice));
      const again = await at('2026-01-01T00:01:00.050Z', 'POST', '/payments', half(invoice));
      expect(again.body.id).to.equal(first.body.id);
      const refund = `/payments/${first.body.id}/refund`;
      for (const instant of ['2026-01-01T00:01:59.950Z', '2026-01-01T00:02:00.050Z'])
        expect((await at(instant, 'POST', refund, { amount: '20' })).body.refunded_amount).to.equal('20');
      expect((await at('2026-01-01T00:02:59.950Z', 'POST', refund, { amount: '20' })).body.refunded_amount).to.equal(
        '40',
      );
      const later = await at('2026-01-01T00:03:00.000Z', 'POST', '/payments', half(invoice));
      expect(later.body.id, later.text).to.not.equal(first.body.id);
    });

    it('are one where they come side by side and their minutes are two', async () => {
      world.at('2026-01-01T00:00:59.999Z');
      const invoice = await oneOff('side by side');
      const author = (now: string) => ({ user_id: '', now: new Date(now) });
      const request = { ...half(invoice), process_payment: true, metadata: {}, gateway_options: null } as never;
      const made = await Promise.all(
        ['2026-01-01T00:00:59.999Z', '2026-01-01T00:01:00.000Z', '2026-01-01T00:00:59.998Z'].map((now) =>
          createPayment(world.api.services, world.api.scope, { request, author: author(now) }),
        ),
      );
      expect(new Set(made.map(({ id }) => id))).to.have.property('size', 1);
    });
  });
});
