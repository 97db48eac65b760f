/**
 * An account at Paddle: pushed and pulled records, and interrupted pushes, each of which is resumed with one record
 * there.
 */
import { expect } from 'chai';
import type { PushedInvoiceLine } from '../../../core/platform/integration/pushed-lines.ts';
import type {
  ProviderAccount,
  PushedCreditNote,
  PushedCustomer,
  PushedInvoice,
} from '../../../integrations/account.ts';
import { paddle } from '../../../integrations/paddle/provider.ts';
import { catchFailure } from '../../support/providers/failure.ts';
import { PaddleFake } from '../../support/providers/paddle-fake.ts';
import type { AdjustmentRecord } from '../../support/providers/paddle-fake-adjustments.ts';
import type { AddressRecord, CustomerRecord, TransactionRecord } from '../../support/providers/paddle-fake-book.ts';

const PUSH = { key: 'imap_1', key_age_seconds: 0, key_created_at: new Date(), is_key_renewed: false };
const ADDRESS = { line1: 'Way 1', line2: '', city: 'Berlin', state: 'BE', postal_code: '10115', country: 'DE' };
const NO_ADDRESS = { line1: '', line2: '', city: '', state: '', postal_code: '', country: '' };
const CUSTOMER: PushedCustomer = {
  ...PUSH,
  customer_id: 'cust_1',
  external_id: 'acme',
  name: 'Acme Ltd',
  email: 'books@acme.example',
  address: ADDRESS,
};

const line = (amount: string, line_item_id: string | null = null): PushedInvoiceLine => ({
  ...{ description: `for ${amount}`, amount, line_item_id, period_start: null, period_end: null },
});

