/**
 * An account at Stripe: pushed and pulled records, and interrupted pushes, each of which is resumed with one record
 * there. Stripe's library talks to a stateful fake.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { Stripe } from 'stripe';
import type { PushedInvoiceLine } from '../../../core/platform/integration/pushed-lines.ts';
import type { ProviderAccount, PushedCustomer, PushedInvoice } from '../../../integrations/account.ts';
import { ProviderError } from '../../../integrations/provider-error.ts';
import { toProviderError } from '../../../integrations/stripe/errors.ts';
import { stripe } from '../../../integrations/stripe/provider.ts';
import { catchFailure } from '../../support/providers/failure.ts';
import { type Disturbance, StripeFake } from '../../support/providers/stripe-fake.ts';

const DAY_SECONDS = 86_400;

const CUSTOMER: PushedCustomer = {
  key: 'tenant:env:cust_1:push:1',
  key_age_seconds: 0,
  key_created_at: new Date(),
  is_key_renewed: false,
  customer_id: 'cust_1',
  external_id: 'acme',
  name: 'Acme',
  email: 'billing@acme.example',
  address: { line1: 'Way 1', line2: '', city: 'Bern', state: '', postal_code: '3000', country: 'CH' },
};

const line = (amount: string, more: Partial<PushedInvoiceLine> = {}): PushedInvoiceLine => ({
  description: `for ${amount}`,
  amount,
  line_item_id: `line_${amount}`,
  period_start: '2026-10-01T00:00:00.000Z',
  period_end: '2026-11-01T00:00:00.000Z',
  ...more,
});

describe('integrations/stripe/account', () => {
  let fake: StripeFake;
  let account: ProviderAccount;
  let customer_id: string;

  const open = (secret_key = 'sk_test_fake', more = {}) =>
    stripe.account!.open({ secret_key, ...more }, { address: fake.url });

  beforeEach(async () => {
    fake = await new StripeFake().start();
    account = await open();
    customer_id = fake.book.createCustomer({ name: 'Acme' }).id;
  });
  afterEach(() => fake.stop());

  const invoice = (more: Partial<PushedInvoice> = {}): PushedInvoice => ({
    key: 'tenant:env:inv_1:push:1',
    key_age_seconds: 0,
    key_created_at: new Date(),
    is_key_renewed: false,
    invoice_id: 'inv_1',
    invoice_number: 'INV-0001',
    provider_customer_id: customer_id,
    currency: 'usd',
    lines: [line('100.10'), line('-20.05'), line('19', { line_item_id: null, period_start: null, period_end: null })],
    total: '99.05',
    due_date: '2199-01-01T00:00:00.000Z',
    ...more,
  });

  /** Lists the invoices at Stripe: status, total in minor units, amounts of the lines. */
  const found = () =>
    fake.listInvoices().map(({ id, status, total }) => ({
      status,
      total,
      amounts: fake.book.lines.get(id)!.map(({ amount }) => amount),
    }));
  const looseItems = () => fake.book.list('invoiceitem').filter((item) => item['invoice'] === null);
  const OPEN = [{ status: 'open', total: 9_905, amounts: [10_010, -2_005, 1_900] }];

  describe('identify', () => {
    it('reads the id and the name of the account', async () => {
      expect(await account.identify()).to.deep.equal({ provider_account_id: 'acct_fake', name: 'Fake Ltd' });
    });

    it('refuses a key of another account than the stated one', async () => {
      const { error_class, message } = await catchFailure(async () =>
        (await open('sk_test_fake', { account_id: 'acct_other' })).identify(),
      );
      expect(error_class).to.equal('person');
      expect(message).to.contain('acct_fake').and.to.contain('acct_other');
    });

    it('names no account if a restricted key may not read it, and believes no statement about it', async () => {
      fake.forbidden.push(/^GET account/);
      const restricted = await open('rk_test_fake');
      expect(await restricted.identify()).to.deep.equal({ provider_account_id: null, name: null });
      for (const account_id of ['acct_fake', 'acct_other']) {
        const failure = await catchFailure(async () => (await open('rk_test_fake', { account_id })).identify());
        expect(failure).to.include({ error_class: 'person', is_unauthorized: false });
        expect(failure.message).to.contain('may not read its account');
      }
    });

    it('refuses an unknown key and does not quote it', async () => {
      const failure = await catchFailure(async () => (await open('sk_test_wrong1234')).identify());
      expect(failure).to.include({ error_class: 'person', is_unauthorized: true });
      expect(`${failure.message} ${failure.stack} ${String(failure.cause)}`).not.to.match(/sk_test|1234/);
    });
  });

  describe('detectLive', () => {
    const detectLive = (secret_key: string) => stripe.account!.detectLive({ secret_key });
    it('reads the mode from the key', () => {
      expect(['sk_test_1', 'rk_test_1', 'sk_live_1', 'rk_live_1'].map(detectLive)).to.deep.equal([
        false,
        false,
        true,
        true,
      ]);
    });
    for (const key of ['pk_live_1', 'whsec_1', 'sk_1', 'sk_prod_1', 'xsk_live_1'])
      it(`refuses ${key}`, () => expect(() => detectLive(key)).to.throw('must begin with'));
  });

  describe('pushCustomer', () => {
    const push = (more: Partial<PushedCustomer> = {}) => account.pushCustomer!({ ...CUSTOMER, ...more });
    const pushed = () =>
      fake.book.list('customer').filter(({ metadata }) => metadata['farthing_customer_id'] !== undefined);

    it('sends name, address and our ids', async () => {
      const { provider_entity_id } = await push();
      expect(fake.book.find('customer', provider_entity_id)).to.deep.include({
        name: 'Acme',
        email: 'billing@acme.example',
        address: { line1: 'Way 1', city: 'Bern', postal_code: '3000', country: 'CH' },
        metadata: { farthing_customer_id: 'cust_1', farthing_external_id: 'acme' },
      });
    });

    it('sends no empty texts', async () => {
      const address = { line1: '', line2: '', city: '', state: '', postal_code: '', country: '' };
      const { provider_entity_id } = await push({ name: '', email: '', address });
      expect(fake.book.find('customer', provider_entity_id)).to.include({ name: null, email: null, address: null });
    });

    for (const disturbance of ['lost_request', 'lost_answer', 'fault', 'lost_fault', 'unavailable', 'html'] as const)
      it(`creates one customer although the first answer is: ${disturbance}`, async () => {
        fake.disturb(/^POST customers/, disturbance);
        expect(await catchFailure(push)).to.include({ error_class: 'wait' });
        const { provider_entity_id } = await push();
        expect(pushed().map(({ id }) => id)).to.deep.equal([provider_entity_id]);
      });

    it('creates one customer although the library repeats the request by itself', async () => {
      fake.disturb(/^POST customers/, 'closed');
      const { provider_entity_id } = await push();
      expect(pushed().map(({ id }) => id)).to.deep.equal([provider_entity_id]);
    });

    it('finds the customer if its name has changed since the lost answer', async () => {
      fake.disturb(/^POST customers/, 'lost_answer');
      await catchFailure(push);
      const { provider_entity_id } = await push({ name: 'Acme Ltd' });
      expect(pushed().map(({ id }) => id)).to.deep.equal([provider_entity_id]);
    });

    it('finds the customer in the list after the key is forgotten', async () => {
      fake.disturb(/^POST customers/, 'lost_answer');
      await catchFailure(push);
      fake.forgetKeys();
      const { provider_entity_id } = await push({ key_age_seconds: DAY_SECONDS });
      expect(pushed().map(({ id }) => id)).to.deep.equal([provider_entity_id]);
    });

    it('finds the customer by the search if the list is too long', async () => {
      fake.disturb(/^POST customers/, 'lost_answer');
      await catchFailure(push);
      fake.forgetKeys();
      for (let n = 0; n < 1_000; n++) fake.book.createCustomer({ name: `later ${n}` });
      fake.indexSearch();
      const { provider_entity_id } = await push({ key_age_seconds: DAY_SECONDS });
      expect(pushed().map(({ id }) => id)).to.deep.equal([provider_entity_id]);
    });

    it('creates the customer after the key is forgotten if it is not there', async () => {
      fake.disturb(/^POST customers/, 'lost_request');
      await catchFailure(push);
      await push({ key_age_seconds: DAY_SECONDS });
      expect(pushed()).to.have.length(1);
    });
  });

  describe('pushInvoice', () => {
    const push = (more: Partial<PushedInvoice> = {}) => account.pushInvoice!(invoice(more));

    it('opens an invoice with one amount per line and returns its page', async () => {
      const { provider_entity_id, url } = await push();
      expect(url).to.equal(`https://invoice.stripe.example/i/${provider_entity_id}`);
      expect(found()).to.deep.equal(OPEN);
      expect(fake.book.find('invoice', provider_entity_id)).to.deep.include({
        customer: customer_id,
        currency: 'usd',
        collection_method: 'send_invoice',
        auto_advance: false,
        due_date: Date.parse('2199-01-01T00:00:00Z') / 1_000,
        metadata: { farthing_invoice_id: 'inv_1', farthing_invoice_number: 'INV-0001' },
      });
    });

    it('sends descriptions, our ids and periods that include their end', async () => {
      const { provider_entity_id } = await push();
      const [first, , tax] = fake.book.lines.get(provider_entity_id)!;
      const period = {
        start: Date.parse('2026-10-01T00:00:00Z') / 1_000,
        end: Date.parse('2026-10-31T23:59:59Z') / 1_000,
      };
      expect(first).to.deep.include({
        description: 'for 100.10',
        metadata: { farthing_line_item_id: 'line_100.10' },
        period,
      });
      expect(tax).to.deep.include({ description: 'for 19', metadata: {}, period: null });
    });

    it('is due at once without a due date, or if it is past', async () => {
      for (const [n, due_date] of [null, '2020-01-01T00:00:00Z'].entries()) {
        const { provider_entity_id } = await push({ key: `due:${n}`, due_date });
        expect(Number(fake.book.find('invoice', provider_entity_id)['due_date'])).to.be.closeTo(Date.now() / 1_000, 60);
      }
    });

    it('leaves loose items of the customer there', async () => {
      fake.book.createItem({ customer: customer_id, amount: 500, currency: 'usd' });
      await push();
      expect(found()).to.deep.equal(OPEN);
      expect(looseItems()).to.have.length(1);
    });

    it('folds the smallest of more than 250 lines into one', async () => {
      const lines = Array.from({ length: 300 }, (_, n) => line(n % 2 === 0 ? `0.${String(n + 100)}`.slice(0, 4) : '5'));
      const total = (lines.reduce((sum, { amount }) => sum + Math.round(Number(amount) * 100), 0) / 100).toFixed(2);
      const { provider_entity_id } = await push({ lines, total });
      const there = fake.book.lines.get(provider_entity_id)!;
      expect(there).to.have.length(250);
      expect(there.at(-1)!['description']).to.equal('51 further lines of smaller amounts');
      expect(there.reduce((sum, { amount }) => sum + amount, 0)).to.equal(Math.round(Number(total) * 100));
      const larger = there.slice(0, -1).map(({ amount }) => amount);
      expect(Math.min(...larger)).to.be.at.least(
        Math.max(...lines.map(({ amount }) => Number(amount) * 100).filter((n) => n < Math.min(...larger))),
      );
    });

    const refused: [name: string, more: Partial<PushedInvoice>, why: RegExp][] = [
      ['a part of the smallest unit', { lines: [line('0.005')], total: '0.005' }, /cannot represent 0\.005 usd/],
      ['lines that do not add up', { total: '99.06' }, /lines add up to 99\.05 usd, the total is 99\.06/],
      ['no lines', { lines: [], total: '0' }, /without lines/],
      ['a negative total', { lines: [line('-1')], total: '-1' }, /cannot be paid/],
    ];
    for (const [name, more, why] of refused)
      it(`refuses before any request: ${name}`, async () => {
        const failure = await catchFailure(() => push(more));
        expect(failure.error_class).to.equal('person');
        expect(failure.message).to.match(why);
        expect(fake.requests).to.deep.equal([]);
      });

    const STEPS: [name: string, at: RegExp][] = [
      ['the draft', /^POST invoices$/],
      ['the lines', /add_lines/],
      ['the finalization', /finalize/],
    ];
    const DISTURBANCES: Disturbance[] = [
      'lost_request',
      'lost_answer',
      'fault',
      'lost_fault',
      'unavailable',
      'rate_limit',
      'html',
    ];
    for (const [name, at] of STEPS)
      for (const disturbance of DISTURBANCES) {
        it(`resumes after ${disturbance} at ${name}`, async () => {
          fake.disturb(at, disturbance);
          expect(await catchFailure(push)).to.include({ error_class: 'wait' });
          await push();
          expect(found()).to.deep.equal(OPEN);
          expect(looseItems()).to.deep.equal([]);
        });

        it(`resumes after ${disturbance} at ${name} when the keys are forgotten`, async () => {
          fake.disturb(at, disturbance);
          await catchFailure(push);
          fake.forgetKeys();
          await push({ key_age_seconds: DAY_SECONDS });
          expect(found()).to.deep.equal(OPEN);
        });
      }

    it('ends with one open invoice after any interruptions', async () => {
      const interruption = fc.record({
        step: fc.constantFrom(...STEPS.map(([, at]) => at)),
        disturbance: fc.constantFrom('closed' as const, ...DISTURBANCES),
        areKeysForgotten: fc.boolean(),
      });
      let number = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(interruption, { maxLength: 4 }), async (interruptions) => {
          number += 1;
          const pushed = { key: `random:${number}`, invoice_id: `inv_random_${number}` };
          let key_age_seconds = 0;
          for (const { step, disturbance, areKeysForgotten } of interruptions) {
            fake.disturb(step, disturbance);
            await push({ ...pushed, key_age_seconds }).catch((error: unknown) =>
              expect(error).to.include({ error_class: 'wait' }),
            );
            if (!areKeysForgotten) continue;
            fake.forgetKeys();
            key_age_seconds = DAY_SECONDS;
          }
          fake.clearDisturbances();
          await push({ ...pushed, key_age_seconds });
          const there = fake
            .listInvoices()
            .filter(({ metadata }) => metadata['farthing_invoice_id'] === pushed.invoice_id);
          expect(there.map(({ status, total }) => ({ status, total }))).to.deep.equal([
            { status: 'open', total: 9_905 },
          ]);
          expect(looseItems()).to.deep.equal([]);
        }),
        { numRuns: 60 },
      );
    }).timeout(60_000);

    it('returns the open invoice if only our record of it was lost', async () => {
      const first = await push();
      expect(await push()).to.deep.equal(first);
      fake.forgetKeys();
      expect(await push({ key_age_seconds: DAY_SECONDS })).to.deep.equal(first);
      expect(found()).to.deep.equal(OPEN);
    });

    it('waits while a request with the key is in flight', async () => {
      const held = fake.hold(/^POST invoices$/);
      const first = push();
      await held.arrived;
      expect(await catchFailure(push)).to.include({ error_class: 'wait', provider_code: 'idempotency_key_in_use' });
      held.release();
      await first;
      await push();
      expect(found()).to.deep.equal(OPEN);
    });

    it('leaves nothing there if the total there is another, and names both', async () => {
      fake.book.surcharge = 250;
      const failure = await catchFailure(push);
      expect(failure.error_class).to.equal('person');
      expect(failure.message).to.contain('99.05 usd').and.to.contain('101.55 usd');
      expect(found()).to.deep.equal([]);
      expect(fake.book.list('invoiceitem')).to.deep.equal([]);
    });

    for (const at of [/remove_lines/, /^DELETE invoices/])
      for (const disturbance of ['lost_request', 'lost_answer'] as const)
        it(`leaves nothing there although ${at} ends with ${disturbance}`, async () => {
          fake.book.surcharge = 250;
          fake.disturb(at, disturbance);
          expect(await catchFailure(push)).to.include({ error_class: 'wait' });
          expect((await catchFailure(push)).message)
            .to.contain('99.05 usd')
            .and.to.contain('101.55 usd');
          expect(found()).to.deep.equal([]);
          expect(fake.book.list('invoiceitem')).to.deep.equal([]);
        });

    it('leaves no draft there if a right is missing', async () => {
      account = await open('rk_test_fake');
      fake.forbidden.push(/add_lines/);
      expect(await catchFailure(push)).to.include({ error_class: 'person', is_unauthorized: true });
      expect(found()).to.deep.equal([]);
    });

    it('takes over an invoice that a person finalized meanwhile', async () => {
      fake.disturb(/finalize/, 'lost_request');
      await catchFailure(push);
      fake.book.finalizeInvoice(fake.listInvoices()[0]!.id);
      const { url } = await push();
      expect(url).to.contain('invoice.stripe.example');
      expect(found()).to.deep.equal(OPEN);
    });

    it('needs a person if a person added a line and finalized it meanwhile', async () => {
      fake.disturb(/finalize/, 'lost_request');
      await catchFailure(push);
      const { id } = fake.listInvoices()[0]!;
      fake.book.addLines(id, [{ amount: 100 }]);
      fake.book.finalizeInvoice(id);
      const failure = await catchFailure(push);
      expect(failure.error_class).to.equal('person');
      expect(failure.message).to.contain('99.05 usd').and.to.contain('100.05 usd');
    });

    it('needs a person if the customer has a balance there', async () => {
      fake.book.find('customer', customer_id).balance = 5_000;
      const failure = await catchFailure(push);
      expect(failure.error_class).to.equal('person');
      expect(failure.message).to.contain('balance at Stripe');
      expect(found()).to.deep.equal([]);
    });

    it('needs a person if the customer was deleted there', async () => {
      fake.book.deleteCustomer(customer_id);
      expect(await catchFailure(push)).to.include({ error_class: 'person', provider_code: 'resource_missing' });
    });
  });

  describe('voidInvoice', () => {
    const pushed = async () => (await account.pushInvoice!(invoice())).provider_entity_id;

    it('voids an open invoice, and a void one again', async () => {
      const id = await pushed();
      await account.voidInvoice!(id, 'void:1');
      await account.voidInvoice!(id, 'void:1');
      expect(found().map(({ status }) => status)).to.deep.equal(['void']);
    });

    it('voids an uncollectible one', async () => {
      const id = await pushed();
      fake.book.markUncollectible(id);
      await account.voidInvoice!(id, 'void:1');
      expect(found().map(({ status }) => status)).to.deep.equal(['void']);
    });

    it('deletes a draft with its lines', async () => {
      const { id } = fake.book.createInvoice({ customer: customer_id });
      fake.book.addLines(id, [{ amount: 5 }]);
      await account.voidInvoice!(id, 'void:1');
      expect(found()).to.deep.equal([]);
      expect(looseItems()).to.deep.equal([]);
    });

    it('has no effect on a missing one', async () => {
      await account.voidInvoice!('in_missing', 'void:1');
    });

    it('needs a person for a paid one', async () => {
      const id = await pushed();
      fake.book.payInvoice(id, { card: 'pm_card_visa' });
      expect(await catchFailure(() => account.voidInvoice!(id, 'void:1'))).to.include({ error_class: 'person' });
    });

    for (const disturbance of ['lost_request', 'lost_answer', 'fault', 'lost_fault'] as const)
      it(`is resumed after ${disturbance}`, async () => {
        const id = await pushed();
        fake.disturb(/void$/, disturbance);
        expect(await catchFailure(() => account.voidInvoice!(id, 'void:1'))).to.include({ error_class: 'wait' });
        await account.voidInvoice!(id, 'void:1');
        expect(found().map(({ status }) => status)).to.deep.equal(['void']);
      });
  });

  describe('attachPayment', () => {
    const newOpen = () => {
      const customer = fake.book.createCustomer({ name: 'Payer' }).id;
      const invoice = fake.book.createInvoice({ customer, currency: 'usd' });
      const { id } = invoice;
      fake.book.addLines(id, [{ amount: 1_000 }]);
      fake.book.finalizeInvoice(id);
      const intent = fake.book.add('pi', 'payment_intent', {
        ...{ customer, amount: 400, amount_received: 400, status: 'succeeded' },
      });
      const charge = { provider_invoice_id: id, gateway_payment_id: intent.id, payment_id: 'pay_attached' };
      return { id, charge, invoice };
    };

    it('counts the payment once, whatever is lost', async () => {
      const { charge, invoice } = newOpen();
      fake.disturb(/attach_payment$/, 'lost_answer');
      expect((await catchFailure(() => account.attachPayment!(charge))).error_class).to.equal('wait');
      await account.attachPayment!(charge);
      await account.attachPayment!(charge);
      expect(invoice).to.include({ status: 'open', amount_paid: 400 });
    });

    it('asks a person if it is greater than the rest of the invoice', async () => {
      const { charge, invoice } = newOpen();
      fake.book.lowerRemaining(invoice, 700);
      const error = await catchFailure(() => account.attachPayment!(charge));
      expect([error.error_class, invoice.amount_paid]).to.deep.equal(['person', 0]);
    });

    it('asks a person if the invoice takes it no longer', async () => {
      const { id, charge } = newOpen();
      fake.book.voidInvoice(id);
      expect((await catchFailure(() => account.attachPayment!(charge))).error_class).to.equal('person');
    });
  });

  describe('pullInvoice', () => {
    let id: string;
    beforeEach(async () => {
      id = (await account.pushInvoice!(invoice())).provider_entity_id;
    });
    const pull = async () => (await account.pullInvoice!(id))!;
    const decline = (card: string) => expect(() => fake.book.payInvoice(id, { card })).to.throw();
    const payments = async () =>
      (await pull()).payments.map(({ payment_status, amount, currency }) => `${payment_status} ${amount} ${currency}`);

    it('reads an open invoice that nobody has tried to pay', async () => {
      const url = `https://invoice.stripe.example/i/${id}`;
      const common = { provider_entity_id: id, url, total: '99.05', currency: 'usd' };
      expect(await pull()).to.deep.equal({ ...common, invoice_status: 'open', payments: [], credits: [] });
    });

    it('reads a payment', async () => {
      fake.book.payInvoice(id, { card: 'pm_card_visa' });
      const {
        invoice_status,
        payments: [payment],
      } = await pull();
      expect(invoice_status).to.equal('paid');
      expect(payment).to.include({ payment_status: 'succeeded', amount: '99.05', currency: 'usd' });
      expect(payment!.provider_payment_id).to.match(/^pi_/);
      expect(Date.parse(payment!.paid_at!)).to.be.closeTo(Date.now(), 60_000);
    });

    it('reads what was paid, not what was asked for', async () => {
      fake.book.payInvoice(id, { card: 'pm_card_visa', amount: 4_000 });
      expect((await pull()).invoice_status).to.equal('open');
      expect(await payments()).to.deep.equal(['succeeded 40 usd']);
      fake.book.payInvoice(id, { card: 'pm_card_visa' });
      expect((await pull()).invoice_status).to.equal('paid');
      expect((await payments()).sort()).to.deep.equal(['succeeded 40 usd', 'succeeded 59.05 usd']);
    });

    it('reads what has arrived if it is less than the payment asked for', async () => {
      fake.book.payInvoice(id, { card: 'pm_card_visa', received: 5_000 });
      expect((await pull()).invoice_status).to.equal('open');
      expect(await payments()).to.deep.equal(['succeeded 50 usd']);
    });

    it('reads more payments than an invoice contains', async () => {
      for (let n = 0; n < 12; n++) fake.book.payInvoice(id, { card: 'pm_card_visa', amount: 100 });
      expect(await payments()).to.deep.equal(Array(12).fill('succeeded 1 usd'));
    });

    it('reads a declined card as failed and a waiting customer as pending', async () => {
      decline('pm_card_chargeDeclined');
      expect(await payments()).to.deep.equal(['failed 99.05 usd']);
      decline('pm_card_authenticationRequired');
      expect(await payments()).to.deep.equal(['pending 99.05 usd']);
      fake.book.payInvoice(id, { card: 'pm_card_visa' });
      expect(await payments()).to.deep.equal(['succeeded 99.05 usd']);
    });

    it('reads a payment outside Stripe', async () => {
      fake.book.payInvoice(id, { outside: true });
      expect((await pull()).invoice_status).to.equal('paid');
      expect(await payments()).to.deep.equal(['succeeded 99.05 usd']);
    });

    it('reads a void and an uncollectible invoice', async () => {
      fake.book.markUncollectible(id);
      expect((await pull()).invoice_status).to.equal('uncollectible');
      fake.book.voidInvoice(id);
      expect(await pull())
        .to.include({ invoice_status: 'void' })
        .and.to.deep.include({ payments: [] });
    });

    it('returns null for an invoice that is not there', async () => {
      expect(await account.pullInvoice!('in_missing')).to.equal(null);
    });
  });

  describe('errors', () => {
    it('asks to wait as long as Stripe does', async () => {
      fake.disturb(/^GET account/, 'rate_limit');
      const failure = await catchFailure(() => account.identify());
      expect(failure).to.include({ error_class: 'wait', retry_after_seconds: 2, provider_code: 'rate_limit' });
    });

    it('asks to wait if nobody answers', async () => {
      await fake.stop();
      expect(await catchFailure(() => account.identify())).to.include({
        error_class: 'wait',
        retry_after_seconds: null,
      });
      await fake.start();
    });

    it('needs a person for a refused value, and names the code and the request', async () => {
      const failure = await catchFailure(() => account.pushCustomer!({ ...CUSTOMER, email: 'nobody' }));
      expect(failure).to.include({ error_class: 'person', is_unauthorized: false, provider_code: 'email_invalid' });
      expect(failure.message).to.match(/Invalid email address: nobody \(email_invalid, req_\d+\)/);
    });

    const { StripeError, StripeInvalidRequestError } = Stripe.errors;
    const classOf = (raw: ConstructorParameters<typeof StripeError>[0]) =>
      (toProviderError(StripeError.generate(raw!)) as ProviderError).error_class;

    it('is done if the record is in the wanted state', () => {
      for (const code of ['resource_already_exists', 'charge_already_captured', 'charge_already_refunded'])
        expect(classOf({ type: 'invalid_request_error', code, statusCode: 400, message: '' })).to.equal('done');
    });

    it('waits for a lock and a server, also with an answer that is no fault of ours', () => {
      for (const statusCode of [409, 424, 429, 500, 502, 503, 504])
        expect(classOf({ type: 'api_error', statusCode, message: '' }), String(statusCode)).to.equal('wait');
      expect(classOf({ type: 'invalid_request_error', code: 'lock_timeout', statusCode: 400, message: '' })).to.equal(
        'wait',
      );
    });

    it('a closed account or an expired key is unauthorized', () => {
      for (const code of ['account_invalid', 'api_key_expired']) {
        const raw = { type: 'invalid_request_error', code, statusCode: 403, message: '' } as const;
        expect(toProviderError(new StripeInvalidRequestError(raw))).to.include({
          error_class: 'person',
          is_unauthorized: true,
        });
      }
    });

    it('an error of our own stays what it is', () => {
      const own = new TypeError('ours');
      expect(toProviderError(own)).to.equal(own);
    });
  });
});
