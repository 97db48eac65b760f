/**
 * An account at Razorpay: pushed and pulled records, and interrupted pushes, each of which is resumed with one record
 * there although Razorpay has no idempotency keys. Razorpay's library talks to a stateful fake.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import type { PushedInvoiceLine } from '../../../core/platform/integration/pushed-lines.ts';
import type { ProviderAccount, PushedCustomer, PushedInvoice } from '../../../integrations/account.ts';
import { razorpay } from '../../../integrations/razorpay/provider.ts';
import { catchFailure } from '../../support/providers/failure.ts';
import { type Disturbance, RazorpayFake } from '../../support/providers/razorpay-fake.ts';
import type { InvoiceRecord } from '../../support/providers/razorpay-fake-book.ts';

const CUSTOMER: PushedCustomer = {
  key: 'push:1',
  key_age_seconds: 0,
  key_created_at: new Date(),
  is_key_renewed: false,
  customer_id: 'cust_1',
  external_id: 'acme',
  name: 'Acme',
  email: 'billing@acme.example',
  address: { line1: 'Way 1', line2: '', city: 'Pune', state: '', postal_code: '411001', country: 'IN' },
};

const line = (amount: string, description = `for ${amount}`): PushedInvoiceLine => {
  const period = { period_start: '2026-10-01T00:00:00.000Z', period_end: '2026-11-01T00:00:00.000Z' };
  return { description, amount, line_item_id: `line_${amount}`, ...period };
};

const DISTURBANCES: Disturbance[] = [
  'lost_request',
  'lost_answer',
  'fault',
  'lost_fault',
  'rate_limit',
  'html',
  'bad_gateway',
];

describe('integrations/razorpay/account', () => {
  let fake: RazorpayFake;
  let account: ProviderAccount;
  let customer_id: string;

  const open = (more = {}) =>
    razorpay.account!.open({ key_id: 'rzp_test_fake', secret_key: 'secret_fake', ...more }, { address: fake.url });

  beforeEach(async () => {
    fake = await new RazorpayFake().start();
    account = await open();
    customer_id = fake.book.createCustomer({ name: 'Acme', email: 'a@acme.example' }).id;
  });
  afterEach(() => fake.stop());

  const invoice = (more: Partial<PushedInvoice> = {}): PushedInvoice => ({
    key: 'push:2',
    key_age_seconds: 0,
    key_created_at: new Date(),
    is_key_renewed: false,
    invoice_id: 'inv_1',
    invoice_number: 'INV-0001',
    provider_customer_id: customer_id,
    currency: 'inr',
    lines: [line('100.10'), line('19')],
    total: '119.1',
    due_date: null,
    ...more,
  });
  const pushInvoice = (more: Partial<PushedInvoice> = {}) => account.pushInvoice!(invoice(more));
  const invoices = () => fake.book.list<InvoiceRecord>('invoice');
  const found = () =>
    invoices().map(({ status, amount, line_items }) => ({
      status,
      amount,
      lines: line_items.map((item) => item['amount']),
    }));
  const OPEN = [{ status: 'issued', amount: 11_910, lines: [10_010, 1_900] }];

  describe('credentials', () => {
    it('are tested, although Razorpay names no account', async () => {
      expect(await account.identify()).to.deep.equal({ provider_account_id: null, name: null });
    });

    it('are refused and not quoted if they are wrong', async () => {
      const wrong = await open({ secret_key: 'wrong1234' });
      const failure = await catchFailure(() => wrong.identify());
      expect(failure).to.include({ error_class: 'person', is_unauthorized: true });
      expect(`${failure.message} ${failure.stack} ${JSON.stringify(failure.cause)}`).not.to.contain('wrong1234');
    });

    it('show whether they move real money', () => {
      const detectLive = (key_id: string) => razorpay.account!.detectLive({ key_id, secret_key: 'x' });
      expect(['rzp_test_1', 'rzp_live_1'].map(detectLive)).to.deep.equal([false, true]);
      for (const key_id of ['rzp_1', 'rzp_prod_1', 'xrzp_live_1', 'sk_live_1'])
        expect(() => detectLive(key_id)).to.throw('must begin with rzp_test_ or rzp_live_');
    });
  });

  describe('pushCustomer', () => {
    const push = (more: Partial<PushedCustomer> = {}) => account.pushCustomer!({ ...CUSTOMER, ...more });
    const pushed = () => fake.book.list('customer').filter(({ notes }) => 'farthing_customer_id' in notes);

    it('sends name, email and our ids', async () => {
      const { provider_entity_id } = await push();
      expect(fake.book.find('customer', provider_entity_id)).to.deep.include({
        name: 'Acme',
        email: 'billing@acme.example',
        notes: { farthing_customer_id: 'cust_1', farthing_external_id: 'acme', farthing_name: 'Acme' },
      });
    });

    const names: [name: string, sent: string][] = [
      ['Müller & Söhne GmbH', 'Muller Sohne GmbH'],
      ["O'Neil (Dublin) Ltd.", "O'Neil (Dublin) Ltd."],
      ['टाटा', 'Customer acme'],
      ['IBM', 'IBM'],
      ['3M', 'Customer acme'],
      ['', 'Customer acme'],
      ['x'.repeat(80), 'x'.repeat(50)],
    ];
    for (const [name, sent] of names)
      it(`names ${JSON.stringify(name)} "${sent}" there, with the original in the notes`, async () => {
        const { provider_entity_id } = await push({ name });
        const there = fake.book.find('customer', provider_entity_id);
        expect(there['name']).to.equal(sent);
        expect((there.notes as Record<string, string>)['farthing_name']).to.equal(name === '' ? undefined : name);
      });

    it('is accepted whatever the name and the ids are', async () => {
      const text = fc.string({ unit: 'grapheme', maxLength: 300 });
      let number = 0;
      await fc.assert(
        fc.asyncProperty(text, text, async (name, external_id) => {
          number += 1;
          const ids = { customer_id: `cust_${number}`, external_id, email: `${number}@acme.example` };
          await push({ ...ids, name });
        }),
        { numRuns: 100 },
      );
    });

    it('cuts no email: one that is too long stays in the notes', async () => {
      const email = `${'b'.repeat(60)}@acme.example`;
      const { provider_entity_id } = await push({ email });
      const there = fake.book.find('customer', provider_entity_id);
      expect(there['email']).to.equal(null);
      expect((there.notes as Record<string, string>)['farthing_email']).to.equal(email);
    });

    for (const email of ['billing@acme.example', ''])
      for (const disturbance of DISTURBANCES)
        it(`creates one customer ${email === '' ? 'without' : 'with'} an email although the first answer is: ${disturbance}`, async () => {
          fake.disturb(/^POST customers/, disturbance);
          expect(await catchFailure(() => push({ email }))).to.include({ error_class: 'wait' });
          const { provider_entity_id } = await push({ email });
          expect(pushed().map(({ id }) => id)).to.deep.equal([provider_entity_id]);
        });

    it('finds the customer if its email has changed since the lost answer', async () => {
      fake.disturb(/^POST customers/, 'lost_answer');
      await catchFailure(push);
      for (let n = 0; n < 150; n++) fake.book.createCustomer({ name: `later ${n}` });
      const { provider_entity_id } = await push({ email: 'new@acme.example', key_age_seconds: 60 });
      expect(pushed().map(({ id }) => id)).to.deep.equal([provider_entity_id]);
    });

    it('finds the customer after a renewed key', async () => {
      const first = await push();
      expect(await push({ email: 'new@acme.example', is_key_renewed: true })).to.deep.equal(first);
    });

    it('links nobody silently who has the email already', async () => {
      const { id } = fake.book.createCustomer({ name: 'Other', email: CUSTOMER.email });
      const failure = await catchFailure(push);
      expect(failure).to.include({ error_class: 'person', provider_entity_id: id });
      expect(failure.message).to.contain(id);
    });
  });

  describe('pushInvoice', () => {
    it('issues an invoice with one amount per line and returns its page', async () => {
      const { provider_entity_id, url } = await pushInvoice();
      expect(url).to.equal(`https://rzp.example/i/${provider_entity_id}`);
      expect(found()).to.deep.equal(OPEN);
      expect(fake.book.find('invoice', provider_entity_id)).to.deep.include({
        customer_id,
        currency: 'INR',
        receipt: 'INV-0001',
        notes: { farthing_invoice_id: 'inv_1', farthing_invoice_number: 'INV-0001' },
      });
      expect(invoices()[0]!.line_items[0]).to.deep.include({ name: 'for 100.10', quantity: 1, currency: 'INR' });
    });

    it('sends one line if a line is negative, because Razorpay would refuse it', async () => {
      await pushInvoice({ lines: [line('100.10', 'Seats'), line('-20', 'Paid already')], total: '80.1' });
      expect(found()).to.deep.equal([{ status: 'issued', amount: 8_010, lines: [8_010] }]);
      expect(invoices()[0]!.line_items[0]).to.include({
        name: 'Invoice INV-0001',
        description: 'Seats: 100.10\nPaid already: -20',
      });
    });

    it('folds the smallest of more than 50 lines into one', async () => {
      const lines = [...Array.from({ length: 59 }, () => line('1')), line('1000')];
      await pushInvoice({ lines, total: '1059' });
      const items = invoices()[0]!.line_items;
      expect(items).to.have.length(50);
      expect(items.at(-1)).to.include({ name: '11 further lines of smaller amounts', amount: 1_100 });
    });

    it('has a receipt also for a number that is too long', async () => {
      await pushInvoice({ invoice_number: `INV-${'9'.repeat(60)}` });
      await pushInvoice({ invoice_number: `INV-${'9'.repeat(60)}` });
      expect(invoices().map(({ receipt }) => receipt!.length)).to.deep.equal([40]);
    });

    const refused: [name: string, more: Partial<PushedInvoice>, why: RegExp][] = [
      ['a part of the smallest unit', { lines: [line('1.005')], total: '1.005' }, /cannot represent 1\.005 inr/],
      ['lines that do not add up', { total: '119.11' }, /lines add up to 119\.1 inr, the total is 119\.11/],
      ['no lines', { lines: [], total: '0' }, /without lines/],
      ['less than the smallest payment', { lines: [line('0.99')], total: '0.99' }, /at least 1 inr, not 0\.99/],
      ['a negative total', { lines: [line('-1')], total: '-1' }, /at least 1 inr/],
      ['a currency without a documented unit', { currency: 'krw' }, /no unit for amounts in krw/],
    ];
    for (const [name, more, why] of refused)
      it(`refuses before any request: ${name}`, async () => {
        const failure = await catchFailure(() => pushInvoice(more));
        expect(failure.error_class).to.equal('person');
        expect(failure.message).to.match(why);
        expect(fake.requests).to.deep.equal([]);
      });

    const STEPS: [name: string, at: RegExp][] = [
      ['the search', /^GET invoices/],
      ['the draft', /^POST invoices$/],
      ['the issue', /issue$/],
    ];
    for (const [name, at] of STEPS)
      for (const disturbance of DISTURBANCES)
        it(`resumes after ${disturbance} at ${name}, also within a second`, async () => {
          fake.disturb(at, disturbance);
          expect(await catchFailure(pushInvoice)).to.include({ error_class: 'wait' });
          const pushed = await pushInvoice();
          expect(found()).to.deep.equal(OPEN);
          expect(pushed.provider_entity_id).to.equal(invoices()[0]!.id);
        });

    it('ends with one open invoice after any interruptions', async () => {
      const step = fc.constantFrom(...STEPS.map(([, at]) => at), /^DELETE/);
      const interruption = fc.record({ step, disturbance: fc.constantFrom(...DISTURBANCES) });
      let number = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(interruption, { maxLength: 5 }), async (interruptions) => {
          number += 1;
          const pushed = { key: `random:${number}`, invoice_id: `inv_random_${number}` };
          for (const { step: at, disturbance } of interruptions) {
            fake.disturb(at, disturbance);
            await pushInvoice(pushed).catch((error: unknown) => expect(error).to.include({ error_class: 'wait' }));
          }
          fake.clearDisturbances();
          await pushInvoice(pushed);
          const there = invoices().filter(
            ({ notes }) => (notes as Record<string, string>)['farthing_invoice_id'] === pushed.invoice_id,
          );
          expect(there.map(({ status, amount }) => ({ status, amount }))).to.deep.equal([
            { status: 'issued', amount: 11_910 },
          ]);
        }),
        { numRuns: 60 },
      );
    }).timeout(60_000);

    it('returns the open invoice if only our record of it was lost', async () => {
      const first = await pushInvoice();
      expect(await pushInvoice({ key_age_seconds: 90_000 })).to.deep.equal(first);
      expect(found()).to.deep.equal(OPEN);
    });

    it('ends with one open invoice after pushes at once that are repeated', async () => {
      for (let n = 0; n < 20; n++) {
        const pushed = { invoice_id: `inv_race_${n}`, invoice_number: `RACE-${n}` };
        const run = () => pushInvoice(pushed);
        for (const result of await Promise.allSettled([run(), run(), run()]))
          if (result.status === 'rejected') expect(result.reason).to.include({ error_class: 'wait' });
        await run();
        const there = invoices().filter(({ receipt }) => receipt === pushed.invoice_number);
        expect(there.map(({ status }) => status)).to.deep.equal(['issued']);
      }
    });

    it('takes no invoice of another environment with the same number', async () => {
      await pushInvoice({ invoice_id: 'inv_other' });
      await pushInvoice();
      expect(found()).to.deep.equal([...OPEN, ...OPEN]);
    });

    it('makes another invoice after the first was cancelled', async () => {
      fake.book.cancelInvoice((await pushInvoice()).provider_entity_id);
      await pushInvoice({ key: 'push:3' });
      expect(found().map(({ status }) => status)).to.deep.equal(['issued', 'cancelled']);
    });

    it('replaces the draft of an attempt from before the amount changed', async () => {
      fake.disturb(/issue$/, 'lost_request');
      await catchFailure(pushInvoice);
      await pushInvoice({ lines: [line('50')], total: '50', key_age_seconds: 60 });
      expect(found()).to.deep.equal([{ status: 'issued', amount: 5_000, lines: [5_000] }]);
    });

    it('deletes the draft if the total there is another, and names both', async () => {
      fake.book.surcharge = 500;
      const failure = await catchFailure(pushInvoice);
      expect(failure.error_class).to.equal('person');
      expect(failure.message).to.contain('119.1 inr').and.to.contain('124.1 inr');
      expect(found()).to.deep.equal([]);
    });

    it('needs a person if the customer is not there', async () => {
      expect(await catchFailure(() => pushInvoice({ provider_customer_id: 'cust_missing' }))).to.include({
        error_class: 'person',
        is_unauthorized: false,
      });
    });
  });

  describe('voidInvoice', () => {
    const pushed = async () => (await pushInvoice()).provider_entity_id;
    const voided = (id: string) => account.voidInvoice!(id, 'void:1');

    it('cancels an issued invoice, and a cancelled one again', async () => {
      const id = await pushed();
      await voided(id);
      await voided(id);
      expect(found().map(({ status }) => status)).to.deep.equal(['cancelled']);
    });

    it('deletes a draft', async () => {
      fake.disturb(/issue$/, 'lost_request');
      await catchFailure(pushInvoice);
      await voided(invoices()[0]!.id);
      expect(found()).to.deep.equal([]);
    });

    it('has no effect on a missing one, or on what is no id', async () => {
      await voided('inv_missing');
      await voided('../customers');
      expect(fake.requests).to.deep.equal(['GET invoices/inv_missing']);
    });

    it('needs a person for a paid or partially paid one', async () => {
      const id = await pushed();
      for (const amount of [5_000, 6_910]) {
        fake.book.payInvoice(id, { amount });
        expect(await catchFailure(() => voided(id))).to.include({ error_class: 'person' });
      }
    });

    for (const disturbance of DISTURBANCES)
      it(`is resumed after ${disturbance}`, async () => {
        const id = await pushed();
        fake.disturb(/cancel$/, disturbance);
        expect(await catchFailure(() => voided(id))).to.include({ error_class: 'wait' });
        await voided(id);
        expect(found().map(({ status }) => status)).to.deep.equal(['cancelled']);
      });
  });

  describe('pullInvoice', () => {
    let id: string;
    beforeEach(async () => {
      id = (await pushInvoice()).provider_entity_id;
    });
    const pull = async () => (await account.pullInvoice!(id))!;
    const payments = async () =>
      (await pull()).payments.map(
        ({ payment_status, amount, refunded_amount }) => `${payment_status} ${amount} -${refunded_amount}`,
      );

    it('reads an open invoice that nobody has tried to pay', async () => {
      const url = `https://rzp.example/i/${id}`;
      const common = { provider_entity_id: id, url, total: '119.1', currency: 'inr' };
      expect(await pull()).to.deep.equal({ ...common, invoice_status: 'open', payments: [] });
    });

    it('reads what was paid, not what was asked for', async () => {
      const { id: payment_id } = fake.book.payInvoice(id, { amount: 4_000 });
      const { invoice_status, payments: read } = await pull();
      expect(invoice_status).to.equal('open');
      const { paid_at, ...rest } = read[0]!;
      expect(rest).to.deep.equal({
        ...{ provider_payment_id: payment_id, payment_status: 'succeeded', amount: '40', currency: 'inr' },
        ...{ refunded_amount: '0', refunds: [], provider_tax: null },
      });
      expect(Date.parse(paid_at!)).to.be.closeTo(Date.now(), 60_000);
      fake.book.payInvoice(id);
      expect((await pull()).invoice_status).to.equal('paid');
      expect((await payments()).sort()).to.deep.equal(['succeeded 40 -0', 'succeeded 79.1 -0']);
    });

    it('reads an authorized payment as pending and a declined one as failed', async () => {
      fake.book.payInvoice(id, { status: 'failed' });
      fake.book.payInvoice(id, { status: 'authorized' });
      expect(await payments()).to.deep.equal(['pending 119.1 -0', 'failed 119.1 -0']);
    });

    it('reads refunds of a part and of all', async () => {
      const payment = fake.book.payInvoice(id);
      fake.book.createRefund(payment.id, { amount: 1_910 });
      expect(await payments()).to.deep.equal(['succeeded 119.1 -19.1']);
      fake.book.createRefund(payment.id, {});
      expect(await payments()).to.deep.equal(['refunded 119.1 -119.1']);
    });

    it('reads each refund with its state and counts those that were made, also one that fails after that', async () => {
      const payment = fake.book.payInvoice(id);
      const notes = { farthing_refund_id: 'refund_1' };
      const ours = fake.book.createRefund(payment.id, { amount: 1_000, notes });
      fake.book.refund_status = 'pending';
      const pending = fake.book.createRefund(payment.id, { amount: 500 });
      const read = async () => (await pull()).payments.map((one) => [one.refunded_amount, one.refunds]);
      const pendingThere = {
        ...{ provider_refund_id: pending.id, amount: '5', refund_status: 'pending', error: null, refund_id: null },
      };
      const oursThere = { provider_refund_id: ours.id, amount: '10', refund_id: 'refund_1' };
      const made = { ...oursThere, refund_status: 'succeeded', error: null };
      expect(await read()).to.deep.equal([['10', [pendingThere, made]]]);
      fake.book.endRefund(ours.id, 'failed');
      const failed = {
        ...oursThere,
        ...{ refund_status: 'failed', error: `refund_failed: Razorpay could not send ${ours.id}` },
      };
      expect(await read()).to.deep.equal([['0', [pendingThere, failed]]]);
      fake.book.endRefund(pending.id, 'processed');
      expect(await payments()).to.deep.equal(['succeeded 119.1 -5']);
    });

    it('reads the refunds of all pages', async () => {
      const payment = fake.book.payInvoice(id);
      for (let n = 0; n < 105; n++) fake.book.createRefund(payment.id, { amount: 100 });
      expect(await payments()).to.deep.equal(['succeeded 119.1 -105']);
      expect((await pull()).payments[0]!.refunds).to.have.length(105);
    });

    it('asks a person about a refund with an unknown status', async () => {
      const refund = fake.book.createRefund(fake.book.payInvoice(id).id, { amount: 100 });
      refund.status = 'melted';
      const failure = await catchFailure(pull);
      expect([failure.error_class, failure.message]).to.deep.equal([
        'person',
        `the refund ${refund.id} has the status melted at Razorpay`,
      ]);
    });

    it('reads a cancelled one as void', async () => {
      fake.book.cancelInvoice(id);
      expect((await pull()).invoice_status).to.equal('void');
    });

    it('asks a person about an unknown status', async () => {
      fake.book.find('invoice', id)['status'] = 'melted';
      const failure = await catchFailure(pull);
      expect(failure.error_class).to.equal('person');
      expect(failure.message).to.contain('melted');
    });

    it('returns null for an invoice that is not there, or for what is no id', async () => {
      expect(await account.pullInvoice!('inv_missing')).to.equal(null);
      expect(await account.pullInvoice!('pay_1/../../customers')).to.equal(null);
    });

    it('finds the invoice of a payment, a refund and a dispute', async () => {
      const payment = fake.book.payInvoice(id);
      const refund = fake.book.createRefund(payment.id, { amount: 100 });
      const dispute = fake.book.disputePayment(payment.id);
      const list = (kind: 'payment' | 'refund' | 'dispute' | 'invoice', provider_entity_id: string) =>
        account.listConcernedInvoices!({ kind, provider_entity_id });
      expect(await list('invoice', id)).to.deep.equal([id]);
      expect(await list('payment', payment.id)).to.deep.equal([id]);
      expect(await list('refund', refund.id)).to.deep.equal([id]);
      expect(await list('dispute', dispute.id)).to.deep.equal([id]);
    });

    it('finds none for a payment link or what is not there', async () => {
      const link = fake.book.createLink({ amount: 100, currency: 'INR' });
      const payment = fake.book.payLink(link.id);
      for (const provider_entity_id of [link.id, payment.id, 'pay_missing', 'rfnd_missing', 'disp_missing', '../x'])
        expect(await account.listConcernedInvoices!({ kind: 'payment', provider_entity_id })).to.deep.equal([]);
    });
  });

  describe('errors', () => {
    it('asks to wait as long as Razorpay does', async () => {
      fake.disturb(/^GET customers/, 'rate_limit');
      expect(await catchFailure(() => account.identify())).to.include({ error_class: 'wait', retry_after_seconds: 2 });
    });

    it('asks to wait if nobody answers, and does not quote the credentials', async () => {
      await fake.stop();
      const failure = await catchFailure(() => account.identify());
      expect(failure).to.include({ error_class: 'wait', retry_after_seconds: null });
      expect(failure.message).to.contain('ECONNREFUSED');
      expect(`${failure.stack} ${JSON.stringify(failure)} ${failure.cause}`).not.to.contain('secret_fake');
      await fake.start();
    });

    it('names the field and the reason of a refusal', async () => {
      const failure = await catchFailure(() => account.pushCustomer!({ ...CUSTOMER, email: 'nobody' }));
      expect(failure).to.include({ error_class: 'person', provider_code: 'BAD_REQUEST_ERROR' });
      expect(failure.message).to.contain('The email must be a valid email address.').and.to.contain('email');
    });
  });
});
