/** A site of Chargebee: pushed and pulled records, and interrupted pushes, each of which is resumed with one record there. */
import { expect } from 'chai';
import { callWithSecrets } from '../../../actions/foundation/connections/call-account.ts';
import type { PushedInvoiceLine } from '../../../core/platform/integration/pushed-lines.ts';
import type {
  ProviderAccount,
  PushedCreditNote,
  PushedCustomer,
  PushedInvoice,
  PushedPayment,
} from '../../../integrations/account.ts';
import { chargebee } from '../../../integrations/chargebee/provider.ts';
import { API_KEY, ChargebeeFake } from '../../support/providers/chargebee-fake.ts';
import type {
  CreditNoteRecord,
  InvoiceRecord,
  TransactionRecord,
} from '../../support/providers/chargebee-fake-site.ts';
import { catchFailure } from '../../support/providers/failure.ts';

const PUSH = { key: 'imap_1', key_age_seconds: 0, key_created_at: new Date(), is_key_renewed: false };
const AGAIN = { ...PUSH, key_age_seconds: 60 };
const SECRETS = { site: 'fake-test', api_key: API_KEY };
const ULID = '01JZ8K3M5N7P9Q1R3S5T7V9W1X';

const CUSTOMER: PushedCustomer = {
  ...PUSH,
  customer_id: `cust_${ULID}`,
  external_id: 'acme',
  name: 'Acme & Söhne',
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
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();

describe('integrations/chargebee/account', () => {
  let fake: ChargebeeFake;
  let account: ProviderAccount;

  beforeEach(async () => {
    fake = await new ChargebeeFake().start();
    account = await chargebee.account!.open(SECRETS, { address: fake.url });
    await account.pushCustomer!(CUSTOMER);
  });
  afterEach(() => fake.stop());

  const invoice = (more: Partial<PushedInvoice> = {}): PushedInvoice => ({
    ...PUSH,
    invoice_id: `inv_${ULID}`,
    invoice_number: 'INV-0001',
    provider_customer_id: CUSTOMER.customer_id,
    currency: 'usd',
    lines: [line('80.05'), line('19')],
    total: '99.05',
    due_date: null,
    ...more,
  });
  const payment = (provider_invoice_id: string, more: Partial<PushedPayment> = {}): PushedPayment => ({
    ...PUSH,
    payment_id: `pay_${ULID}`,
    provider_customer_id: CUSTOMER.customer_id,
    provider_invoice_id,
    amount: '40.05',
    currency: 'usd',
    paid_at: '2026-11-05T10:00:00.000Z',
    reference: 'pi_12345',
    ...more,
  });
  const note = (provider_invoice_id: string, more: Partial<PushedCreditNote> = {}): PushedCreditNote => ({
    ...PUSH,
    credit_note_id: `cn_${ULID}`,
    credit_note_number: 'CN-1',
    provider_customer_id: CUSTOMER.customer_id,
    provider_invoice_id,
    currency: 'usd',
    lines: [line('9.05')],
    total: '9.05',
    effect: 'lowers_remaining',
    reason: 'SERVICE_ISSUE',
    ...more,
  });
  const push = async (more: Partial<PushedInvoice> = {}) =>
    (await account.pushInvoice!(invoice(more))).provider_entity_id;
  const find = (id: string) => fake.site.find<InvoiceRecord>('invoice', id);
  const count = (object: string) => fake.site.list(object).length;

  describe('identify', () => {
    it('names the site, to which the key belongs', async () => {
      expect(await account.identify()).to.deep.equal({ provider_account_id: 'fake-test', name: null });
    });

    it('tells that the key is refused, without the key', async () => {
      fake.is_revoked = true;
      const { is_unauthorized, message } = await catchFailure(() => account.identify());
      expect(is_unauthorized).to.equal(true);
      expect(message).to.contain('api_authentication_failed').and.not.contain(API_KEY);
    });

    it('knows a test site by its name', () => {
      expect(chargebee.account!.detectLive({ ...SECRETS, site: 'acme' })).to.equal(true);
      expect(chargebee.account!.detectLive(SECRETS)).to.equal(false);
    });
  });

  describe('the site', () => {
    const parse = (secrets: object) => chargebee.account!.secrets.safeParse({ ...SECRETS, ...secrets }).success;

    for (const site of ['acme', 'acme-test', 'a', 'a1', 'x'.repeat(63)])
      it(`is one label of a host: ${site}`, () => expect(parse({ site })).to.equal(true));

    for (const site of [
      '',
      'a.b',
      'evil.example/',
      'a/b',
      'a@b',
      'a:80',
      'a#',
      'a?b',
      '-a',
      'a-',
      'A',
      'ä',
      '127.0.0.1',
      'a\nb',
      'x'.repeat(64),
    ])
      it(`leads to no other host: ${JSON.stringify(site)}`, () => expect(parse({ site })).to.equal(false));

    it('has both credentials of the webhook or none', () => {
      expect(parse({ webhook_username: 'a', webhook_password: 'b' })).to.equal(true);
      expect(parse({ webhook_username: 'a' })).to.equal(false);
      expect(parse({ webhook_password: 'b' })).to.equal(false);
      expect(parse({ webhook_username: 'a', webhook_password: 'a' })).to.equal(false);
    });

    it('decides the rate of requests by its plan', async () => {
      const { requests_per_second } = chargebee.account!;
      const rate = typeof requests_per_second === 'function' ? requests_per_second : () => 0;
      expect([rate(SECRETS), rate({ ...SECRETS, requests_per_minute: '1000' })]).to.deep.equal([2.25, 15]);
      const settings = { SECRETS_KEYS: [], PROVIDER_ADDRESSES: [`chargebee=${fake.url.href}`] };
      const slow = { secrets: { ...SECRETS, requests_per_minute: '10' }, settings, pace_name: 'conn_slow' };
      const call = () => callWithSecrets({ provider_type: 'chargebee' }, slow, (one) => one.identify());
      await call();
      const { error_class, retry_after_seconds } = await catchFailure(call);
      expect([error_class, retry_after_seconds]).to.deep.equal(['wait', 7]);
    });
  });

  describe('pushCustomer', () => {
    it('sends our id, name, email and address', () => {
      const customer = fake.site.find('customer', CUSTOMER.customer_id);
      expect(customer).to.deep.include({
        company: 'Acme & Söhne',
        email: 'billing@acme.example',
        auto_collection: 'off',
        meta_data: { farthing_customer_id: CUSTOMER.customer_id, farthing_external_id: 'acme' },
        billing_address: { company: 'Acme & Söhne', line1: 'Way 1', city: 'Bern', zip: '3000', country: 'CH' },
      });
    });

    it('is created once, also with another key', async () => {
      fake.forgetKeys();
      const again = { ...CUSTOMER, key: 'imap_2' };
      expect(await account.pushCustomer!(again)).to.deep.equal({ provider_entity_id: CUSTOMER.customer_id, url: null });
      expect(count('customer')).to.equal(1);
      expect(await account.hasCustomer!(CUSTOMER.customer_id)).to.equal(true);
      expect(await account.hasCustomer!('cust_2')).to.equal(false);
    });

    it('shortens long texts, and leaves out an email that is too long', async () => {
      const customer_id = 'cust_2';
      const email = `${'a'.repeat(70)}@b.example`;
      await account.pushCustomer!({ ...CUSTOMER, key: 'k2', customer_id, name: `${'a'.repeat(249)}😀x`, email });
      const { company, email: sent } = fake.site.find('customer', customer_id);
      expect([company, sent]).to.deep.equal([`${'a'.repeat(249)}😀`, undefined]);
    });
  });

  describe('pushInvoice', () => {
    it('sends untaxed charges with their periods, to be paid without automatic collection', async () => {
      const created = find(await push());
      expect(created).to.include({
        status: 'payment_due',
        total: 9_905,
        amount_due: 9_905,
        currency_code: 'USD',
        tax: 0,
      });
      expect(created.notes).to.deep.equal([{ note: `Invoice INV-0001 (inv_${ULID})` }]);
      expect(created.line_items).to.deep.equal([
        ...[8_005, 1_900].map((amount) => ({
          ...{ amount, description: `for ${amount === 1_900 ? '19' : '80.05'}`, is_taxed: false, entity_type: 'adhoc' },
          ...{ date_from: 1_790_812_800, date_to: 1_793_491_199 },
        })),
      ]);
      expect(new URLSearchParams(fake.bodies.at(-1)).get('auto_collection')).to.equal('off');
    });

    it('joins the lines if one is negative, and lists them in the note', async () => {
      const created = find(await push({ lines: [line('100.10'), line('-20.05'), line('19')] }));
      expect(created.line_items).to.have.length(1);
      expect(created.line_items[0]).to.include({ amount: 9_905, description: 'Invoice INV-0001' });
      expect(created.notes[0]!.note).to.equal(
        `Invoice INV-0001 (inv_${ULID})\nfor 100.10: 100.10\nfor -20.05: -20.05\nfor 19: 19`,
      );
    });

    it('is due at the due date if the site has the term, and by the term of the customer otherwise', async () => {
      expect(find(await push({ due_date: inDays(30) }))).to.include({ net_term_days: 30, status: 'posted' });
      const other = { key: 'k2', invoice_id: 'inv_2', due_date: inDays(29) };
      expect(find(await push(other))).to.include({ net_term_days: 0, status: 'payment_due' });
    });

    for (const [name, more, why] of [
      ['lines that do not add up', { total: '99.06' }, /^the lines add up to 99.05 usd, the total is 99.06$/],
      ['a total of 0', { lines: [line('1'), line('-1')], total: '0' }, /over 0 usd cannot be sent/],
      ['no lines', { lines: [], total: '0' }, /without lines/],
      ['a fraction of a cent', { lines: [line('0.005')], total: '0.005' }, /cannot represent 0.005 usd/],
      ['a currency that the site lacks', { currency: 'sek' }, /currency_code : SEK is not configured/],
      ['a currency without a documented unit', { currency: 'clp' }, /^clp is not supported/],
    ] as const)
      it(`is refused with ${name}`, async () => {
        const { error_class, message } = await catchFailure(() => push(more));
        expect([error_class, message]).to.satisfy(([a, b]: string[]) => a === 'person' && why.test(b!), message);
        expect(count('invoice')).to.equal(0);
      });

    it('with another total there is voided, with both numbers, and can be sent again', async () => {
      fake.site.surcharge = 250;
      const { error_class, message } = await catchFailure(() => push());
      expect(error_class).to.equal('person');
      const [there] = fake.site.list<InvoiceRecord>('invoice');
      expect(message).to.equal(
        `the total of inv_${ULID} is 99.05 usd, but 101.55 usd at Chargebee, of which 101.55 is due: ${there!.id} was voided`,
      );
      expect(there!.status).to.equal('voided');
      fake.site.surcharge = 0;
      expect(await push({ key: 'k2', is_key_renewed: true })).to.not.equal(there!.id);
    });

    for (const failure of ['lost_request', 'lost_answer', 'fault', 'bad_gateway'] as const)
      it(`exists once after ${failure}, within the life of the key and after it`, async () => {
        fake.disturb(/^POST invoices/, failure);
        expect((await catchFailure(() => push())).error_class).to.equal('wait');
        const first = await push();
        fake.forgetKeys();
        expect(await push(AGAIN)).to.equal(first);
        expect(await push({ ...PUSH, key: 'k2', is_key_renewed: true })).to.equal(first);
        expect(count('invoice')).to.equal(1);
      });

    it('is found among many, and not by a part of an id', async () => {
      const ids: string[] = [];
      for (let number = 10; number < 130; number++)
        ids.push(await push({ key: `k${number}`, invoice_id: `inv_${number}` }));
      const searched = { provider_customer_id: CUSTOMER.customer_id, key_created_at: new Date() };
      const findId = async (invoice_id: string) =>
        (await account.findInvoice!({ ...searched, invoice_id }))?.provider_entity_id;
      expect(await findId('inv_10')).to.equal(ids[0]);
      expect(await findId('inv_1')).to.equal(undefined);
    });

    it('an earlier one that is paid meanwhile is taken', async () => {
      fake.disturb(/^POST invoices/, 'lost_answer');
      await catchFailure(() => push());
      const [{ id }] = fake.site.list<InvoiceRecord>('invoice') as [InvoiceRecord];
      fake.site.payInvoice(id);
      expect(await push(AGAIN)).to.equal(id);
    });

    it('an earlier one that a person changed stays', async () => {
      const id = await push();
      find(id).total = 100;
      fake.forgetKeys();
      expect((await catchFailure(() => push(AGAIN))).message)
        .to.contain(`but 1 usd at Chargebee`)
        .and.contain('correct');
      expect(find(id).status).to.equal('payment_due');
    });
  });

  describe('voidInvoice', () => {
    it('voids once, and not a paid one', async () => {
      const id = await push();
      await account.voidInvoice!(id, 'void');
      await account.voidInvoice!(id, 'void2');
      expect(find(id).status).to.equal('voided');
      await account.voidInvoice!('missing', 'void3');
      const paid = await push({ key: 'k2', invoice_id: 'inv_2' });
      fake.site.payInvoice(paid);
      expect((await catchFailure(() => account.voidInvoice!(paid, 'void4'))).error_class).to.equal('person');
    });

    for (const id of ['..', '.', '', 'a/../b', 'a//b'])
      it(`never leaves the path of invoices: ${JSON.stringify(id)}`, async () => {
        const before = fake.requests.length;
        await account.voidInvoice!(id, 'void');
        expect(fake.requests).to.have.length(before);
      });

    it('does not take an answer about another record', async () => {
      const id = await push();
      expect(await account.pullInvoice!(`${id}/payments`)).to.equal(null);
    });
  });

  describe('pushPayment', () => {
    it('is recorded as money outside, with our id', async () => {
      const id = await push();
      const { provider_entity_id } = await account.pushPayment!(payment(id));
      expect(fake.site.find('transaction', provider_entity_id)).to.include({
        ...{ amount: 4_005, gateway: 'not_applicable', payment_method: 'other', date: 1_793_872_800 },
        reference_number: `pay_${ULID} pi_12345`,
      });
      expect(find(id)).to.include({ amount_due: 5_900, status: 'payment_due' });
    });

    it('exists once after a lost answer, within the life of the key and after it', async () => {
      const id = await push();
      fake.disturb(/record_payment/, 'lost_answer');
      await catchFailure(() => account.pushPayment!(payment(id)));
      const first = await account.pushPayment!(payment(id));
      fake.forgetKeys();
      expect(await account.pushPayment!(payment(id, AGAIN))).to.deep.equal(first);
      expect([count('transaction'), find(id).amount_due]).to.deep.equal([1, 5_900]);
    });

    it('is no more than what is due, so that nothing is credited to the customer', async () => {
      const id = await push();
      await account.pushPayment!(payment(id, { amount: '120' }));
      expect(fake.site.list<TransactionRecord>('transaction')[0]).to.include({ amount: 9_905, amount_unused: 0 });
      const late = payment(id, { key: 'k2', payment_id: 'pay_2' });
      expect((await catchFailure(() => account.pushPayment!(late))).message).to.contain(`the invoice ${id} is paid`);
    });
  });

  describe('pushCreditNote', () => {
    it('lowers what remains, and is undone by a void', async () => {
      const id = await push();
      const { provider_entity_id } = await account.pushCreditNote!(note(id));
      expect(fake.site.find('credit_note', provider_entity_id)).to.include({ type: 'adjustment', total: 905 });
      expect(find(id).amount_due).to.equal(9_000);
      fake.forgetKeys();
      expect((await account.pushCreditNote!(note(id, AGAIN))).provider_entity_id).to.equal(provider_entity_id);
      await account.voidCreditNote!(provider_entity_id, 'void');
      await account.voidCreditNote!(provider_entity_id, 'void2');
      expect([find(id).amount_due, await account.findCreditNote!(note(id))]).to.deep.equal([9_905, null]);
    });

    it('is refused over more than what remains', async () => {
      const id = await push();
      const big = note(id, { lines: [line('100')], total: '100' });
      expect((await catchFailure(() => account.pushCreditNote!(big))).message).to.contain('99.05 remains at Chargebee');
      expect(count('credit_note')).to.equal(0);
    });

    it('records a refund that was made elsewhere, and deletes it to void the credit note', async () => {
      const id = await push();
      await account.pushPayment!(payment(id, { amount: '99.05' }));
      const elsewhere = note(id, { effect: 'refunded_elsewhere' });
      const { provider_entity_id } = await account.pushCreditNote!(elsewhere);
      const credit_note = fake.site.find<CreditNoteRecord>('credit_note', provider_entity_id);
      expect(credit_note).to.include({ type: 'refundable', status: 'refunded', total: 905 });
      const { credits, payments } = (await account.pullInvoice!(id))!;
      expect(credits).to.deep.equal([
        { provider_credit_id: provider_entity_id, amount: '9.05', reported_credit_note_id: `cn_${ULID}` },
      ]);
      expect(payments[0]).to.include({ refunded_amount: '0', is_outside: true });
      await account.voidCreditNote!(provider_entity_id, 'void');
      expect(credit_note.status).to.equal('voided');
    });

    it('of a refund by a gateway is not voided', async () => {
      const id = await push();
      fake.site.refundPayment(fake.site.payInvoice(id).id, 100);
      const [credit_note] = fake.site.list<CreditNoteRecord>('credit_note');
      expect((await catchFailure(() => account.voidCreditNote!(credit_note!.id, 'void'))).error_class).to.equal(
        'person',
      );
    });
  });

  describe('pullInvoice', () => {
    it('reads the payments, with our id where we recorded them', async () => {
      const id = await push();
      const { provider_entity_id } = await account.pushPayment!(payment(id));
      const online = fake.site.payInvoice(id);
      fake.site.refundPayment(online.id, 900);
      const pulled = (await account.pullInvoice!(id))!;
      expect(pulled).to.include({ invoice_status: 'paid', total: '99.05', currency: 'usd' });
      expect(pulled.credits).to.deep.equal([]);
      expect(
        pulled.payments.map(({ paid_at: _, refunds, ...one }) => ({ ...one, refunds: refunds!.length })),
      ).to.deep.equal([
        {
          ...{ provider_payment_id: online.id, payment_status: 'succeeded', amount: '59', currency: 'usd', refunds: 1 },
          ...{ refunded_amount: '9', provider_tax: null, reported_payment_id: null, is_outside: false },
        },
        {
          ...{ provider_payment_id: provider_entity_id, payment_status: 'succeeded', amount: '40.05', currency: 'usd' },
          ...{
            refunds: 0,
            refunded_amount: '0',
            provider_tax: null,
            reported_payment_id: `pay_${ULID}`,
            is_outside: true,
          },
        },
      ]);
    });

    for (const [status, expected] of [
      ['pending', 'draft'],
      ['posted', 'open'],
      ['payment_due', 'open'],
      ['not_paid', 'open'],
      ['voided', 'void'],
      ['paid', 'paid'],
    ] as const)
      it(`${status} is ${expected}`, async () => {
        const id = await push();
        find(id).status = status;
        expect((await account.pullInvoice!(id))!.invoice_status).to.equal(expected);
      });

    it('a written-off invoice is uncollectible, a deleted one is gone, an unknown status needs a person', async () => {
      const id = await push();
      Object.assign(find(id), { status: 'paid', write_off_amount: 9_905 });
      expect((await account.pullInvoice!(id))!.invoice_status).to.equal('uncollectible');
      Object.assign(find(id), { status: 'new' });
      expect((await catchFailure(() => account.pullInvoice!(id))).error_class).to.equal('person');
      find(id).deleted = true;
      expect(await account.pullInvoice!(id)).to.equal(null);
      expect(await account.pullInvoice!('missing')).to.equal(null);
    });

    for (const [status, expected] of [
      ['in_progress', 'pending'],
      ['needs_attention', 'pending'],
      ['failure', 'failed'],
      ['late_failure', 'failed'],
      ['timeout', 'failed'],
      ['voided', 'failed'],
    ] as const)
      it(`a payment that is ${status} is ${expected}`, async () => {
        const id = await push();
        fake.site.payInvoice(id, { status: 'in_progress' });
        fake.site.list<TransactionRecord>('transaction')[0]!.status = status;
        expect((await account.pullInvoice!(id))!.payments[0]).to.include({ payment_status: expected, paid_at: null });
      });

    it('a credit of another invoice that is applied is a credit', async () => {
      const id = await push();
      find(id)['applied_credits'] = [{ cn_id: 'CN-9', applied_amount: 500 }];
      expect((await account.pullInvoice!(id))!.credits).to.deep.equal([{ provider_credit_id: 'CN-9', amount: '5' }]);
    });
  });

  it('an event of a transaction leads to its invoices', async () => {
    const id = await push();
    const { id: payment_id } = fake.site.payInvoice(id);
    const list = (kind: 'invoice' | 'payment', provider_entity_id: string) =>
      account.listConcernedInvoices!({ kind, provider_entity_id });
    expect(await list('payment', payment_id)).to.deep.equal([id]);
    expect(await list('payment', 'txn_missing')).to.deep.equal([]);
    expect(await list('payment', id), 'a page').to.deep.equal([]);
    expect(await list('invoice', id)).to.deep.equal([id]);
  });

  describe('limits and faults', () => {
    it('after too many requests it waits as long as Chargebee asks, or a minute', async () => {
      for (const [asked, expected] of [
        [7, 7],
        [null, 60],
      ] as const) {
        fake.retry_after_seconds = asked;
        fake.disturb(/./, 'rate_limit');
        const { error_class, retry_after_seconds } = await catchFailure(() => account.identify());
        expect([error_class, retry_after_seconds]).to.deep.equal(['wait', expected]);
      }
    });
  });
});
