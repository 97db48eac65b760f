/**
 * An account at Nomod: pushed, found, voided and pulled records. An interrupted push is resumed with one record there, although Nomod has no
 * idempotency keys. Requests go to a stateful fake.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import type { PushedInvoiceLine } from '../../../core/platform/integration/pushed-lines.ts';
import type { ProviderAccount, PushedCustomer, PushedInvoice } from '../../../integrations/account.ts';
import { nomod } from '../../../integrations/nomod/provider.ts';
import { catchFailure } from '../../support/providers/failure.ts';
import { NOMOD_DISTURBANCES, NomodFake } from '../../support/providers/nomod-fake.ts';

const KEY = { key: 'push:1', key_age_seconds: 0, key_created_at: new Date(), is_key_renewed: false };
const CUSTOMER: PushedCustomer = {
  ...{ ...KEY, customer_id: 'cust_1', external_id: 'acme', name: 'Acme', email: 'billing@acme.example' },
  address: { line1: 'Way 1', line2: '', city: 'Dubai', state: '', postal_code: '00000', country: 'AE' },
};
const line = (amount: string, description = `for ${amount}`): PushedInvoiceLine => {
  return { description, amount, line_item_id: null, period_start: null, period_end: null };
};

describe('integrations/nomod/account', () => {
  let fake: NomodFake;
  let account: ProviderAccount;
  let customer_id: string;

  const open = (api_key = 'sk_test_fake.1') => nomod.account!.open({ api_key }, { address: fake.url });

  beforeEach(async () => {
    fake = await new NomodFake().start();
    account = await open();
    customer_id = fake.book.createCustomer({ first_name: 'Acme' }).id;
  });
  afterEach(() => fake.stop());

  const invoice = (more: Partial<PushedInvoice> = {}): PushedInvoice => ({
    ...{ ...KEY, invoice_id: 'inv_1', invoice_number: 'INV-0001', provider_customer_id: customer_id, currency: 'aed' },
    ...{ lines: [line('100.10'), line('19')], total: '119.1', due_date: null },
    ...more,
  });
  const push = (more: Partial<PushedInvoice> = {}) => account.pushInvoice!(invoice(more));
  const invoices = () => fake.book.records.invoices;
  const found = () => invoices().map(({ status, amount }) => `${status} ${amount}`);
  const countOpen = (invoice_id = 'inv_1') =>
    invoices().filter(({ note, status }) => String(note).includes(`(${invoice_id})`) && status === 'unpaid').length;

  describe('credentials', () => {
    it('are tested, although Nomod names no account', async () => {
      expect(await account.identify()).to.deep.equal({ provider_account_id: null, name: null });
    });

    it('are refused and not quoted if they are wrong', async () => {
      const wrong = await open('sk_test_wrong1234');
      const failure = await catchFailure(() => wrong.identify());
      expect(failure).to.include({ error_class: 'person', is_unauthorized: true, provider_code: 'not_authenticated' });
      expect(`${failure.message} ${failure.stack}`).not.to.contain('wrong1234');
    });

    it('show whether they move real money, if they begin so', () => {
      const detectLive = (api_key: string) => nomod.account!.detectLive({ api_key });
      expect(['sk_test_1.x', 'sk_live_1.x', 'other'].map(detectLive)).to.deep.equal([false, true, null]);
    });
  });

  describe('pushCustomer', () => {
    const pushCustomer = (more: Partial<PushedCustomer> = {}) => account.pushCustomer!({ ...CUSTOMER, ...more });
    const pushed = () => fake.book.records.customers.filter(({ job_title }) => job_title === 'cust_1');

    it('sends name, email, address and our id', async () => {
      const { provider_entity_id } = await pushCustomer();
      expect(fake.book.find('customers', provider_entity_id)).to.deep.include({
        ...{ first_name: 'Acme', email: 'billing@acme.example', job_title: 'cust_1' },
        ...{ street: 'Way 1', city: 'Dubai', zip_code: '00000', country: 'AE' },
      });
      expect(await account.hasCustomer!(provider_entity_id)).to.equal(true);
      expect(await account.hasCustomer!(fake.book.makeId())).to.equal(false);
    });

    it('is accepted whatever the texts are', async () => {
      const text = fc.string({ unit: 'grapheme', maxLength: 300 });
      const property = fc.asyncProperty(text, text, text, async (name, line1, postal_code) => {
        const address = { ...CUSTOMER.address, line1, city: line1, postal_code, country: '' };
        await pushCustomer({ name, address, email: '' });
      });
      await fc.assert(property, { numRuns: 50 });
    });

    for (const at of [/^GET customers$/, /^POST customers$/])
      for (const disturbance of NOMOD_DISTURBANCES)
        it(`creates one customer although ${disturbance} happens at ${at.source}`, async () => {
          fake.disturb(at, disturbance);
          expect(await catchFailure(pushCustomer)).to.include({ error_class: 'wait' });
          const { provider_entity_id } = await pushCustomer();
          expect(pushed().map(({ id }) => id)).to.deep.equal([provider_entity_id]);
        });

    it('reads one page of customers for a first push', async () => {
      for (let n = 0; n < 150; n++) fake.book.createCustomer({ first_name: `other ${n}` });
      await pushCustomer();
      expect(fake.requests).to.deep.equal(['GET customers', 'POST customers']);
    });

    it('finds the customer behind many later ones, and reads no older ones', async () => {
      const { provider_entity_id } = await pushCustomer();
      for (let n = 0; n < 150; n++) fake.book.createCustomer({ first_name: `later ${n}` });
      expect(await pushCustomer({ name: 'New', key_age_seconds: 60 })).to.include({ provider_entity_id });
      expect(await pushCustomer({ name: 'New', is_key_renewed: true })).to.include({ provider_entity_id });
      fake.requests.length = 0;
      await pushCustomer({ customer_id: 'cust_2', key_created_at: new Date(Date.now() + 600_000) });
      expect(fake.requests).to.deep.equal(['GET customers', 'POST customers']);
    });
  });

  describe('pushInvoice', () => {
    it('sends one item over the total, without a service fee', async () => {
      const { provider_entity_id, url } = await push();
      const [there] = invoices();
      expect([there!.id, there!['url']]).to.deep.equal([provider_entity_id, url]);
      expect(there).to.deep.include({
        ...{ status: 'unpaid', amount: '119.100', currency: 'AED', customer: customer_id, invoice_number: 'INV-0001' },
        ...{ title: 'Invoice INV-0001', items: [{ name: 'Invoice INV-0001', amount: '119.10', quantity: 1 }] },
        note: 'Invoice INV-0001 (inv_1): for 100.10: 100.10, for 19: 19',
      });
    });

    it('is due at its date, or tomorrow', async () => {
      await push({ due_date: '2099-01-31T00:00:00.000Z' });
      await push({ invoice_id: 'inv_2', due_date: '2001-01-31T00:00:00.000Z' });
      const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
      expect(invoices().map(({ due_date }) => due_date)).to.deep.equal(['2099-01-31', tomorrow]);
    });

    it('fits into the limits of Nomod, with our id in the note', async () => {
      const long = { invoice_number: `INV-${'9'.repeat(200)}`, lines: [line('119.1', 'x'.repeat(500))] };
      const first = await push(long);
      expect(await push(long)).to.deep.equal(first);
      expect(invoices()).to.have.length(1);
      expect(invoices()[0]).to.include({ invoice_number: 'inv_1' });
    });

    const refused: [name: string, more: Partial<PushedInvoice>, why: RegExp][] = [
      ['a part of the smallest unit', { lines: [line('1.005')], total: '1.005' }, /cannot represent 1\.005 aed/],
      ['lines that do not add up', { total: '119.11' }, /lines add up to 119\.1 aed, the total is 119\.11/],
      ['nothing', { lines: [], total: '0' }, /above 0, not 0 aed/],
    ];
    for (const [name, more, why] of refused)
      it(`refuses before any request: ${name}`, async () => {
        const failure = await catchFailure(() => push(more));
        expect(failure.error_class).to.equal('person');
        expect(failure.message).to.match(why);
        expect(fake.requests).to.deep.equal([]);
      });

    it('names a currency that Nomod does not take', async () => {
      const failure = await catchFailure(() => push({ currency: 'eur' }));
      expect(failure).to.include({ error_class: 'person', provider_code: 'invalid_currency' });
      expect(failure.message).to.match(/^Nomod takes no payments in eur: /);
    });

    for (const at of [/^GET invoices$/, /^POST invoices$/])
      for (const disturbance of NOMOD_DISTURBANCES)
        it(`resumes after ${disturbance} at ${at.source}, also within a second`, async () => {
          fake.disturb(at, disturbance);
          expect(await catchFailure(push)).to.include({ error_class: 'wait' });
          const { provider_entity_id } = await push();
          expect(countOpen()).to.equal(1);
          expect(invoices()[0]!.id).to.equal(provider_entity_id);
        });

    it('ends with one open invoice after any interruptions', async () => {
      const step = fc.constantFrom(/^GET invoices$/, /^POST invoices$/, /edit$/);
      const interruption = fc.record({ step, disturbance: fc.constantFrom(...NOMOD_DISTURBANCES) });
      let number = 0;
      const property = fc.asyncProperty(fc.array(interruption, { maxLength: 5 }), async (interruptions) => {
        const invoice_id = `inv_random_${++number}`;
        for (const { step: at, disturbance } of interruptions) {
          fake.disturb(at, disturbance);
          await push({ invoice_id }).catch((error: unknown) => expect(error).to.include({ error_class: 'wait' }));
        }
        fake.clearDisturbances();
        await push({ invoice_id });
        expect(countOpen(invoice_id)).to.equal(1);
      });
      await fc.assert(property, { numRuns: 60 });
    }).timeout(60_000);

    it('ends with one open invoice after pushes at once that are repeated', async () => {
      for (let n = 0; n < 20; n++) {
        const invoice_id = `inv_race_${n}`;
        const run = () => push({ invoice_id });
        for (const result of await Promise.allSettled([run(), run(), run()]))
          if (result.status === 'rejected') expect(result.reason).to.include({ error_class: 'wait' });
        await run();
        expect(countOpen(invoice_id)).to.equal(1);
      }
    });

    it('takes no invoice of another environment with the same number, and makes another after a cancelled one', async () => {
      const { provider_entity_id } = await push({ invoice_id: 'inv_10' });
      await push();
      fake.book.editInvoice(provider_entity_id, { status: 'cancelled' });
      await push({ invoice_id: 'inv_10' });
      expect(found()).to.deep.equal(['cancelled 119.100', 'unpaid 119.100', 'unpaid 119.100']);
    });

    it('replaces an open invoice of another total', async () => {
      await push({ lines: [line('50')], total: '50' });
      await push();
      expect(found()).to.deep.equal(['cancelled 50.000', 'unpaid 119.100']);
    });

    it('cancels the invoice if the total there is another, and names both', async () => {
      fake.book.surcharge = '5';
      const failure = await catchFailure(push);
      expect(failure.error_class).to.equal('person');
      expect(failure.message).to.contain('119.1 aed').and.to.contain('124.1 aed');
      expect(found()).to.deep.equal(['cancelled 124.100']);
    });
  });

  it('finds the invoice of a push whose answer was lost', async () => {
    const searched = { invoice_id: 'inv_1', provider_customer_id: customer_id, key_created_at: new Date() };
    expect(await account.findInvoice!(searched)).to.equal(null);
    fake.disturb(/^POST invoices$/, 'lost_answer');
    await catchFailure(push);
    expect((await account.findInvoice!(searched))!.provider_entity_id).to.equal(invoices()[0]!.id);
  });

  describe('voidInvoice', () => {
    const voidIt = (id: string) => account.voidInvoice!(id, 'void:1');

    it('cancels it, once, also after a lost answer or an unknown id', async () => {
      const { provider_entity_id: id } = await push();
      fake.disturb(/edit$/, 'lost_answer');
      expect(await catchFailure(() => voidIt(id))).to.include({ error_class: 'wait' });
      await voidIt(id);
      await voidIt(fake.book.makeId());
      expect(found()).to.deep.equal(['cancelled 119.100']);
    });

    it('needs a person if it is paid', async () => {
      const { provider_entity_id: id } = await push();
      fake.book.payInvoice(id);
      expect((await catchFailure(() => voidIt(id))).message).to.contain('is paid at Nomod');
    });
  });

  describe('pullInvoice', () => {
    const pull = async (id: string) => (await account.pullInvoice!(id))!;

    it('reads what was paid and refunded', async () => {
      await push({ invoice_id: 'inv_other' });
      fake.book.payInvoice(invoices()[0]!.id);
      const { provider_entity_id: id, url } = await push();
      expect(await pull(id)).to.deep.include({ url, invoice_status: 'open', total: '119.1', payments: [] });
      fake.book.payInvoice(id, 'failed');
      const paid = fake.book.payInvoice(id);
      const read = async () =>
        (await pull(id)).payments.map((one) => [one.provider_payment_id, one.payment_status, one.refunded_amount]);
      expect(await read()).to.deep.equal([[paid.id, 'succeeded', '0']]);
      fake.book.refundCharge(paid.id, { amount: '19.10' });
      expect(await read()).to.deep.equal([[paid.id, 'refunded', '19.1']]);
      expect((await pull(id)).payments[0]).to.include({ amount: '119.1', currency: 'aed' });
      expect((await pull(id)).invoice_status).to.equal('paid');
    });

    it('reads the charge that names the invoice, whatever its note is', async () => {
      const { provider_entity_id: id } = await push();
      const { provider_entity_id: other } = await push({ invoice_id: 'inv_2' });
      const paid = fake.book.payInvoice(id);
      Object.assign(paid, { invoice: { id }, note: invoices()[1]!['note'] });
      expect((await pull(id)).payments.map((one) => one.provider_payment_id)).to.deep.equal([paid.id]);
      Object.assign(fake.book.find('invoices', other), { status: 'paid' });
      expect((await catchFailure(() => pull(other))).message).to.match(
        /is paid at Nomod, but no charge there names it/,
      );
    });

    it('is nothing for an unknown id, and needs a person for an unknown state', async () => {
      expect(await account.pullInvoice!(fake.book.makeId())).to.equal(null);
      expect(await account.pullInvoice!('../charges')).to.equal(null);
      const { provider_entity_id: id } = await push();
      Object.assign(fake.book.find('invoices', id), { status: 'undocumented' });
      expect((await catchFailure(() => pull(id))).message).to.match(/has the status undocumented at Nomod$/);
    });
  });

  it('finds the invoice of a charge, by its field or its note', async () => {
    const { provider_entity_id: id } = await push({ invoice_number: `INV-${'9'.repeat(200)}` });
    const paid = fake.book.payInvoice(id);
    const list = (provider_entity_id: string) =>
      account.listConcernedInvoices!({ kind: 'payment', provider_entity_id });
    fake.book.createLink({ currency: 'AED', items: [{ name: 'x', amount: '1.00', quantity: 1 }] });
    const unrelated = fake.book.payLink(fake.book.records.links[0]!.id);
    expect([await list(unrelated.id), await list(fake.book.makeId())]).to.deep.equal([[], []]);
    expect(await list(paid.id), 'by its note').to.deep.equal([id]);
    Object.assign(paid, { invoice_id: id, note: null });
    expect(await list(paid.id), 'by its field').to.deep.equal([id]);
  });
});