describe('integrations/paddle/account', () => {
  let fake: PaddleFake;
  let account: ProviderAccount;
  let customer_id: string;

  const open = (secrets: object = {}) =>
    paddle.account!.open({ api_key: fake.api_key, ...secrets }, { address: fake.url });

  beforeEach(async () => {
    fake = await new PaddleFake().start();
    account = await open();
    customer_id = (await account.pushCustomer!(CUSTOMER)).provider_entity_id;
  });
  afterEach(() => fake.stop());

  const invoice = (more: Partial<PushedInvoice> = {}): PushedInvoice => ({
    ...PUSH,
    ...{ invoice_id: 'inv_1', invoice_number: 'INV-1', provider_customer_id: customer_id, currency: 'usd' },
    lines: [line('80.10', 'line_1'), line('19.90', 'line_2')],
    ...{ total: '100', due_date: null, billing_address: ADDRESS },
    ...more,
  });
  const note = (provider_invoice_id: string, more: Partial<PushedCreditNote> = {}): PushedCreditNote => ({
    ...PUSH,
    ...{ credit_note_id: 'cn_1', credit_note_number: 'CN-1', provider_customer_id: customer_id, provider_invoice_id },
    ...{ currency: 'usd', lines: [line('30', 'line_2')], total: '30', effect: 'lowers_remaining', reason: 'late' },
    ...more,
  });

  const find = (id: string) => fake.book.find<TransactionRecord>(id, 'txn');
  const statuses = () => fake.book.list<TransactionRecord>('txn').map(({ status }) => status);
  const push = async (more: Partial<PushedInvoice> = {}) =>
    (await account.pushInvoice!(invoice(more))).provider_entity_id;

  describe('identify', () => {
    it('reads the account of the key', async () => {
      expect(await account.identify()).to.deep.equal({ provider_account_id: '12345', name: 'Acme Sandbox' });
    });

    it('tells that a key is refused, without the key', async () => {
      const other = await open({ api_key: 'pdl_sdbx_apikey_other' });
      const { is_unauthorized, message } = await catchFailure(() => other.identify());
      expect(is_unauthorized).to.equal(true);
      expect(message).to.contain('forbidden').and.not.contain('other');
    });

    it('knows from the key whether money is real, and refuses a key that does not show it', () => {
      const { detectLive } = paddle.account!;
      expect(detectLive({ api_key: 'pdl_live_apikey_1' })).to.equal(true);
      expect(detectLive({ api_key: fake.api_key })).to.equal(false);
      expect(() => detectLive({ api_key: 'a'.repeat(50) })).to.throw('must begin with pdl_live_apikey_');
    });
  });

  describe('pushCustomer', () => {
    it('sends name, email, our id, and the address once', async () => {
      const expected = { farthing_customer_id: 'cust_1', farthing_external_id: 'acme' };
      expect(fake.book.find<CustomerRecord>(customer_id, 'ctm')).to.deep.include({
        ...{ email: 'books@acme.example', name: 'Acme Ltd', custom_data: expected },
      });
      expect((await account.pushCustomer!(CUSTOMER)).provider_entity_id).to.equal(customer_id);
      expect(fake.book.list<AddressRecord>('add').map(({ country_code }) => country_code)).to.deep.equal(['DE']);
      expect([await account.hasCustomer!(customer_id), await account.hasCustomer!('../x')]).to.deep.equal([
        true,
        false,
      ]);
    });

    it('refuses the email of another customer, and names that one', async () => {
      const failure = await catchFailure(() => account.pushCustomer!({ ...CUSTOMER, customer_id: 'cust_2' }));
      expect(failure).to.include({ error_class: 'person', provider_entity_id: customer_id });
      expect(failure.message).to.contain(`link ${customer_id}`);
    });

    it('refuses a customer without an email', async () => {
      const { error_class, message } = await catchFailure(() => account.pushCustomer!({ ...CUSTOMER, email: '' }));
      expect([error_class, message]).to.deep.equal([
        'person',
        'Paddle requires an email of at most 320 characters: set email of cust_1',
      ]);
    });
  });

  describe('pushInvoice', () => {
    it('issues net lines, to which Paddle adds its tax', async () => {
      const made = await account.pushInvoice!(invoice());
      const transaction = find(made.provider_entity_id);
      expect(transaction).to.deep.include({ status: 'billed', collection_mode: 'manual', currency_code: 'USD' });
      expect(transaction.details.totals).to.deep.include({ subtotal: '10000', tax: '1900', total: '11900' });
      expect(transaction.billing_details).to.deep.include({
        ...{ enable_checkout: true, additional_information: 'Invoice INV-1' },
        payment_terms: { interval: 'day', frequency: 1 },
      });
      expect(made.url).to.equal(`https://pay.example/?_ptxn=${made.provider_entity_id}`);
    });

    it('sends the days until the due date', async () => {
      const id = await push({ due_date: new Date(Date.now() + 9.5 * 86_400_000).toISOString() });
      expect(find(id).billing_details!.payment_terms.frequency).to.equal(10);
    });

    it('lets no customer change a quantity, and sends the tax category', async () => {
      account = await open({ tax_category: 'saas' });
      await push();
      const { items } = JSON.parse(fake.bodies.find((body) => body.includes('"items"'))!);
      expect(items[0].price.quantity).to.deep.equal({ minimum: 1, maximum: 1 });
      expect(items[0].price.product).to.deep.equal({ name: 'for 80.10', tax_category: 'saas' });
    });

    it('is paid on a page in a currency that Paddle does not invoice', async () => {
      const id = await push({ currency: 'jpy', lines: [line('1200')], total: '1200' });
      expect(find(id)).to.deep.include({ status: 'ready', collection_mode: 'automatic', billing_details: null });
      expect((await account.pullInvoice!(id))!).to.include({ invoice_status: 'open', total: '1200', currency: 'jpy' });
    });

    it('sends a negative line as a part of the total', async () => {
      const id = await push({ lines: [line('120'), line('-20')] });
      const { totals, line_items } = find(id).details;
      expect([totals.subtotal, line_items.length]).to.deep.equal(['10000', 1]);
      expect(fake.bodies.at(-2)).to.contain('for 120: 120\\nfor -20: -20');
    });

    it('joins the smallest of more than 100 lines', async () => {
      const lines = Array.from({ length: 130 }, (_, index) => line(String(index + 1)));
      const id = await push({ lines, total: String((130 * 131) / 2) });
      expect(find(id).details.line_items).to.have.length(100);
    });

    const refused: [name: string, more: Partial<PushedInvoice>, why: RegExp][] = [
      ['a currency that Paddle lacks', { currency: 'kwd' }, /^Paddle has no amounts in kwd$/],
      ['a fraction of a cent', { lines: [line('100.001')], total: '100.001' }, /cannot represent 100\.001 usd/],
      ['lines that do not add up', { total: '99' }, /^the lines add up to 100 usd, the total is 99$/],
      ['no lines', { lines: [], total: '0' }, /^an invoice without lines/],
      ['less than the smallest amount', { lines: [line('0.50')], total: '0.50' }, /charge_limit/],
      [
        'an address without a state',
        { billing_address: { ...ADDRESS, state: '' } },
        /needs a country, postal code, state/,
      ],
      ['a text that is no customer', { provider_customer_id: '../x' }, /is no customer of Paddle/],
    ];
    for (const [name, more, why] of refused)
      it(`refuses ${name}, and leaves nothing open`, async () => {
        const { error_class, message } = await catchFailure(() => push(more));
        expect(error_class).to.equal('person');
        expect(message).to.match(why);
        expect(statuses()).to.deep.equal([]);
      });

    it('needs an address: the one of the invoice, or one that Paddle has', async () => {
      const other = { ...CUSTOMER, customer_id: 'cust_2', email: 'other@acme.example', address: NO_ADDRESS };
      const provider_customer_id = (await account.pushCustomer!(other)).provider_entity_id;
      const more = { provider_customer_id, billing_address: NO_ADDRESS };
      expect((await catchFailure(() => push(more))).message).to.contain('set address_country');
      const body = { country_code: 'GB', first_line: '1', city: 'York', region: 'York', postal_code: 'YO1' };
      const { id } = fake.book.createAddress(provider_customer_id, body);
      expect(find(await push(more)).address_id).to.equal(id);
    });

    it('names the missing payment link', async () => {
      fake.book.has_payment_link = false;
      expect((await catchFailure(() => push())).message).to.contain('set the default payment link');
    });

    it('cancels the draft if Paddle has another total, and names both', async () => {
      fake.book.surcharge = 250;
      const { error_class, message } = await catchFailure(() => push());
      expect(error_class).to.equal('person');
      expect(message).to.match(/^the total of inv_1 is 100 usd, but 102\.5 usd without tax at Paddle \(txn_/);
      expect(statuses()).to.deep.equal(['canceled']);
    });

    for (const step of [/^POST transactions$/, /^PATCH transactions\/\w+$/])
      for (const failure of ['lost_answer', 'lost_fault', 'lost_request', 'fault', 'rate_limit', 'html'] as const)
        it(`${failure} of ${step.source} is resumed with one invoice`, async () => {
          fake.disturb(step, failure);
          const { error_class, retry_after_seconds } = await catchFailure(() => push());
          expect([error_class, retry_after_seconds]).to.deep.equal(['wait', failure === 'rate_limit' ? 2 : null]);
          const id = await push({ key_age_seconds: 60 });
          expect(statuses()).to.deep.equal(['billed']);
          expect((await account.findInvoice!(invoice()))!.provider_entity_id).to.equal(id);
        });

    it('two attempts at once leave at most one invoice', async () => {
      const held = fake.hold(/^POST transactions$/);
      const first = push().catch((error: unknown) => error);
      await held.arrived;
      const second = push().catch((error: unknown) => error);
      await second;
      held.release();
      await first;
      await push({ key_age_seconds: 60 });
      expect(statuses().filter((status) => status !== 'canceled')).to.deep.equal(['billed']);
    });

    it('replaces the draft of an invoice that has changed since', async () => {
      fake.disturb(/^POST transactions$/, 'lost_answer');
      await catchFailure(() => push());
      const id = await push({ lines: [line('90')], total: '90', key_age_seconds: 60 });
      expect(statuses()).to.deep.equal(['billed', 'canceled']);
      expect(find(id).details.totals.subtotal).to.equal('9000');
    });
  });

  describe('voidInvoice', () => {
    it('cancels the invoice, once', async () => {
      const id = await push();
      for (let times = 0; times < 2; times++) await account.voidInvoice!(id, 'void');
      expect((await account.pullInvoice!(id))!.invoice_status).to.equal('void');
      expect(await account.findInvoice!(invoice())).to.equal(null);
      await account.voidInvoice!('txn_of_nobody', 'void');
    });

    it('refuses one that is paid or past due', async () => {
      const [paid, late] = [await push(), await push({ invoice_id: 'inv_2' })];
      fake.book.payTransaction(paid);
      fake.book.makePastDue(late);
      expect((await catchFailure(() => account.voidInvoice!(paid, 'void'))).message).to.contain(
        'is completed at Paddle',
      );
      expect((await catchFailure(() => account.voidInvoice!(late, 'void'))).error_class).to.equal('person');
    });
  });

  describe('pullInvoice', () => {
    it('reports the net amount as paid when Paddle completes it, and its tax beside it', async () => {
      const id = await push();
      fake.book.declinePayment(id);
      expect((await account.pullInvoice!(id))!).to.deep.include({ invoice_status: 'open', payments: [] });
      fake.book.payTransaction(id, { isProcessed: false });
      const paid = (await account.pullInvoice!(id))!;
      expect([paid.invoice_status, paid.payments[0]!.payment_status]).to.deep.equal(['open', 'pending']);
      fake.book.completeTransaction(id);
      const { paid_at, ...payment } = (await account.pullInvoice!(id))!.payments[0]!;
      expect(Date.parse(paid_at!)).to.be.closeTo(Date.now(), 60_000);
      expect(payment).to.deep.equal({
        ...{ provider_payment_id: id, payment_status: 'succeeded', amount: '100', currency: 'usd' },
        ...{ refunded_amount: '0', refunds: [], provider_tax: '19' },
      });
    });

    it('null if Paddle has no such invoice', async () => {
      for (const id of [`txn_${'z'.repeat(26)}`, '../customers', 'ctm_1'])
        expect(await account.pullInvoice!(id)).to.equal(null);
    });

    it('refuses an unknown status', async () => {
      const id = await push();
      find(id).status = 'frozen' as 'paid';
      expect((await catchFailure(() => account.pullInvoice!(id))).message).to.contain('has the status frozen');
    });

    it('refunds count without their tax, and a refund of tax alone does not', async () => {
      const id = await push();
      fake.book.payTransaction(id);
      const refund = { gateway_payment_id: id, amount: '40', currency: 'usd', refund_id: 'ref_1' };
      await account.payments!.refund!({ ...refund, key: 'ref_1', requested_at: new Date(), key_age_seconds: 0 });
      const [made] = fake.adjustments.list(id);
      fake.book.add('adj', { ...made!, id: fake.book.newId('adj'), totals: { subtotal: '0', tax: '5', total: '5' } });
      const { refunded_amount, refunds } = (await account.pullInvoice!(id))!.payments[0]!;
      expect(refunded_amount).to.equal('40');
      expect(refunds).to.deep.equal([
        { provider_refund_id: made!.id, amount: '40', refund_status: 'succeeded', error: null, refund_id: 'ref_1' },
      ]);
    });
  });

  describe('pushCreditNote', () => {
    const credits = (id: string) =>
      fake.adjustments
        .list(id)
        .map(({ items, reason }) => [
          reason,
          ...items.map(({ type, totals }) => `${type} ${totals.subtotal}+${totals.tax}`),
        ]);

    it('credits its own line first, in full with the rest of its tax', async () => {
      const id = await push();
      await account.pushCreditNote!(note(id));
      expect(credits(id)).to.deep.equal([['Farthing credit note cn_1: late', 'partial 1010+192', 'full 1990+378']]);
      const pulled = (await account.pullInvoice!(id))!;
      expect(pulled.total).to.equal('100');
      expect(
        pulled.credits!.map(({ amount, reported_credit_note_id }) => [amount, reported_credit_note_id]),
      ).to.deep.equal([['30', 'cn_1']]);
      fake.book.payTransaction(id);
      expect((await account.pullInvoice!(id))!.payments[0]).to.include({ amount: '70', provider_tax: '13.3' });
    });

    it('an invoice that is credited in full is paid', async () => {
      const id = await push();
      await account.pushCreditNote!(note(id, { lines: [line('100')], total: '100' }));
      expect((await account.pullInvoice!(id))!).to.deep.include({ invoice_status: 'paid', payments: [] });
      const { message } = await catchFailure(() => account.pushCreditNote!(note(id, { credit_note_id: 'cn_2' })));
      expect(message).to.match(/^0 usd of txn_\w+ can still be refunded or credited at Paddle, not 30$/);
    });

    for (const failure of ['lost_answer', 'lost_fault', 'lost_request', 'fault'] as const)
      it(`${failure} credits once`, async () => {
        const id = await push();
        fake.disturb(/^POST adjustments$/, failure);
        expect((await catchFailure(() => account.pushCreditNote!(note(id)))).error_class).to.equal('wait');
        const { provider_entity_id } = await account.pushCreditNote!(note(id));
        expect(fake.book.list<AdjustmentRecord>('adj').map((one) => one.id)).to.deep.equal([provider_entity_id]);
        expect((await account.findCreditNote!(note(id)))!.provider_entity_id).to.equal(provider_entity_id);
        expect(await account.findCreditNote!(note(id, { credit_note_id: 'cn' }))).to.equal(null);
      });

    it('refuses money that was returned elsewhere, and an invoice on a page', async () => {
      const id = await push();
      const elsewhere = note(id, { effect: 'refunded_elsewhere' });
      expect((await catchFailure(() => account.pushCreditNote!(elsewhere))).message).to.contain('returned elsewhere');
      const page = await push({ currency: 'chf', invoice_id: 'inv_2' });
      const onPage = note(page, { currency: 'chf' });
      expect((await catchFailure(() => account.pushCreditNote!(onPage))).message).to.contain('invalid_credit_action');
    });
  });
});
