/**
 * An organisation in Xero: pushed and pulled records, and interrupted pushes, each of which is resumed with one record there. If Xero's OpenAPI
 * document is there, each call and each answer is checked against it.
 */
import { expect } from 'chai';
import type { PushedInvoiceLine } from '../../../core/platform/integration/pushed-lines.ts';
import type {
  ProviderAccount,
  PushedCreditNote,
  PushedCustomer,
  PushedInvoice,
  PushedPayment,
} from '../../../integrations/account.ts';
import { xero } from '../../../integrations/xero/provider.ts';
import { catchFailure } from '../../support/providers/failure.ts';
import { findXeroDocument, XERO_DOCUMENT } from '../../support/providers/xero-document.ts';
import { XeroFake } from '../../support/providers/xero-fake.ts';

const PUSH = { key: 'imap_1', key_age_seconds: 0, key_created_at: new Date(), is_key_renewed: false };
const AGAIN = { ...PUSH, key_age_seconds: 60 };
const PAYMENT_ID = 'pay_01JZ8K3M5N7P9Q1R3S5T7V9W1X';

const CUSTOMER: PushedCustomer = {
  ...PUSH,
  customer_id: 'cust_1',
  external_id: 'acme',
  name: ' Acme\n"&" Söhne ',
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

describe('integrations/xero/account', () => {
  let fake: XeroFake;
  let account: ProviderAccount;
  let customer_id: string;

  before(() => {
    if (findXeroDocument() === null) console.warn(`no ${XERO_DOCUMENT}: calls of Xero are not checked against it`);
  });
  const open = (more = {}, settings = {}) =>
    xero.account!.open(
      { ...fake.secrets, access_token: fake.access_token, ...more },
      { address: fake.url, ...settings },
    );
  beforeEach(async () => {
    fake = await new XeroFake().start();
    account = await open();
    customer_id = String(fake.books.createContact({ Name: 'Somebody' })['ContactID']);
  });
  afterEach(async () => {
    await fake.stop();
    expect(fake.faults).to.deep.equal([]);
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
    reference: 'pi_1',
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
  const push = async (more: Partial<PushedInvoice> = {}) =>
    (await account.pushInvoice!(invoice(more))).provider_entity_id;
  const read = (id: string) => fake.books.readDocument('Invoices', id);
  const showRest = (id: string) => `${read(id).Status} ${fake.books.computeRest(read(id))}`;
  const { Invoices, CreditNotes } = { Invoices: 'Invoices', CreditNotes: 'CreditNotes' } as const;
  const count = (kind: typeof Invoices | typeof CreditNotes) => fake.books.documents[kind].length;

  describe('identify', () => {
    it('reads the name of the organisation', async () => {
      const { tenant_id } = fake.books;
      expect(await account.identify()).to.deep.equal({ provider_account_id: tenant_id, name: 'Demo Company' });
    });

    it('tells that a token is refused, or another organisation, without the token', async () => {
      const other = await open({ tenant_id: '7d1c1b0e-8a2f-4c3d-9e4f-5a6b7c8d9e0f' });
      expect((await catchFailure(() => other.identify())).is_unauthorized).to.equal(true);
      fake.expireAccessToken();
      const { is_unauthorized, message } = await catchFailure(() => account.identify());
      expect([is_unauthorized, message]).to.deep.equal([true, 'Xero: Unauthorized; TokenExpired: token expired']);
    });
  });

  describe('pushCustomer', () => {
    it('sends name, email, address and our id', async () => {
      const { provider_entity_id } = await account.pushCustomer!(CUSTOMER);
      expect(fake.books.readContact(provider_entity_id)).to.deep.include({
        Name: 'Acme "&" Söhne',
        ContactNumber: 'cust_1',
        EmailAddress: 'billing@acme.example',
        Addresses: [{ AddressType: 'POBOX', AddressLine1: 'Way 1', City: 'Bern', PostalCode: '3000', Country: 'CH' }],
      });
    });

    it('takes the contact of the same name only if it has our id', async () => {
      const first = await account.pushCustomer!(CUSTOMER);
      fake.forgetKeys();
      expect(await account.pushCustomer!(CUSTOMER)).to.deep.equal(first);
      const other = { ...CUSTOMER, key: 'imap_2', customer_id: 'cust_2' };
      const { error_class, message } = await catchFailure(() => account.pushCustomer!(other));
      expect(error_class).to.equal('person');
      expect(message).to.contain('Söhne').and.contain('/integrations/link');
    });

    it('finds a contact that was renamed or archived there after a lost answer', async () => {
      fake.disturb(/PUT Contacts/, 'lost_answer');
      expect((await catchFailure(() => account.pushCustomer!(CUSTOMER))).error_class).to.equal('wait');
      fake.forgetKeys();
      Object.assign(fake.books.contacts.at(-1)!, { Name: 'Renamed', ContactStatus: 'ARCHIVED' });
      await account.pushCustomer!({ ...CUSTOMER, ...AGAIN });
      expect(fake.books.contacts).to.have.length(2);
    });
  });

  describe('pushInvoice', () => {
    it('sends a draft with one unit per line and no tax, and authorises it', async () => {
      const id = await push();
      const { LineItems, ...sent } = JSON.parse(fake.bodies[0]!).Invoices[0];
      expect(sent).to.deep.equal({
        Type: 'ACCREC',
        Contact: { ContactID: customer_id },
        CurrencyCode: 'USD',
        LineAmountTypes: 'NoTax',
        Status: 'DRAFT',
        InvoiceNumber: 'INV-0001',
        Reference: 'Farthing invoice inv_1',
        Date: '2026-11-01',
        DueDate: '2026-12-01',
      });
      expect(LineItems[1]).to.deep.equal({
        ...{ Description: 'for -20.05', Quantity: 1, UnitAmount: -20.05, AccountCode: '200' },
      });
      expect(fake.bodies[1]).to.equal('{"Invoices":[{"Status":"AUTHORISED"}]}');
      expect(showRest(id)).to.equal('AUTHORISED 99.05');
    });

    it('may name accounts by their ids', async () => {
      const [sales, bank] = fake.books.accounts;
      account = await open({ sales_account: sales!.AccountID, payment_account: bank!.AccountID });
      const id = await push();
      await account.pushPayment!(payment(id));
      expect(showRest(id)).to.equal('AUTHORISED 59');
    });

    it('is due at once without a due date', async () => {
      const id = await push({ due_date: null });
      expect(read(id)['DueDate']).to.equal('2026-11-01');
    });

    it('keeps every digit of an amount', async () => {
      const amount = '123456789012345.67';
      const id = await push({ lines: [line(amount)], total: amount });
      expect((await account.pullInvoice!(id))!.total).to.equal(amount);
    });

    for (const [currency, amount] of [
      ['kwd', '1.235'],
      ['jpy', '1.5'],
      ['usd', '0.005'],
    ] as const)
      it(`refuses ${amount} ${currency} before anything is sent`, async () => {
        const sent = invoice({ currency, lines: [line(amount)], total: amount });
        expect((await catchFailure(() => account.pushInvoice!(sent))).message).to.equal(
          `Xero cannot represent ${amount} ${currency}`,
        );
        expect(fake.requests).to.deep.equal([]);
      });

    it('sends three decimals that end in 0', async () => {
      const id = await push({ currency: 'kwd', lines: [line('1.230')], total: '1.230' });
      expect(await account.pullInvoice!(id)).to.include({ total: '1.23', currency: 'kwd' });
    });

    it('names a currency that the organisation does not have', async () => {
      const { error_class, message } = await catchFailure(() => push({ currency: 'chf' }));
      expect([error_class, message]).to.deep.equal(['person', 'Xero: Organisation is not subscribed to currency CHF']);
    });

    it('deletes a draft that differs, and tells both numbers', async () => {
      fake.books.surcharge = '1.5';
      const { error_class, message } = await catchFailure(() => push());
      expect(error_class).to.equal('person');
      expect(message).to.match(
        /inv_1 is 99\.05 usd in 3 lines, but 100\.55 usd in 4 lines at Xero, where it was deleted/,
      );
      expect(fake.books.documents.Invoices.map(({ Status }) => Status)).to.deep.equal(['DELETED']);
      fake.books.surcharge = null;
      await account.pushInvoice!(invoice({ key: 'imap_2', is_key_renewed: true }));
      expect(count(Invoices)).to.equal(2);
    });

    it('leaves an edited draft of an earlier attempt to a person', async () => {
      fake.disturb(/POST Invoices/, 'lost_request');
      await catchFailure(() => push());
      const [draft] = fake.books.documents.Invoices;
      fake.books.updateDocument('Invoices', draft!.id, { LineItems: [{ ...draft!.LineItems[0]!, UnitAmount: '5' }] });
      expect((await catchFailure(() => push(AGAIN))).message).to.contain('correct or delete it there');
      expect(draft!.Status).to.equal('DRAFT');
    });

    for (const what of ['lost_request', 'lost_answer'] as const)
      for (const at of [/PUT Invoices/, /POST Invoices/])
        for (const forgets of [false, true])
          it(`is there once after ${what} of ${at.source}${forgets ? ', and a forgotten key' : ''}`, async () => {
            fake.disturb(at, what);
            expect((await catchFailure(() => push())).error_class).to.equal('wait');
            if (forgets) fake.forgetKeys();
            for (const one of fake.books.documents.Invoices) one['Reference'] = `${one['Reference']} paid by card`;
            const id = await push(AGAIN);
            expect([count(Invoices), showRest(id)]).to.deep.equal([1, 'AUTHORISED 99.05']);
            const searched = { invoice_id: 'inv_1', provider_customer_id: customer_id, key_created_at: new Date() };
            expect((await account.findInvoice!(searched))!.provider_entity_id).to.equal(id);
          });

    it('is searched for on all pages', async () => {
      fake.disturb(/PUT Invoices/, 'lost_request');
      await catchFailure(() => push());
      const other = { Type: 'ACCREC', Contact: { ContactID: customer_id }, LineItems: [{ Description: 'other' }] };
      for (let times = 0; times < 100; times++) fake.books.createDocument('Invoices', other as object as never);
      fake.disturb(/POST Invoices/, 'lost_request');
      await catchFailure(() => push({ ...AGAIN, key: 'imap_2' }));
      await push({ ...AGAIN, key: 'imap_3' });
      expect(count(Invoices)).to.equal(101);
    });

    it('takes no invoice of another record, and refuses a number that is taken', async () => {
      await push();
      const other = invoice({ key: 'imap_2', invoice_id: 'inv_11' });
      expect((await catchFailure(() => account.pushInvoice!(other))).message).to.equal(
        'Xero: Invoice # must be unique.',
      );
    });

    it('is not found after a person voided it', async () => {
      const id = await push();
      fake.books.updateDocument('Invoices', id, { Status: 'VOIDED' });
      const searched = { invoice_id: 'inv_1', provider_customer_id: customer_id, key_created_at: new Date() };
      expect(await account.findInvoice!(searched)).to.equal(null);
    });
  });

  describe('voidInvoice', () => {
    it('voids an open one and deletes a draft, once', async () => {
      const id = await push();
      await account.voidInvoice!(id, 'void');
      await account.voidInvoice!(id, 'void');
      expect((await account.pullInvoice!(id))!.invoice_status).to.equal('void');
      fake.disturb(/POST Invoices/, 'lost_request');
      await catchFailure(() => push({ invoice_id: 'inv_2', key: 'imap_2' }));
      const draft = fake.books.documents.Invoices.at(-1)!;
      await account.voidInvoice!(draft.id, 'void 2');
      expect(draft.Status).to.equal('DELETED');
      await account.voidInvoice!('7d1c1b0e-8a2f-4c3d-9e4f-5a6b7c8d9e0f', 'void 3');
    });

    it('refuses one that has payments', async () => {
      const id = await push();
      await account.pushPayment!(payment(id));
      expect((await catchFailure(() => account.voidInvoice!(id, 'void'))).message).to.contain(
        'has payments or credits',
      );
    });
  });

  describe('payments', () => {
    it('are applied to the invoice, and are read as ours', async () => {
      const id = await push();
      const made = await account.pushPayment!(payment(id));
      expect(fake.books.readPayment(made.provider_entity_id)).to.include({
        Amount: '40.05',
        Date: '2026-11-05',
        Reference: `Farthing payment ${PAYMENT_ID} pi_1`,
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

    it('are sent once, whatever is lost', async () => {
      const id = await push();
      fake.disturb(/PUT Payments/, 'lost_answer');
      await catchFailure(() => account.pushPayment!(payment(id)));
      fake.forgetKeys();
      await account.pushPayment!(payment(id, AGAIN));
      expect(fake.books.payments).to.have.length(1);
      await account.pushPayment!(payment(id, { ...AGAIN, key: 'imap_2', payment_id: `${PAYMENT_ID}2` }));
      expect(fake.books.payments).to.have.length(2);
    });

    it('of more than is open need a person, also in an answer with status 200', async () => {
      const id = await push();
      for (const is_200 of [false, true]) {
        fake.answers_refusals_with_200 = is_200;
        const more = payment(id, { amount: '99.06', key: `imap ${is_200}` });
        const { error_class, message } = await catchFailure(() => account.pushPayment!(more));
        expect([error_class, message]).to.deep.equal([
          'person',
          'Xero: Payment amount exceeds the amount outstanding on this document',
        ]);
      }
    });

    it('in advance count with what is applied to each invoice', async () => {
      const one = await push();
      const other = await push({ invoice_id: 'inv_2', invoice_number: '2', key: 'imap_2' });
      const advance = fake.books.applyAdvance('Overpayments', one, '99.05');
      fake.books.applyAdvance('Overpayments', other, '0.95', advance);
      const prepaid = fake.books.applyAdvance('Prepayments', other, '2');
      const [first, second] = [(await account.pullInvoice!(one))!, (await account.pullInvoice!(other))!];
      expect([first.invoice_status, second.invoice_status]).to.deep.equal(['paid', 'open']);
      const show = ({ payments }: typeof first) => payments.map((paid) => [paid.provider_payment_id, paid.amount]);
      expect(show(first)).to.deep.equal([[advance, '99.05']]);
      expect(show(second)).to.have.deep.members([
        [advance, '0.95'],
        [prepaid, '2'],
      ]);
    });

    it('that were deleted there are not read', async () => {
      const id = await push();
      const { provider_entity_id } = await account.pushPayment!(payment(id));
      fake.books.deletePayment(provider_entity_id);
      expect((await account.pullInvoice!(id))!.payments).to.deep.equal([]);
    });
  });

  describe('credit notes', () => {
    it('lower what is open, and are read as credits', async () => {
      const id = await push();
      const { provider_entity_id } = await account.pushCreditNote!(note(id));
      expect(showRest(id)).to.equal('AUTHORISED 90');
      const { payments, credits } = (await account.pullInvoice!(id))!;
      expect([payments, credits]).to.deep.equal([[], [{ provider_credit_id: provider_entity_id, amount: '9.05' }]]);
    });

    it('of money that was refunded elsewhere are paid out there', async () => {
      const id = await push();
      await account.pushPayment!(payment(id, { amount: '99.05' }));
      await account.pushCreditNote!(note(id, { effect: 'refunded_elsewhere' }));
      expect(fake.books.documents.CreditNotes[0]!.Status).to.equal('PAID');
      expect(showRest(id)).to.equal('PAID 0');
      expect(fake.books.payments.at(-1)).to.include({ Reference: 'Farthing refund cn_1', Amount: '9.05' });
    });

    for (const effect of ['lowers_remaining', 'refunded_elsewhere'] as const)
      for (const at of [/PUT CreditNotes$/, /POST CreditNotes/, /PUT (?:CreditNotes\/.*Allocations|Payments)/])
        for (const what of ['lost_request', 'lost_answer'] as const)
          it(`(${effect}) are there once after ${what} of ${at.source}`, async () => {
            const id = await push();
            fake.disturb(at, what);
            await catchFailure(() => account.pushCreditNote!(note(id, { effect })));
            fake.forgetKeys();
            const { provider_entity_id } = await account.pushCreditNote!(note(id, { effect, ...AGAIN }));
            expect([count(CreditNotes), fake.books.documents.CreditNotes[0]!.Status]).to.deep.equal([1, 'PAID']);
            expect(fake.books.allocations.length + fake.books.payments.length).to.equal(1);
            const searched = { ...note(id), key_created_at: new Date() };
            expect((await account.findCreditNote!(searched))!.provider_entity_id).to.equal(provider_entity_id);
          });

    for (const effect of ['lowers_remaining', 'refunded_elsewhere'] as const)
      it(`(${effect}) are voided with what they did, once`, async () => {
        const id = await push();
        const { provider_entity_id } = await account.pushCreditNote!(note(id, { effect }));
        fake.disturb(/POST CreditNotes/, 'lost_answer');
        await catchFailure(() => account.voidCreditNote!(provider_entity_id, 'void'));
        await account.voidCreditNote!(provider_entity_id, 'void');
        expect(fake.books.documents.CreditNotes[0]!.Status).to.equal('VOIDED');
        expect(showRest(id)).to.equal('AUTHORISED 99.05');
      });

    it('that a person paid out there are left to the person', async () => {
      const id = await push();
      const { provider_entity_id } = await account.pushCreditNote!(note(id, { effect: 'refunded_elsewhere' }));
      fake.books.deletePayment(fake.books.payments.at(-1)!.PaymentID);
      const paid = { CreditNote: { CreditNoteID: provider_entity_id }, Account: { Code: '090' }, Amount: '9.05' };
      fake.books.createPayment(paid);
      const { error_class, message } = await catchFailure(() => account.voidCreditNote!(provider_entity_id, 'void'));
      expect([error_class, message.includes('was paid out at Xero')]).to.deep.equal(['person', true]);
    });
  });

  describe('pullInvoice', () => {
    it('reads no record by another text than an id', async () => {
      await push();
      for (const text of ['INV-0001', '..', '../Contacts/1', '999'])
        expect(await account.pullInvoice!(text)).to.equal(null);
      expect(await account.pullInvoice!('7d1c1b0e-8a2f-4c3d-9e4f-5a6b7c8d9e0f')).to.equal(null);
    });
  });

  it('waits before each request until the limit allows it', async () => {
    let requests = 0;
    const limited = await open({}, { beforeRequest: async () => void requests++ });
    await limited.pushInvoice!(invoice());
    expect([requests, fake.requests.length]).to.deep.equal([2, 2]);
  });

  it('waits for failures, after a limit as long as Xero asks, or a minute', async () => {
    for (const [what, header, seconds] of [
      ['unavailable', null, null],
      ['html', null, null],
      ['rate_limit', null, 60],
      ['rate_limit', 33, 33],
    ] as const) {
      fake.retry_after_seconds = header;
      fake.disturb(/GET Organisation/, what);
      const { error_class, retry_after_seconds } = await catchFailure(() => account.identify());
      expect([what, error_class, retry_after_seconds]).to.deep.equal([what, 'wait', seconds]);
    }
  });
});
