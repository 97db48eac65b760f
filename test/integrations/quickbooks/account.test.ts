/**
 * A company in QuickBooks: pushed and pulled records, and interrupted pushes, each of which is resumed with one record
 * there.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import type { PushedInvoiceLine } from '../../../core/platform/integration/pushed-lines.ts';
import type {
  ProviderAccount,
  PushedCreditNote,
  PushedCustomer,
  PushedInvoice,
  PushedPayment,
} from '../../../integrations/account.ts';
import { quickbooks } from '../../../integrations/quickbooks/provider.ts';
import { catchFailure } from '../../support/providers/failure.ts';
import { QuickBooksFake } from '../../support/providers/quickbooks-fake.ts';

const PUSH = { key: 'imap_1', key_age_seconds: 0, key_created_at: new Date(), is_key_renewed: false };
const AGAIN = { ...PUSH, key_age_seconds: 60 };
const PAYMENT_ID = 'pay_01JZ8K3M5N7P9Q1R3S5T7V9W1X';

const CUSTOMER: PushedCustomer = {
  ...PUSH,
  customer_id: 'cust_1',
  external_id: 'acme',
  name: "O'Neill \\ Acme: Ltd",
  email: 'billing@acme.example',
  address: { line1: 'Way 1', line2: '', city: 'Bern', state: '', postal_code: '3000', country: 'CH' },
};

const line = (amount: string): PushedInvoiceLine => ({
  description: `for ${amount}`,
  amount,
  line_item_id: null,
  period_start: '2026-10-01T00:00:00.000Z',
  period_end: '2026-11-01T00:00:00.000Z',
});

describe('integrations/quickbooks/account', () => {
  let fake: QuickBooksFake;
  let account: ProviderAccount;
  let customer_id: string;

  const open = (more = {}) =>
    quickbooks.account!.open({ ...fake.secrets, access_token: fake.access_token, ...more }, { address: fake.url });

  beforeEach(async () => {
    fake = await new QuickBooksFake().start();
    account = await open();
    customer_id = fake.books.create('Customer', { DisplayName: 'Somebody', CustomerRef: undefined }).Id;
  });
  afterEach(() => fake.stop());

  for (const id of ['..', '.', ''])
    it(`never leaves the path of its records: ${JSON.stringify(id)}`, async () => {
      const before = fake.requests.length;
      expect(await account.pullInvoice!(id)).to.equal(null);
      await account.voidInvoice!(id, 'void');
      expect(fake.requests).to.have.length(before);
    });

  const invoice = (more: Partial<PushedInvoice> = {}): PushedInvoice => ({
    ...PUSH,
    invoice_id: 'inv_1',
    invoice_number: 'INV-0001',
    provider_customer_id: customer_id,
    currency: 'usd',
    lines: [line('100.10'), line('-20.05'), line('19')],
    total: '99.05',
    issued_at: '2026-11-01T23:30:00.000Z',
    due_date: '2026-12-01T00:00:00.000Z',
    ...more,
  });
  const payment = (provider_invoice_id: string, more: Partial<PushedPayment> = {}): PushedPayment => ({
    ...PUSH,
    payment_id: PAYMENT_ID,
    provider_customer_id: customer_id,
    provider_invoice_id,
    amount: '40.05',
    currency: 'usd',
    paid_at: '2026-11-05T10:00:00.000Z',
    reference: 'pi_12345678901234567890123',
    ...more,
  });
  const note = (provider_invoice_id: string, more: Partial<PushedCreditNote> = {}): PushedCreditNote => ({
    ...PUSH,
    credit_note_id: 'cn_1',
    credit_note_number: 'CN-1',
    provider_customer_id: customer_id,
    provider_invoice_id,
    currency: 'usd',
    lines: [line('9.05')],
    total: '9.05',
    effect: 'lowers_remaining',
    reason: 'a fault of ours',
    ...more,
  });

  const count = (name: string) => fake.books.list(name).length;
  const lastBody = () => fake.bodies.at(-1)!;

  describe('identify', () => {
    it('reads the name of the company', async () => {
      expect(await account.identify()).to.deep.equal({
        provider_account_id: fake.books.realm_id,
        name: 'Sandbox Company',
      });
    });

    it('tells that an access token is refused, without the token', async () => {
      fake.expireAccessToken();
      const { is_unauthorized, message } = await catchFailure(() => account.identify());
      expect(is_unauthorized).to.equal(true);
      expect(message).to.contain('3200').and.not.contain('access-0');
    });

    it('knows whether money is real from the environment alone', () => {
      const { detectLive } = quickbooks.account!;
      expect(detectLive({ ...fake.secrets, environment: 'production' })).to.equal(true);
      expect(detectLive(fake.secrets)).to.equal(false);
    });
  });

  describe('pushCustomer', () => {
    it('sends name, email, address and our id', async () => {
      const { provider_entity_id } = await account.pushCustomer!(CUSTOMER);
      expect(fake.books.read('Customer', provider_entity_id)).to.deep.include({
        DisplayName: "O'Neill \\ Acme Ltd",
        PrimaryEmailAddr: { Address: 'billing@acme.example' },
        BillAddr: { Line1: 'Way 1', City: 'Bern', PostalCode: '3000', Country: 'CH' },
        Notes: 'Farthing customer cust_1',
      });
    });

    it('cuts a long name to 100 characters, not within one', async () => {
      const { provider_entity_id } = await account.pushCustomer!({ ...CUSTOMER, name: `${'a'.repeat(99)}😀` });
      expect(fake.books.read('Customer', provider_entity_id)['DisplayName']).to.equal('a'.repeat(99));
    });

    it('takes the customer of the same name only if it has our id in its notes', async () => {
      const first = await account.pushCustomer!(CUSTOMER);
      fake.forgetRequestIds();
      expect(await account.pushCustomer!(CUSTOMER)).to.deep.equal(first);
      const record = fake.books.read('Customer', first.provider_entity_id);
      record['Notes'] = `A good customer.\n${record['Notes']}\n`;
      expect(await account.pushCustomer!({ ...CUSTOMER, key: 'imap_2' })).to.deep.equal(first);
      const other = { ...CUSTOMER, key: 'imap_3', customer_id: 'cust_2' };
      const { error_class, provider_code, message } = await catchFailure(() => account.pushCustomer!(other));
      expect([error_class, provider_code]).to.deep.equal(['person', '6240']);
      expect(message).to.contain("O'Neill").and.contain('/integrations/link');
      expect(count('Customer')).to.equal(2);
    });

    it('finds a customer that was renamed or deactivated there after a lost answer', async () => {
      fake.disturb(/POST customer/, 'lost_answer');
      expect((await catchFailure(() => account.pushCustomer!(CUSTOMER))).error_class).to.equal('wait');
      fake.forgetRequestIds();
      Object.assign(fake.books.list('Customer').at(-1)!, { DisplayName: 'Renamed', Active: false });
      await account.pushCustomer!({ ...CUSTOMER, ...AGAIN });
      expect(count('Customer')).to.equal(2);
    });
  });

  describe('pushInvoice', () => {
    it('sends one amount per line, without quantity and sales tax', async () => {
      const { provider_entity_id, url } = await account.pushInvoice!(invoice());
      const item = fake.books.list('Item')[0]!;
      expect(item).to.deep.include({ Name: 'Farthing', Type: 'Service', IncomeAccountRef: { value: '79' } });
      expect(url).to.equal(null);
      expect(lastBody()).to.contain('"Amount":100.1,').and.contain('"Amount":-20.05,');
      const { Line, ...sent } = JSON.parse(lastBody());
      expect(sent).to.deep.equal({
        CustomerRef: { value: customer_id },
        CurrencyRef: { value: 'USD' },
        DocNumber: 'INV-0001',
        TxnDate: '2026-11-01',
        DueDate: '2026-12-01',
        PrivateNote: 'Farthing invoice inv_1',
      });
      expect(Line[0]).to.deep.equal({
        DetailType: 'SalesItemLineDetail',
        Amount: 100.1,
        Description: 'for 100.10',
        SalesItemLineDetail: { ItemRef: { value: item.Id }, TaxCodeRef: { value: 'NON' }, ServiceDate: '2026-10-01' },
      });
      expect(fake.books.read('Invoice', provider_entity_id)).to.include({ TotalAmt: '99.05', Balance: '99.05' });
    });

    it('sends no tax code to a company outside the USA', async () => {
      fake.books.country = 'GB';
      await account.pushInvoice!(invoice());
      expect(JSON.parse(lastBody())).to.include({ GlobalTaxCalculation: 'NotApplicable' });
    });

    it('uses the item that is there, and creates it only with an income account', async () => {
      const without = await open({ income_account_id: undefined });
      const { message } = await catchFailure(() => without.pushInvoice!(invoice()));
      expect(message).to.contain('income_account_id');
      await account.pushInvoice!(invoice());
      await without.pushInvoice!(invoice({ key: 'imap_2', invoice_id: 'inv_2', invoice_number: 'INV-2' }));
      expect(count('Item')).to.equal(1);
    });

    const differing: [string, () => void, RegExp][] = [
      ['rounding', () => (fake.books.places = 0), /is 99\.05 usd .*but 99 usd/],
      [
        'another currency',
        () => Object.assign(fake.books, { has_multicurrency: false, home_currency: 'CAD' }),
        /99\.05 cad/,
      ],
    ];
    for (const [why, arrange, words] of differing)
      it(`deletes an invoice that differs by ${why}, and tells both numbers`, async () => {
        arrange();
        const { error_class, message } = await catchFailure(() => account.pushInvoice!(invoice()));
        expect(error_class).to.equal('person');
        expect(message).to.match(words);
        expect(count('Invoice')).to.equal(0);
      });

    it('leaves a record that was edited there after a lost answer, and tells both numbers', async () => {
      fake.disturb(/POST invoice/, 'lost_answer');
      await catchFailure(() => account.pushInvoice!(invoice()));
      const edited = fake.books.list('Invoice')[0]!;
      Object.assign(edited, { TotalAmt: '90', Balance: '90' });
      for (const key of ['imap_1', 'imap_2']) {
        const repeated = { ...invoice({ key }), ...AGAIN, key, is_key_renewed: true };
        const { error_class, message } = await catchFailure(() => account.pushInvoice!(repeated));
        expect(error_class).to.equal('person');
        expect(message).to.match(/is 99\.05 usd .*but 90 usd .*correct or delete it there/);
      }
      expect(fake.books.list('Invoice')).to.deep.equal([edited]);
    });

    it('notices lines that were rounded although the total is right', async () => {
      fake.books.places = 0;
      const rounded = invoice({ lines: [line('0.4'), line('0.6')], total: '1' });
      const lines = invoice({ key: 'imap_2', lines: [line('1.4'), line('1.4'), line('0.2')], total: '3' });
      expect((await catchFailure(() => account.pushInvoice!(lines))).error_class).to.equal('person');
      expect((await catchFailure(() => account.pushInvoice!(rounded))).error_class).to.equal('person');
      expect(count('Invoice')).to.equal(0);
    });

    it('accepts an invoice without a currency from a company with one', async () => {
      fake.books.has_multicurrency = false;
      const { provider_entity_id } = await account.pushInvoice!(invoice());
      expect((await account.pullInvoice!(provider_entity_id))!.currency).to.equal('usd');
    });

    const refused: [string, Partial<PushedInvoice>][] = [
      ['lines that do not add up', { total: '99.06' }],
      ['no lines', { lines: [], total: '0' }],
      ['a negative total', { lines: [line('-1')], total: '-1' }],
      ['more digits than the currency has', { lines: [line('0.001')], total: '0.001' }],
      ['a part of a yen', { currency: 'jpy', lines: [line('0.5')], total: '0.5' }],
    ];
    for (const [what, more] of refused)
      it(`sends nothing with ${what}`, async () => {
        expect((await catchFailure(() => account.pushInvoice!(invoice(more)))).error_class).to.equal('person');
        expect(count('Invoice')).to.equal(0);
      });

    it('sends every amount with its digits and reads it back', async () => {
      const cents = fc.bigInt({ min: 1n, max: 10n ** 16n });
      const toText = (value: bigint) => {
        const digits = String(value < 0n ? -value : value).padStart(3, '0');
        return `${value < 0n ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`;
      };
      await account.pushInvoice!(invoice());
      let number = 1;
      await fc.assert(
        fc.asyncProperty(fc.array(cents, { minLength: 1, maxLength: 4 }), cents, async (charges, credit) => {
          const sum = charges.reduce((one, other) => one + other, 0n);
          const amounts = credit < sum ? [...charges, -credit] : charges;
          const total = toText(amounts.reduce((one, other) => one + other, 0n));
          const id = `inv_${++number}`;
          const pushed = invoice({
            key: id,
            invoice_id: id,
            invoice_number: id,
            lines: amounts.map(toText).map(line),
            total,
          });
          const { provider_entity_id } = await account.pushInvoice!(pushed);
          for (const amount of amounts)
            expect(lastBody()).to.match(
              new RegExp(
                `"Amount":${toText(amount)
                  .replace(/\.?0+$/, '')
                  .replace('.', '\\.')}[,}]`,
              ),
            );
          const pulled = await account.pullInvoice!(provider_entity_id);
          expect(Number(pulled!.total)).to.equal(Number(total));
        }),
        { numRuns: 30 },
      );
    });

    for (const [total, amounts] of [
      ['0.3', ['0.1', '0.2']],
      ['123456789012345.67', ['123456789012345.67']],
    ] as const)
      it(`sends ${amounts.join(' + ')} exactly`, async () => {
        const { provider_entity_id } = await account.pushInvoice!(invoice({ lines: amounts.map(line), total }));
        expect((await account.pullInvoice!(provider_entity_id))!.total).to.equal(total);
      });

    it('sends yen without decimals', async () => {
      fake.books.home_currency = 'JPY';
      await account.pushInvoice!(invoice({ currency: 'jpy', lines: [line('1234')], total: '1234' }));
      expect(lastBody()).to.contain('"Amount":1234,');
    });

    for (const what of ['lost_answer', 'lost_request'] as const)
      for (const at of [/GET companyinfo/, /GET query/, /POST item/, /POST invoice/])
        it(`${what} at ${at.source}: one invoice after the next attempt`, async () => {
          fake.disturb(at, what);
          expect((await catchFailure(() => account.pushInvoice!(invoice()))).error_class).to.equal('wait');
          fake.forgetRequestIds();
          const made = await (await open()).pushInvoice!({ ...invoice(), ...AGAIN });
          expect(fake.books.list('Invoice').map(({ Id }) => Id)).to.deep.equal([made.provider_entity_id]);
          expect(count('Item')).to.equal(1);
        });

    it('finds the invoice of a push whose answer was lost', async () => {
      const searched = { invoice_id: 'inv_1', provider_customer_id: customer_id, key_created_at: new Date() };
      expect(await account.findInvoice!(searched)).to.equal(null);
      fake.disturb(/POST invoice/, 'lost_answer');
      await catchFailure(() => account.pushInvoice!(invoice()));
      const { Id } = fake.books.list('Invoice')[0]!;
      expect(await account.findInvoice!(searched)).to.deep.equal({ provider_entity_id: Id, url: null });
      expect(await account.findInvoice!({ ...searched, invoice_id: 'inv_' })).to.equal(null);
    });

    it('asks a person if its number is taken by another invoice', async () => {
      await account.pushInvoice!(invoice());
      const other = invoice({ key: 'imap_2', invoice_id: 'inv_2' });
      expect(await catchFailure(() => account.pushInvoice!(other))).to.include({
        error_class: 'person',
        provider_code: '6140',
      });
    });

    it('leaves a number of more than 21 characters to QuickBooks', async () => {
      await account.pushInvoice!(invoice({ invoice_number: 'INV-2026-000000000000001' }));
      expect(JSON.parse(lastBody())).to.not.have.property('DocNumber');
    });
  });

  describe('voidInvoice', () => {
    it('voids it, also if somebody changes it at that moment, and once', async () => {
      const { provider_entity_id: id } = await account.pushInvoice!(invoice());
      const { arrived, release } = fake.hold(/POST invoice/);
      const voided = account.voidInvoice!(id, 'void');
      await arrived;
      fake.books.touch(fake.books.read('Invoice', id));
      release();
      await voided;
      expect((await account.pullInvoice!(id))!.invoice_status).to.equal('void');
      const sent = fake.requests.length;
      await account.voidInvoice!(id, 'void');
      expect(fake.requests.slice(sent)).to.deep.equal([`GET invoice/${id}`]);
      await account.voidInvoice!('999', 'void');
    });

    it('refuses one that has payments', async () => {
      const { provider_entity_id: id } = await account.pushInvoice!(invoice());
      await account.pushPayment!(payment(id));
      expect((await catchFailure(() => account.voidInvoice!(id, 'void'))).error_class).to.equal('person');
    });
  });

  describe('payments', () => {
    it('are applied to the invoice, and are read as ours', async () => {
      const { provider_entity_id: id } = await account.pushInvoice!(invoice());
      const made = await account.pushPayment!(payment(id));
      expect(fake.books.read('Payment', made.provider_entity_id)).to.include({
        TotalAmt: '40.05',
        TxnDate: '2026-11-05',
        PaymentRefNum: 'pi_123456789012345678',
      });
      expect(await account.pullInvoice!(id)).to.deep.equal({
        provider_entity_id: id,
        url: null,
        invoice_status: 'open',
        total: '99.05',
        currency: 'usd',
        payments: [
          {
            provider_payment_id: made.provider_entity_id,
            payment_status: 'succeeded',
            amount: '40.05',
            currency: 'usd',
            paid_at: '2026-11-05T00:00:00.000Z',
            refunded_amount: '0',
            provider_tax: null,
            reported_payment_id: PAYMENT_ID,
          },
        ],
        credits: [],
      });
    });

    it('of an invoice that was marked as paid by hand are read as ours', async () => {
      const { provider_entity_id: id } = await account.pushInvoice!(invoice());
      const payment_id = 'inv_01JZ8K3M5N7P9Q1R3S5T7V9W1X';
      await account.pushPayment!(payment(id, { payment_id, amount: '99.05' }));
      const { payments } = (await account.pullInvoice!(id))!;
      expect(payments.map(({ reported_payment_id }) => reported_payment_id)).to.deep.equal([payment_id]);
    });

    it('are sent once, whatever is lost', async () => {
      const { provider_entity_id: id } = await account.pushInvoice!(invoice());
      fake.disturb(/POST payment/, 'lost_answer');
      await catchFailure(() => account.pushPayment!(payment(id)));
      fake.forgetRequestIds();
      await account.pushPayment!({ ...payment(id), ...AGAIN });
      expect(count('Payment')).to.equal(1);
    });

    it('of more than is open need a person', async () => {
      const { provider_entity_id: id } = await account.pushInvoice!(invoice());
      expect((await catchFailure(() => account.pushPayment!(payment(id, { amount: '99.06' })))).error_class).to.equal(
        'person',
      );
    });

    it('of several invoices count with what they apply to each', async () => {
      const { provider_entity_id: one } = await account.pushInvoice!(invoice());
      const second = invoice({ key: 'imap_2', invoice_id: 'inv_2', invoice_number: '2' });
      const { provider_entity_id: other } = await account.pushInvoice!(second);
      const { Id } = fake.books.create('Payment', {
        CustomerRef: { value: customer_id },
        TotalAmt: '200',
        TxnDate: '2026-11-06',
        Line: [
          { Amount: '99.05', LinkedTxn: [{ TxnId: one, TxnType: 'Invoice' }] },
          { Amount: '0.95', LinkedTxn: [{ TxnId: other, TxnType: 'Invoice' }] },
        ],
      });
      const pulled = await account.pullInvoice!(one);
      expect(pulled!.invoice_status).to.equal('paid');
      expect(pulled!.payments.map(({ amount, reported_payment_id }) => [amount, reported_payment_id])).to.deep.equal([
        ['99.05', null],
      ]);
      expect((await account.pullInvoice!(other))!.payments.map(({ amount }) => amount)).to.deep.equal(['0.95']);
      const subject = { kind: 'payment', provider_entity_id: Id } as const;
      expect(await account.listConcernedInvoices!(subject)).to.deep.equal([one, other]);
      expect(await account.listConcernedInvoices!({ ...subject, provider_entity_id: '999' })).to.deep.equal([]);
      expect(await account.listConcernedInvoices!({ kind: 'invoice', provider_entity_id: one })).to.deep.equal([one]);
    });

    it('are not told apart from credits of several invoices by a guess', async () => {
      const { provider_entity_id: one } = await account.pushInvoice!(invoice());
      const second = invoice({ key: 'imap_2', invoice_id: 'inv_2', invoice_number: '2' });
      const { provider_entity_id: other } = await account.pushInvoice!(second);
      const memo = await account.pushCreditNote!(note(one, { effect: 'refunded_elsewhere' }));
      const toLine = (Amount: string, TxnType: string, TxnId: string) => ({ Amount, LinkedTxn: [{ TxnId, TxnType }] });
      fake.books.create('Payment', {
        CustomerRef: { value: customer_id },
        TotalAmt: '90.95',
        Line: [
          toLine('50', 'Invoice', one),
          toLine('50', 'Invoice', other),
          toLine('9.05', 'CreditMemo', memo.provider_entity_id),
        ],
      });
      expect((await catchFailure(() => account.pullInvoice!(one))).message).to.contain('record it by hand');
    });
  });

  describe('credit notes', () => {
    it('that a payment of 0 applies to several invoices are read with the amount applied to each', async () => {
      const { provider_entity_id: one } = await account.pushInvoice!(invoice());
      const second = invoice({ key: 'imap_2', invoice_id: 'inv_2', invoice_number: '2' });
      const { provider_entity_id: other } = await account.pushInvoice!(second);
      const memo = await account.pushCreditNote!(note(one, { effect: 'refunded_elsewhere' }));
      const toLine = (Amount: string, TxnType: string, TxnId: string) => ({ Amount, LinkedTxn: [{ TxnId, TxnType }] });
      const { Id } = fake.books.create('Payment', {
        CustomerRef: { value: customer_id },
        TotalAmt: '0',
        Line: [
          toLine('4', 'Invoice', one),
          toLine('5.05', 'Invoice', other),
          toLine('9.05', 'CreditMemo', memo.provider_entity_id),
        ],
      });
      const { payments, credits } = (await account.pullInvoice!(other))!;
      expect([payments, credits]).to.deep.equal([[], [{ provider_credit_id: Id, amount: '5.05' }]]);
    });

    for (const applies of [false, true])
      it(`lower what is open once${applies ? ', also if the company applies credits by itself' : ''}, and are no money`, async () => {
        fake.books.applies_credits = applies;
        const { provider_entity_id: id } = await account.pushInvoice!(invoice());
        await account.pushCreditNote!(note(id));
        expect(fake.books.read('Invoice', id)['Balance']).to.equal('90');
        fake.forgetRequestIds();
        await account.pushCreditNote!({ ...note(id), ...AGAIN });
        expect(fake.books.read('Invoice', id)['Balance']).to.equal('90');
        expect([count('CreditMemo'), count('Payment')]).to.deep.equal([1, 1]);
        expect((await account.pullInvoice!(id))!.payments).to.deep.equal([]);
      });

    it('are applied by the next attempt if the answer was lost', async () => {
      const { provider_entity_id: id } = await account.pushInvoice!(invoice());
      fake.disturb(/POST payment/, 'lost_answer');
      await catchFailure(() => account.pushCreditNote!(note(id)));
      fake.forgetRequestIds();
      await account.pushCreditNote!({ ...note(id), ...AGAIN });
      expect([count('CreditMemo'), count('Payment')]).to.deep.equal([1, 1]);
    });

    it('of money that was refunded elsewhere stay a credit there', async () => {
      const { provider_entity_id: id } = await account.pushInvoice!(invoice());
      await account.pushCreditNote!(note(id, { effect: 'refunded_elsewhere' }));
      expect(fake.books.read('Invoice', id)['Balance']).to.equal('99.05');
      expect(fake.books.list('CreditMemo')[0]!['RemainingCredit']).to.equal('9.05');
    });

    it('are voided with their application', async () => {
      const { provider_entity_id: id } = await account.pushInvoice!(invoice());
      const { provider_entity_id } = await account.pushCreditNote!(note(id));
      await account.voidCreditNote!(provider_entity_id, 'void');
      await account.voidCreditNote!(provider_entity_id, 'void');
      expect(fake.books.read('Invoice', id)['Balance']).to.equal('99.05');
      expect([count('CreditMemo'), count('Payment')]).to.deep.equal([0, 0]);
    });
  });

  it('waits before each request until the limit allows it', async () => {
    let requests = 0;
    const settings = { address: fake.url, beforeRequest: async () => void requests++ };
    const limited = await quickbooks.account!.open({ ...fake.secrets, access_token: fake.access_token }, settings);
    await limited.pushInvoice!(invoice());
    expect([requests, fake.requests.length]).to.deep.equal([4, 4]);
  });

  describe('failures', () => {
    it('are waited for, a limit for a minute', async () => {
      for (const [what, seconds] of [
        ['unavailable', null],
        ['html', null],
        ['rate_limit', 60],
      ] as const) {
        fake.disturb(/GET companyinfo/, what);
        const { error_class, retry_after_seconds } = await catchFailure(async () => (await open()).identify());
        expect([what, error_class, retry_after_seconds]).to.deep.equal([what, 'wait', seconds]);
      }
    });

    it('in an answer with status 200 are failures', async () => {
      fake.disturb(/POST invoice/, 'fault_in_200');
      const { error_class, message } = await catchFailure(() => account.pushInvoice!(invoice()));
      expect([error_class, message]).to.deep.equal([
        'person',
        'QuickBooks: A business validation error has occurred: closed period (6000)',
      ]);
    });

    it('of an invoice that is gone are none', async () => {
      expect(await account.pullInvoice!('999')).to.equal(null);
      expect(await account.pullInvoice!('../customer/1')).to.equal(null);
    });
  });
});
