/**
 * An organization in Zoho Books: pushed and pulled records, and interrupted pushes, each of which is resumed with one record
 * there.
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
import { zoho_books } from '../../../integrations/zoho_books/provider.ts';
import { catchFailure } from '../../support/providers/failure.ts';
import { ZohoBooksFake } from '../../support/providers/zoho-books-fake.ts';

const PUSH = {
  key: 'imap_1',
  key_age_seconds: 0,
  key_created_at: new Date('2026-11-02T10:00:00Z'),
  is_key_renewed: false,
};
const AGAIN = { ...PUSH, key_age_seconds: 60 };
const PAYMENT_ID = 'pay_01JZ8K3M5N7P9Q1R3S5T7V9W1X';

const CUSTOMER: PushedCustomer = {
  ...PUSH,
  customer_id: 'cust_1',
  external_id: 'acme',
  name: 'O\'Neill &  "Acme"\tLtd',
  email: 'billing@acme.example',
  address: { line1: 'Way 1', line2: '', city: 'Bern', state: '', postal_code: '3000', country: 'CH' },
};

const line = (amount: string, description = `for ${amount}`): PushedInvoiceLine => ({
  ...{ description, amount, line_item_id: null, period_start: null, period_end: null },
});

describe('integrations/zoho_books/account', () => {
  let fake: ZohoBooksFake;
  let account: ProviderAccount;
  let customer_id: string;

  const open = (more = {}) =>
    zoho_books.account!.open({ ...fake.secrets, access_token: fake.access_token, ...more }, { address: fake.url });

  beforeEach(async () => {
    fake = await new ZohoBooksFake().start();
    account = await open();
    customer_id = fake.books.createContact({ contact_name: 'Somebody' }).id;
  });
  afterEach(() => fake.stop());

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
  const newInvoice = async () => (await account.pushInvoice!(invoice())).provider_entity_id;

  describe('identify', () => {
    it('reads the name of the organization', async () => {
      expect(await account.identify()).to.deep.equal({ provider_account_id: '10234695', name: 'Zillum' });
    });

    it('tells that a token or the organization is refused', async () => {
      const foreign = await open({ organization_id: '999' });
      expect((await catchFailure(() => foreign.identify())).is_unauthorized).to.equal(true);
      fake.expireAccessToken();
      const { is_unauthorized, message } = await catchFailure(() => account.identify());
      expect([is_unauthorized, message]).to.deep.equal([true, 'Zoho Books: Not authorized (57)']);
    });
  });

  describe('the data center', () => {
    it('is one of Zoho', () => {
      const { secrets, detectLive } = zoho_books.account!;
      for (const api_domain of [
        'https://www.zohoapis.com.evil.example',
        'http://www.zohoapis.com',
        'https://127.0.0.1',
      ])
        expect(secrets.safeParse({ ...fake.secrets, api_domain }).success, api_domain).to.equal(false);
      expect(secrets.safeParse({ ...fake.secrets, accounts_server: 'https://accounts.zoho.evil' }).success).to.equal(
        false,
      );
      const eu = { ...fake.secrets, accounts_server: 'https://accounts.zoho.eu' };
      expect(detectLive({ ...eu, api_domain: 'https://www.zohoapis.eu', location: 'eu' })).to.equal(null);
      expect(() => detectLive({ ...eu, api_domain: 'https://www.zohoapis.com' })).to.throw('api_domain');
      expect(() => detectLive({ ...eu, location: 'us' })).to.throw('location');
    });
  });

  describe('pushCustomer', () => {
    it('sends name, email, address and our id', async () => {
      const { provider_entity_id } = await account.pushCustomer!(CUSTOMER);
      expect(fake.books.read('contacts', provider_entity_id)).to.deep.include({
        contact_name: 'O\'Neill & "Acme" Ltd',
        contact_type: 'customer',
        contact_persons: [{ email: 'billing@acme.example', is_primary_contact: true }],
        billing_address: { address: 'Way 1', city: 'Bern', zip: '3000', country: 'CH' },
        notes: 'Farthing customer cust_1',
      });
      expect(await account.hasCustomer!(provider_entity_id)).to.equal(true);
      expect(await account.hasCustomer!('999')).to.equal(false);
    });

    it('takes the contact of the same name only if it has our id in its notes', async () => {
      const first = await account.pushCustomer!(CUSTOMER);
      expect(await account.pushCustomer!(CUSTOMER)).to.deep.equal(first);
      const record = fake.books.read('contacts', first.provider_entity_id);
      record['notes'] = `A good customer.\n${record['notes']}\n`;
      expect(await account.pushCustomer!({ ...CUSTOMER, key: 'imap_2' })).to.deep.equal(first);
      const other = { ...CUSTOMER, key: 'imap_3', customer_id: 'cust_2' };
      const { error_class, provider_code, message } = await catchFailure(() => account.pushCustomer!(other));
      expect([error_class, provider_code]).to.deep.equal(['person', '3062']);
      expect(message).to.contain("O'Neill").and.contain('/integrations/link');
      expect(count('contacts')).to.equal(2);
    });

    it('finds a contact that was renamed or made inactive there after a lost answer', async () => {
      fake.disturb(/POST contacts/, 'lost_answer');
      expect((await catchFailure(() => account.pushCustomer!(CUSTOMER))).error_class).to.equal('wait');
      Object.assign(fake.books.list('contacts').at(-1)!, { contact_name: 'Renamed', status: 'inactive' });
      await account.pushCustomer!({ ...CUSTOMER, ...AGAIN });
      expect(count('contacts')).to.equal(2);
    });

    it('finds it on a later page', async () => {
      fake.page_size = 2;
      for (const number of [1, 2, 3]) fake.books.createContact({ contact_name: `N${number}`, notes: 'about cust_1' });
      fake.disturb(/POST contacts/, 'lost_answer');
      await catchFailure(() => account.pushCustomer!(CUSTOMER));
      await account.pushCustomer!({ ...CUSTOMER, ...AGAIN });
      expect(count('contacts')).to.equal(5);
    });
  });

  describe('pushInvoice', () => {
    it('sends one exact amount per line, and marks the draft as sent', async () => {
      const { provider_entity_id, url } = await account.pushInvoice!(invoice());
      const there = fake.books.read('invoices', provider_entity_id);
      expect(there).to.include({
        ...{
          status: 'sent',
          total: '99.05',
          currency_code: 'USD',
          invoice_number: 'INV-0001',
          reference_number: 'inv_1',
        },
        ...{ date: '2026-11-01', due_date: '2026-12-01', is_inclusive_tax: false },
      });
      expect(url).to.equal(there['invoice_url']);
      expect(fake.bodies.join()).to.contain('"rate":100.1,"quantity":1').and.contain('"rate":-20.05,');
      expect(fake.requests).to.deep.equal([
        'GET settings/currencies',
        'GET invoices',
        'POST invoices',
        `POST invoices/${provider_entity_id}/status/sent`,
      ]);
    });

    it('keeps each of 17 digits', async () => {
      const amount = '123456789012345.67';
      const { provider_entity_id } = await account.pushInvoice!(invoice({ lines: [line(amount)], total: amount }));
      expect(fake.bodies[0]).to.contain(`"rate":${amount},`);
      expect((await account.pullInvoice!(provider_entity_id))!.total).to.equal(amount);
    });

    for (const [currency, amount, refused] of [
      ['kwd', '1.234', '1.2345'],
      ['jpy', '1234', '12.5'],
      ['eur', '12.34', '12.345'],
    ] as const)
      it(`has the decimals of ${currency}`, async () => {
        const one = (total: string) => invoice({ currency, lines: [line(total)], total });
        expect((await catchFailure(() => account.pushInvoice!(one(refused)))).message).to.equal(
          `Zoho Books cannot represent ${refused} ${currency}`,
        );
        const { provider_entity_id } = await account.pushInvoice!(one(amount));
        expect(await account.pullInvoice!(provider_entity_id)).to.include({ total: amount, currency });
      });

    it('names a currency that the organization lacks', async () => {
      const { error_class, message } = await catchFailure(() => account.pushInvoice!(invoice({ currency: 'chf' })));
      expect([error_class, count('invoices')]).to.deep.equal(['person', 0]);
      expect(message).to.contain('no currency CHF');
    });

    for (const [what, change] of [
      ['adds tax', { tax_rate: '0.1' }],
      ['rounds the total', { rounds_to: 0 }],
    ] as const)
      it(`deletes the draft if the organization ${what}, and names both totals`, async () => {
        Object.assign(fake.books, change);
        const { error_class, message } = await catchFailure(() => account.pushInvoice!(invoice()));
        expect(error_class).to.equal('person');
        expect(message).to.match(
          /^the total of inv_1 is 99.05 usd in 3 lines, but (?:108.96|108.95|99) usd in 3 lines/,
        );
        expect(count('invoices')).to.equal(0);
      });

    for (const [request, disturbance] of [
      ['POST invoices$', 'lost_request'],
      ['POST invoices$', 'lost_answer'],
      ['POST invoices$', 'html'],
      ['status/sent', 'lost_request'],
      ['status/sent', 'lost_answer'],
    ] as const)
      it(`is there once, and sent, after ${disturbance} of ${request}`, async () => {
        fake.disturb(new RegExp(request), disturbance);
        expect((await catchFailure(() => account.pushInvoice!(invoice()))).error_class).to.equal('wait');
        const { provider_entity_id } = await account.pushInvoice!({ ...invoice(), ...AGAIN });
        expect(count('invoices')).to.equal(1);
        expect(fake.books.read('invoices', provider_entity_id)['status']).to.equal('sent');
        const searched = { invoice_id: 'inv_1', provider_customer_id: customer_id, key_created_at: new Date() };
        expect((await account.findInvoice!(searched))!.provider_entity_id).to.equal(provider_entity_id);
      });

    it('is there once if it is pushed twice within a second, and a number is not taken over', async () => {
      const first = await account.pushInvoice!(invoice());
      expect(await account.pushInvoice!(invoice())).to.deep.equal(first);
      const { message } = await catchFailure(() => account.pushInvoice!(invoice({ invoice_id: 'inv_2' })));
      expect(message).to.contain('already exists');
    });

    it('does not take over a void one, or one that was edited', async () => {
      const id = await newInvoice();
      Object.assign(fake.books.read('invoices', id), { total: '50' });
      const edited = await catchFailure(() => account.pushInvoice!({ ...invoice(), ...AGAIN }));
      expect(edited.message).to.contain('99.05').and.contain('50 usd').and.contain(`delete it there (${id})`);
      fake.books.setStatus('invoices', id, 'void');
      const searched = { invoice_id: 'inv_1', provider_customer_id: customer_id, key_created_at: new Date() };
      expect(await account.findInvoice!(searched)).to.equal(null);
      expect((await catchFailure(() => account.pushInvoice!({ ...invoice(), ...AGAIN }))).error_class).to.equal(
        'person',
      );
      expect(count('invoices')).to.equal(1);
    });

    it('waits as a draft for an approval', async () => {
      fake.books.needs_approval = true;
      expect((await catchFailure(() => account.pushInvoice!(invoice()))).error_class).to.equal('person');
      fake.books.needs_approval = false;
      await account.pushInvoice!({ ...invoice(), is_key_renewed: true });
      expect(fake.books.list('invoices').map(({ status }) => status)).to.deep.equal(['sent']);
    });

    it('shortens names, omits a long number, and sends no due date before its date', async () => {
      const description = 'x'.repeat(150);
      const lines = [line('99.05', description)];
      const sent = invoice({ lines, invoice_number: 'N'.repeat(101), due_date: '2026-10-01T00:00:00.000Z' });
      const { provider_entity_id } = await account.pushInvoice!(sent);
      const there = fake.books.read('invoices', provider_entity_id);
      expect(there['due_date']).to.equal('2026-11-01');
      expect(there['invoice_number']).to.match(/^AUTO-/);
      expect((there['line_items'] as object[])[0]).to.include({ name: 'x'.repeat(100), description });
    });
  });

  describe('voidInvoice', () => {
    it('voids it once, and deletes a draft', async () => {
      const id = await newInvoice();
      await account.voidInvoice!(id, 'void');
      const sent = fake.requests.length;
      await account.voidInvoice!(id, 'void');
      expect(fake.requests.slice(sent)).to.deep.equal([`GET invoices/${id}`]);
      expect((await account.pullInvoice!(id))!.invoice_status).to.equal('void');
      fake.disturb(/status\/sent/, 'lost_request');
      await catchFailure(() => account.pushInvoice!(invoice({ invoice_id: 'inv_2', invoice_number: '2' })));
      const draft = fake.books.list('invoices').at(-1)!;
      await account.voidInvoice!(draft.id, 'void');
      expect(count('invoices')).to.equal(1);
    });

    it('refuses one that has payments or credits', async () => {
      const paid = await newInvoice();
      await account.pushPayment!(payment(paid));
      expect((await catchFailure(() => account.voidInvoice!(paid, 'void'))).error_class).to.equal('person');
      const second = await account.pushInvoice!(invoice({ invoice_id: 'inv_2', invoice_number: '2' }));
      await account.pushCreditNote!(note(second.provider_entity_id));
      const refused = await catchFailure(() => account.voidInvoice!(second.provider_entity_id, 'void'));
      expect(refused.error_class).to.equal('person');
    });
  });

  describe('payments', () => {
    it('are applied to the invoice, and are read as ours', async () => {
      const id = await newInvoice();
      const made = await account.pushPayment!(payment(id));
      expect(fake.books.read('customerpayments', made.provider_entity_id)).to.include({
        ...{ amount: '40.05', date: '2026-11-05', reference_number: PAYMENT_ID },
        description: 'pi_12345678901234567890123',
      });
      expect(await account.pullInvoice!(id)).to.deep.equal({
        provider_entity_id: id,
        url: 'https://books.zoho.com/SecurePayment?CInvoiceID=INV-0001',
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

    for (const disturbance of ['lost_request', 'lost_answer'] as const)
      it(`are sent once after ${disturbance}`, async () => {
        const id = await newInvoice();
        fake.disturb(/POST customerpayments/, disturbance);
        await catchFailure(() => account.pushPayment!(payment(id)));
        for (const push of [PUSH, AGAIN]) await account.pushPayment!({ ...payment(id), ...push });
        expect(count('customerpayments')).to.equal(1);
      });

    it('are counted once if two attempts send one at the same time', async () => {
      const id = await newInvoice();
      const held = fake.hold(/POST customerpayments/);
      const first = account.pushPayment!(payment(id));
      await held.arrived;
      await account.pushPayment!(payment(id));
      held.release();
      expect((await catchFailure(() => first)).error_class).to.equal('wait');
      await account.pushPayment!({ ...payment(id), ...AGAIN });
      expect(count('customerpayments')).to.equal(1);
    });

    it('of more than is open need a person', async () => {
      const id = await newInvoice();
      const { error_class, provider_code } = await catchFailure(() =>
        account.pushPayment!(payment(id, { amount: '99.06' })),
      );
      expect([error_class, provider_code]).to.deep.equal(['person', '24016']);
    });

    it('of several invoices count with what they apply to each, also in several steps', async () => {
      const one = await newInvoice();
      const second = await account.pushInvoice!(invoice({ invoice_id: 'inv_2', invoice_number: '2' }));
      const other = second.provider_entity_id;
      const made = fake.books.createPayment({
        ...{ customer_id, payment_mode: 'cash', amount: '200', date: '2026-11-06' },
        invoices: [
          { invoice_id: one, amount_applied: '99.05' },
          { invoice_id: other, amount_applied: '0.95' },
        ],
      });
      fake.books.link('customerpayments', made.id, { invoice_id: other, amount_applied: '9' });
      const pulled = await account.pullInvoice!(one);
      expect([pulled!.invoice_status, pulled!.payments.map(({ amount }) => amount)]).to.deep.equal(['paid', ['99.05']]);
      const { payments } = (await account.pullInvoice!(other))!;
      expect(payments.map(({ amount, reported_payment_id }) => [amount, reported_payment_id])).to.deep.equal([
        ['9.95', null],
      ]);
      const subject = { kind: 'payment', provider_entity_id: made.id } as const;
      expect(await account.listConcernedInvoices!(subject)).to.deep.equal([one, other]);
      expect(await account.listConcernedInvoices!({ ...subject, provider_entity_id: '999' })).to.deep.equal([]);
    });
  });

  describe('credit notes', () => {
    for (const applies_credits of [false, true])
      it(`lower what is open once${applies_credits ? ', also if the organization applies credits by itself' : ''}`, async () => {
        fake.books.applies_credits = applies_credits;
        const id = await newInvoice();
        const made = await account.pushCreditNote!(note(id));
        await account.pushCreditNote!({ ...note(id), ...AGAIN });
        const { payments, credits } = (await account.pullInvoice!(id))!;
        expect([payments, credits]).to.deep.equal([
          [],
          [{ provider_credit_id: made.provider_entity_id, amount: '9.05' }],
        ]);
        expect(fake.books.read('creditnotes', made.provider_entity_id)).to.include({
          ...{ status: 'closed', date: '2026-11-02', notes: 'a fault of ours', creditnote_number: 'CN-1' },
        });
        expect(count('creditnotes')).to.equal(1);
      });

    for (const request of ['POST creditnotes$', 'status/open', 'POST creditnotes/\\d+/invoices'])
      for (const disturbance of ['lost_request', 'lost_answer'] as const)
        it(`are there once, and applied, after ${disturbance} of ${request}`, async () => {
          const id = await newInvoice();
          fake.disturb(new RegExp(request), disturbance);
          await catchFailure(() => account.pushCreditNote!(note(id)));
          await account.pushCreditNote!({ ...note(id), ...AGAIN });
          expect(count('creditnotes')).to.equal(1);
          expect(fake.books.read('invoices', id)['balance']).to.equal('90');
        });

    it('of money that was refunded elsewhere stay a credit there', async () => {
      const id = await newInvoice();
      const made = await account.pushCreditNote!(note(id, { effect: 'refunded_elsewhere' }));
      expect(fake.books.read('invoices', id)['balance']).to.equal('99.05');
      expect(fake.books.read('creditnotes', made.provider_entity_id)).to.include({ status: 'open', balance: '9.05' });
    });

    it('are deleted if their total differs', async () => {
      const id = await newInvoice();
      fake.books.tax_rate = '0.1';
      expect((await catchFailure(() => account.pushCreditNote!(note(id)))).message).to.contain('9.05 usd in 1 lines');
      expect(count('creditnotes')).to.equal(0);
    });

    it('are taken off the invoice before they are voided, once', async () => {
      const id = await newInvoice();
      const { provider_entity_id } = await account.pushCreditNote!(note(id));
      fake.disturb(/status\/void/, 'lost_request');
      await catchFailure(() => account.voidCreditNote!(provider_entity_id, 'void'));
      for (let times = 0; times < 2; times++) await account.voidCreditNote!(provider_entity_id, 'void');
      expect(fake.books.read('invoices', id)['balance']).to.equal('99.05');
      const searched = { credit_note_id: 'cn_1', provider_customer_id: customer_id, provider_invoice_id: id };
      expect(await account.findCreditNote!({ ...searched, key_created_at: new Date() })).to.equal(null);
      await account.voidCreditNote!('999', 'void');
    });
  });

  describe('pullInvoice', () => {
    it('maps each status', async () => {
      const id = await newInvoice();
      const there = fake.books.read('invoices', id);
      for (const [status, expected] of Object.entries({
        ...{ draft: 'draft', pending_approval: 'draft', approved: 'draft' },
        ...{
          sent: 'open',
          viewed: 'open',
          overdue: 'open',
          partially_paid: 'open',
          unpaid: 'open',
          unheard_of: 'open',
        },
        ...{ paid: 'paid', void: 'void' },
      })) {
        there['status'] = status;
        expect((await account.pullInvoice!(id))!.invoice_status, status).to.equal(expected);
      }
      Object.assign(there, { status: 'paid', write_off_amount: '5' });
      expect((await account.pullInvoice!(id))!.invoice_status).to.equal('uncollectible');
    });

    it('reads none that is gone, or whose id is no id of Zoho', async () => {
      expect(await account.pullInvoice!('999')).to.equal(null);
      const sent = fake.requests.length;
      for (const id of ['../contacts/1', 'in_1', '']) expect(await account.pullInvoice!(id)).to.equal(null);
      expect(fake.requests.length).to.equal(sent);
    });
  });

  describe('failures', () => {
    it('are waited for: a limit for a minute, the limit of a day for an hour', async () => {
      for (const [what, seconds] of [
        ['unavailable', null],
        ['html', null],
        ['rate_limit', 60],
        ['day_limit', 3_600],
      ] as const) {
        fake.disturb(/GET organizations/, what);
        const { error_class, retry_after_seconds } = await catchFailure(() => account.identify());
        expect([what, error_class, retry_after_seconds]).to.deep.equal([what, 'wait', seconds]);
      }
    });

    it('in an answer with status 200 are failures', async () => {
      fake.disturb(/POST invoices/, 'refusal_in_200');
      const { error_class, message } = await catchFailure(() => account.pushInvoice!(invoice()));
      expect([error_class, message]).to.deep.equal(['person', 'Zoho Books: The period is closed (4001)']);
    });

    it('waits before each request until the limit allows it', async () => {
      let requests = 0;
      const settings = { address: fake.url, beforeRequest: async () => void requests++ };
      const limited = await zoho_books.account!.open({ ...fake.secrets, access_token: fake.access_token }, settings);
      await limited.pushInvoice!(invoice());
      expect([requests, fake.requests.length]).to.deep.equal([4, 4]);
    });
  });
});
