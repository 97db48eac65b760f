/**
 * An account at Whop: pushed, found, voided and pulled invoices. An interrupted push is resumed with one invoice there, although Whop has no
 * idempotency keys for invoices. Requests go to a stateful fake.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import type { PushedInvoiceLine } from '../../../core/platform/integration/pushed-lines.ts';
import type { ProviderAccount, PushedInvoice } from '../../../integrations/account.ts';
import { whop } from '../../../integrations/whop/provider.ts';
import { catchFailure } from '../../support/providers/failure.ts';
import { WHOP_DISTURBANCES, WhopFake } from '../../support/providers/whop-fake.ts';

const line = (amount: string, description = `for ${amount}`): PushedInvoiceLine => {
  return { description, amount, line_item_id: null, period_start: null, period_end: null };
};

const INVOICE: PushedInvoice = {
  ...{ key: 'push:2', key_age_seconds: 0, key_created_at: new Date(), is_key_renewed: false },
  ...{ invoice_id: 'inv_1', invoice_number: 'INV-0001', provider_customer_id: 'cust_1', currency: 'usd' },
  addressee: { name: 'Acme', email: 'books@acme.example' },
  lines: [line('100.10'), line('19')],
  ...{ total: '119.1', due_date: null },
};
const SECRETS = { api_key: 'key_fake', company_id: 'biz_fake', environment: 'sandbox' };

describe('integrations/whop/account', () => {
  let fake: WhopFake;
  let account: ProviderAccount;

  const open = (more: object = {}) => whop.account!.open({ ...SECRETS, ...more }, { address: fake.url });

  beforeEach(async () => {
    fake = await new WhopFake().start();
    account = await open();
  });
  afterEach(() => fake.stop());

  const push = (more: Partial<PushedInvoice> = {}) => account.pushInvoice!({ ...INVOICE, ...more });
  const invoices = () => [...fake.book.invoices.values()];
  const found = () =>
    invoices().map(({ status, line_items }) => `${status} ${line_items.reduce((sum, { total }) => sum + total, 0)}`);

  describe('credentials', () => {
    it('are tested by reading the company', async () => {
      expect(await account.identify()).to.deep.equal({ provider_account_id: 'biz_fake', name: 'Fake Company' });
    });

    it('are refused and not quoted if they are wrong, or of another company', async () => {
      for (const wrong of [{ api_key: 'wrong1234' }, { company_id: 'biz_wrong1234' }]) {
        const other = await open(wrong);
        const failure = await catchFailure(() => other.identify());
        expect(failure).to.include({ error_class: 'person', is_unauthorized: true });
        expect(`${failure.message} ${failure.stack}`.includes('key_fake')).to.equal(false);
      }
    });

    it('move real money unless they are of the sandbox', () => {
      const { environment: _sandbox, ...live } = SECRETS;
      expect([whop.account!.detectLive(SECRETS), whop.account!.detectLive(live)]).to.deep.equal([false, true]);
    });
  });

  describe('pushInvoice', () => {
    it('is addressed by name and email, with one line for each of ours', async () => {
      const { provider_entity_id } = await push({ due_date: '2026-12-24T00:00:00.000Z' });
      const [there] = invoices();
      expect(there!.id).to.equal(provider_entity_id);
      expect(found()).to.deep.equal(['open 119.1']);
      expect(there!.email_address).to.equal('books@acme.example');
      expect(there!['due_date']).to.equal('2026-12-24T00:00:00.000Z');
      expect(there!.line_items.map(({ label, unit_price }) => `${label}: ${unit_price}`)).to.deep.equal([
        'for 100.10 (INV-0001, inv_1): 100.1',
        'for 19: 19',
      ]);
    });

    it('has one line over the total if a line is negative, and short labels', async () => {
      await push({ lines: [line('100', 'x'.repeat(500)), line('-20', 'Paid already')], total: '80' });
      expect(invoices()[0]!.line_items.map(({ total }) => total)).to.deep.equal([80]);
      expect(invoices()[0]!.line_items[0]!.label).to.equal(`${'x'.repeat(150)} (INV-0001, inv_1)`);
    });

    it('belongs to the product of the connection, if there is one', async () => {
      account = await open({ product_id: 'prod_1' });
      await push();
      expect(fake.last_body).to.include('"product_id":"prod_1"');
    });

    it('has the digits of the amount, also those that a number of JavaScript loses', async () => {
      await push({ lines: [line('12345678901234567.89')], total: '12345678901234567.89' }).catch(() => null);
      expect(fake.last_body).to.include('"initial_price":12345678901234567.89');
      expect(fake.last_body).to.include('"unit_price":12345678901234567.89');
    });

    it('takes the decimals of the currency', async () => {
      await push({ lines: [line('1.234')], total: '1.234', currency: 'kwd' });
      await push({ invoice_id: 'inv_2', lines: [line('1234')], total: '1234', currency: 'jpy' });
      expect(found()).to.deep.equal(['open 1.234', 'open 1234']);
    });

    const refused: [name: string, more: Partial<PushedInvoice>, why: RegExp][] = [
      ['a part of the smallest unit', { lines: [line('1.005')], total: '1.005' }, /cannot represent 1\.005 usd/],
      ['a part of a yen', { lines: [line('1.5')], total: '1.5', currency: 'jpy' }, /cannot represent 1\.5 jpy/],
      ['a customer without email', { addressee: { name: 'Acme', email: '' } }, /name and email/],
      ['a customer without name', { addressee: { name: '', email: 'a@acme.example' } }, /name and email/],
    ];
    for (const [name, more, why] of refused)
      it(`refuses before any request: ${name}`, async () => {
        const failure = await catchFailure(() => push(more));
        expect(failure.error_class).to.equal('person');
        expect(failure.message).to.match(why);
        expect(fake.requests).to.deep.equal([]);
      });

    it('names a currency that Whop does not take', async () => {
      const failure = await catchFailure(() => push({ currency: 'bwp' }));
      expect(failure.error_class).to.equal('person');
      expect(failure.message).to.match(/^Whop takes no payments in bwp: /);
    });

    it('voids an invoice of another total, and names both', async () => {
      fake.book.surcharge = 2.5;
      const failure = await catchFailure(push);
      expect(failure.error_class).to.equal('person');
      expect(failure.message).to.match(/^the total of inv_1 is 119\.1 usd, but 124\.1 usd at Whop \(inv_x+\d+\)$/);
      expect(found()).to.deep.equal(['void 124.1']);
    });

    for (const at of [/^GET invoices$/, /^POST invoices$/])
      for (const disturbance of WHOP_DISTURBANCES)
        it(`resumes after ${disturbance} at ${at.source}, also within a second`, async () => {
          fake.disturb(at, disturbance);
          expect(await catchFailure(push)).to.include({ error_class: 'wait' });
          const { provider_entity_id } = await push();
          expect(found()).to.deep.equal(['open 119.1']);
          expect(invoices()[0]!.id).to.equal(provider_entity_id);
        });

    it('leaves one open invoice if two attempts race, and the other is repeated', async () => {
      await Promise.allSettled([push(), push(), push()]);
      const { provider_entity_id } = await push();
      expect(found().filter((one) => one.startsWith('open'))).to.deep.equal(['open 119.1']);
      expect(invoices().find(({ status }) => status === 'open')!.id).to.equal(provider_entity_id);
    });

    it('ends with one open invoice after any interruptions', async () => {
      const interruption = fc.tuple(
        fc.constantFrom(/^GET invoices$/, /^POST invoices$/),
        fc.constantFrom(...WHOP_DISTURBANCES),
      );
      let number = 0;
      const property = fc.asyncProperty(fc.array(interruption, { maxLength: 4 }), async (interruptions) => {
        fake.book.invoices.clear();
        fake.clearDisturbances();
        for (const [at, what] of interruptions) fake.disturb(at, what);
        const invoice = { invoice_id: `inv_p${++number}`, key_created_at: new Date() };
        for (let times = 0; times <= interruptions.length; times++) await push(invoice).catch(() => null);
        await push(invoice);
        expect(found()).to.deep.equal(['open 119.1']);
      });
      await fc.assert(property, { numRuns: 30 });
    });

    it('creates nothing if there are more invoices than it can search', async () => {
      await push({ invoice_id: 'inv_other' });
      for (let number = 0; number < 150; number++) fake.book.createInvoice(JSON.parse(fake.last_body));
      expect(await catchFailure(push)).to.include({ error_class: 'wait', is_of_record: true });
      expect(invoices()).to.have.length(151);
    });

    it('takes over the invoice among many, and none of another id', async () => {
      for (let number = 10; number < 20; number++) await push({ invoice_id: `inv_${number}` });
      const { provider_entity_id } = await push();
      expect(await account.findInvoice!(INVOICE)).to.deep.equal({ provider_entity_id, url: null });
      expect(await account.findInvoice!({ ...INVOICE, invoice_id: 'inv_2' })).to.equal(null);
      expect((await push()).provider_entity_id).to.equal(provider_entity_id);
      expect(invoices()).to.have.length(11);
    });
  });

  describe('voidInvoice', () => {
    it('has an effect once, and none on what is gone', async () => {
      const { provider_entity_id: id } = await push();
      for (let times = 0; times < 2; times++) await account.voidInvoice!(id, 'key');
      await account.voidInvoice!('inv_unknown', 'key');
      expect(found()).to.deep.equal(['void 119.1']);
    });

    it('deletes a draft', async () => {
      const { provider_entity_id: id } = await push();
      fake.book.invoices.get(id)!.status = 'draft';
      await account.voidInvoice!(id, 'key');
      expect(invoices()).to.deep.equal([]);
    });

    it('needs a person if the invoice is paid', async () => {
      const { provider_entity_id: id } = await push();
      fake.book.payInvoice(id);
      const failure = await catchFailure(() => account.voidInvoice!(id, 'key'));
      expect(failure.message).to.match(/is paid at Whop/);
    });
  });

  describe('pullInvoice', () => {
    it('has the payments of the invoice alone, with their refunds', async () => {
      const { provider_entity_id: id } = await push();
      const other = await push({ invoice_id: 'inv_2' });
      fake.book.payInvoice(other.provider_entity_id);
      fake.book.payInvoice(id, 'failed');
      const paid = fake.book.payInvoice(id);
      fake.book.refundPayment(paid.id, { partial_amount: 19 });
      const read = (await account.pullInvoice!(id))!;
      expect(read).to.include({ invoice_status: 'paid', total: '119.1', currency: 'usd' });
      const [refunded, failed] = read.payments;
      expect(failed).to.include({ payment_status: 'failed', amount: '119.1', paid_at: null });
      expect(refunded).to.include({ payment_status: 'succeeded', amount: '119.1', refunded_amount: '19' });
      expect(refunded!.refunds).to.deep.equal([
        {
          ...{ provider_refund_id: paid.refunds[0]!.id, amount: '19', refund_status: 'succeeded' },
          ...{ error: null, refund_id: null },
        },
      ]);
    });

    it('counts no tax that Whop added', async () => {
      const { provider_entity_id: id } = await push();
      const { id: payment_id } = fake.book.payInvoice(id);
      fake.book.changePayment(payment_id, { total: 129.1, tax_amount: 10, tax_behavior: 'exclusive' });
      const [payment] = (await account.pullInvoice!(id))!.payments;
      expect(payment).to.include({ amount: '119.1', provider_tax: '10' });
      fake.book.changePayment(payment_id, { total: 119.1, tax_behavior: 'inclusive' });
      const [inclusive] = (await account.pullInvoice!(id))!.payments;
      expect(inclusive).to.include({ amount: '119.1', provider_tax: null });
    });

    const states: [substatus: string, status: string, more?: object][] = [
      ['pending', 'pending'],
      ['incomplete', 'pending', { is_for_customer: true }],
      ['failed', 'failed'],
      ['auto_refunded', 'refunded'],
      ['dispute_under_review', 'succeeded'],
    ];
    for (const [substatus, payment_status, more = {}] of states)
      it(`reads ${substatus} as ${payment_status}`, async () => {
        const { provider_entity_id: id } = await push();
        fake.book.payInvoice(id, substatus);
        const [payment] = (await account.pullInvoice!(id))!.payments;
        expect(payment).to.include({ payment_status, ...more });
      });

    it('waits for a failed payment that Whop tries again', async () => {
      const { provider_entity_id: id } = await push();
      fake.book.payInvoice(id, 'failed')['next_payment_attempt'] = '2026-12-01T00:00:00.000Z';
      expect((await account.pullInvoice!(id))!.payments[0]).to.include({ payment_status: 'pending' });
    });

    it('refuses states that it does not know, because money may have moved', async () => {
      const { provider_entity_id: id } = await push();
      fake.book.payInvoice(id, 'invented');
      expect((await catchFailure(() => account.pullInvoice!(id))).message).to.match(/has the status invented at Whop/);
    });

    it('is null for what is gone, or is no id', async () => {
      for (const id of ['inv_unknown', '../payments', '']) expect(await account.pullInvoice!(id)).to.equal(null);
      expect(fake.requests).to.deep.equal(['GET invoices/inv_unknown']);
    });
  });

  describe('listConcernedInvoices', () => {
    it('finds the invoice of a payment, and none of a page', async () => {
      for (const more of [{}, { product_id: 'prod_shared' }]) {
        account = await open(more);
        const key = { invoice_id: `inv_${Object.keys(more).length}`, key_created_at: new Date() };
        const { provider_entity_id: id } = await push(key);
        const payment = fake.book.payInvoice(id);
        for (const [kind, provider_entity_id] of [
          ['invoice', id],
          ['payment', payment.id],
        ] as const)
          expect(await account.listConcernedInvoices!({ kind, provider_entity_id })).to.deep.equal([id]);
      }
      for (const provider_entity_id of ['pay_unknown', 'ch_1'])
        expect(await account.listConcernedInvoices!({ kind: 'payment', provider_entity_id })).to.deep.equal([]);
    });
  });
});
