/**
 * An account at HubSpot: pushed and pulled records, and interrupted pushes, each of which is resumed with one record
 * there.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import type { PushedInvoiceLine } from '../../../core/platform/integration/pushed-lines.ts';
import type {
  ProviderAccount,
  PushedCustomer,
  PushedInvoice,
  PushedPayment,
  PushedSubscription,
} from '../../../integrations/account.ts';
import { hubspot } from '../../../integrations/hubspot/provider.ts';
import { catchFailure } from '../../support/providers/failure.ts';
import { HubSpotFake } from '../../support/providers/hubspot-fake.ts';

const PUSH = { key: 'imap_1', key_age_seconds: 0, key_created_at: new Date(), is_key_renewed: false };
const AGAIN = { ...PUSH, key_age_seconds: 60 };
const INVOICE_ID = 'inv_01JZ8K3M5N7P9Q1R3S5T7V9W1X';
const PAYMENT_ID = 'pay_01JZ8K3M5N7P9Q1R3S5T7V9W1X';

const CUSTOMER: PushedCustomer = {
  ...PUSH,
  customer_id: 'cust_1',
  external_id: 'acme',
  name: "O'Neill & Acme",
  email: 'billing@acme.example',
  address: { line1: 'Way 1', line2: 'Floor 2', city: 'Bern', state: '', postal_code: '3000', country: 'CH' },
};

const BUSINESS = { ...CUSTOMER, business_name: 'Acme AG' };
const SUBSCRIPTION: Omit<PushedSubscription, 'provider_customer_id'> = {
  ...PUSH,
  subscription_id: 'subs_1',
  customer_id: 'cust_1',
  name: 'Acme – Pro',
  amount: '120.5',
  currency: 'usd',
  start_date: '2026-11-01T00:00:00.000Z',
  subscription_status: 'trialing',
};

const line = (amount: string, description = `for ${amount}`): PushedInvoiceLine => ({
  description,
  amount,
  line_item_id: null,
  period_start: '2026-10-01T00:00:00.000Z',
  period_end: '2026-11-01T00:00:00.000Z',
});

describe('integrations/hubspot/account', () => {
  let fake: HubSpotFake;
  let account: ProviderAccount;
  let customer_id: string;

  beforeEach(async () => {
    fake = await new HubSpotFake().start();
    account = await hubspot.account!.open(fake.secrets, { address: fake.url });
    customer_id = fake.crm.create('contacts', { properties: { lastname: 'Somebody' } }).id;
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
    invoice_id: INVOICE_ID,
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
  const list = (
    type: 'contacts' | 'companies' | 'deals' | 'invoices' | 'line_items' | 'discounts' | 'commerce_payments',
  ) => fake.crm.list(type).map(({ properties }) => properties);
  const count = () => [list('invoices').length, list('line_items').length, list('discounts').length];

  describe('identify', () => {
    it('reads the id of the account', async () => {
      expect(await account.identify()).to.deep.equal({ provider_account_id: '4711', name: null });
    });

    it('tells that the token is refused', async () => {
      fake.is_revoked = true;
      expect(await catchFailure(() => account.identify())).to.include({
        error_class: 'person',
        is_unauthorized: true,
        provider_code: 'INVALID_AUTHENTICATION',
      });
    });
  });

  describe('pushSubscription', () => {
    const push = async (more: Partial<PushedSubscription> = {}, customer: PushedCustomer = BUSINESS) => {
      const { provider_entity_id: provider_customer_id } = await account.pushCustomer!({ ...customer, ...AGAIN });
      return await account.pushSubscription!({ ...SUBSCRIPTION, provider_customer_id, ...more });
    };

    it('creates a deal with the contact and the company of the customer', async () => {
      const { provider_entity_id } = await push();
      expect(fake.crm.get('deals', provider_entity_id).properties).to.deep.equal({
        dealname: 'Acme – Pro',
        pipeline: 'default',
        dealstage: 'decisionmakerboughtin',
        amount: '120.5',
        deal_currency_code: 'USD',
        closedate: '2026-11-01T00:00:00.000Z',
        farthing_id: 'subs_1',
      });
      const linked = (type: 'contacts' | 'companies') => fake.crm.listLinked('deals', provider_entity_id, type);
      expect([linked('contacts').length, linked('companies').length]).to.deep.equal([1, 1]);
    });

    it('of a person has no company', async () => {
      const { provider_entity_id } = await push({}, CUSTOMER);
      expect(fake.crm.listLinked('deals', provider_entity_id, 'companies')).to.deep.equal([]);
    });

    it('is not repeated if its answer was lost; the deal then has the current stage', async () => {
      fake.disturb(/^POST 0-3$/, 'lost_answer');
      expect((await catchFailure(() => push())).error_class).to.equal('wait');
      await push({ ...AGAIN, subscription_status: 'active' });
      expect(list('deals').map(({ dealstage }) => dealstage)).to.deep.equal(['closedwon']);
    });

    for (const [subscription_status, stage] of [
      ['trialing', 'decisionmakerboughtin'],
      ['incomplete', 'contractsent'],
      ['active', 'closedwon'],
      ['paused', 'closedwon'],
      ['cancelled', 'closedlost'],
    ] as const)
      it(`that is ${subscription_status} is in the stage ${stage}, and stays as a person edited it otherwise`, async () => {
        const { provider_entity_id } = await push();
        fake.crm.update('deals', provider_entity_id, { amount: '99' });
        await account.updateSubscription!(provider_entity_id, { subscription_status });
        expect(fake.crm.get('deals', provider_entity_id).properties).to.include({ dealstage: stage, amount: '99' });
      });

    it('in a currency that the account lacks is refused', async () => {
      const failure = await catchFailure(() => push({ currency: 'sek' }));
      expect(failure).to.include({ error_class: 'person' });
      expect(failure.message).to.match(/does not accept the currency sek: add it to the account there/);
      expect(list('deals')).to.deep.equal([]);
    });

    it('that was deleted there is refused', async () => {
      const { provider_entity_id } = await push();
      fake.crm.archive('deals', provider_entity_id);
      const update = () => account.updateSubscription!(provider_entity_id, { subscription_status: 'active' });
      expect(await catchFailure(update)).to.include({ error_class: 'person', is_missing: true });
    });

    it('a search that HubSpot refuses for another reason than the missing property is no proof that there is none', async () => {
      await push();
      fake.disturb(/^GET 0-3\/subs_1$/, 'refusal');
      expect((await catchFailure(() => push(AGAIN))).error_class).to.equal('person');
      expect(list('deals')).to.have.length(1);
    });
  });

  describe('pushCustomer', () => {
    it('creates a contact with name, e-mail, address and our id, and the property of the id once', async () => {
      const { provider_entity_id } = await account.pushCustomer!(CUSTOMER);
      expect(fake.crm.get('contacts', provider_entity_id).properties).to.deep.equal({
        email: 'billing@acme.example',
        lastname: "O'Neill & Acme",
        company: "O'Neill & Acme",
        address: 'Way 1, Floor 2',
        city: 'Bern',
        zip: '3000',
        country: 'CH',
        farthing_id: 'cust_1',
      });
      const before = fake.requests.length;
      await account.pushCustomer!({ ...CUSTOMER, customer_id: 'cust_2', email: 'second@acme.example' });
      expect(fake.requests.slice(before)).to.deep.equal(['POST 0-1']);
    });

    it('creates a company of a business, once, with the contact', async () => {
      fake.disturb(/^POST 0-2$/, 'lost_answer');
      expect((await catchFailure(() => account.pushCustomer!(BUSINESS))).error_class).to.equal('wait');
      const { provider_entity_id } = await account.pushCustomer!({ ...BUSINESS, ...AGAIN });
      const [company, ...others] = fake.crm.list('companies');
      expect(others).to.deep.equal([]);
      expect(company!.properties).to.deep.equal({
        name: 'Acme AG',
        address: 'Way 1, Floor 2',
        city: 'Bern',
        zip: '3000',
        country: 'CH',
        farthing_id: 'cust_1',
      });
      expect(fake.crm.listLinked('companies', company!.id, 'contacts')).to.deep.equal([provider_entity_id]);
    });

    it('creates no company of a person', async () => {
      await account.pushCustomer!({ ...CUSTOMER, business_name: null });
      expect(list('companies')).to.deep.equal([]);
    });

    it('one without an e-mail and a name has its external id as the name', async () => {
      const { provider_entity_id } = await account.pushCustomer!({ ...CUSTOMER, name: ' ', email: '' });
      const { properties } = fake.crm.get('contacts', provider_entity_id);
      expect(properties).to.include({ lastname: 'acme' }).and.not.have.property('email');
    });

    it('is not repeated if its answer was lost', async () => {
      fake.disturb(/^POST 0-1$/, 'lost_answer');
      expect((await catchFailure(() => account.pushCustomer!(CUSTOMER))).error_class).to.equal('wait');
      await account.pushCustomer!({ ...CUSTOMER, ...AGAIN });
      await account.pushCustomer!({ ...CUSTOMER, email: '' });
      expect(list('contacts').filter(({ farthing_id }) => farthing_id === 'cust_1')).to.have.length(1);
    });

    it('a contact with the e-mail that is not ours is linked by a person, never by itself', async () => {
      fake.crm.create('contacts', { properties: { email: CUSTOMER.email } });
      const { error_class, message } = await catchFailure(() => account.pushCustomer!(CUSTOMER));
      expect(error_class).to.equal('person');
      expect(message).to.match(/"billing@acme.example" already: link it .* Existing ID: \d+/);
    });

    it('an app without the scope for properties needs attention, and the error names the scope', async () => {
      fake.missing_scopes = ['crm.schemas.contacts.write'];
      const failure = await catchFailure(() => account.pushCustomer!(CUSTOMER));
      expect(failure).to.include({ is_unauthorized: true, provider_code: 'MISSING_SCOPES' });
      expect(failure.message).to.contain('crm.schemas.contacts.write');
    });

    it('a deleted contact is still one of the account', async () => {
      expect(await account.hasCustomer!(customer_id)).to.equal(true);
      fake.crm.archive('contacts', customer_id);
      expect(await account.hasCustomer!(customer_id)).to.equal(true);
      expect(await account.hasCustomer!('987654')).to.equal(false);
    });
  });

  describe('pushInvoice', () => {
    it('sends a line for each amount, and a negative one as a discount, and opens the invoice', async () => {
      const { provider_entity_id, url } = await account.pushInvoice!(invoice());
      expect(url).to.equal(`https://invoice.example/${provider_entity_id}`);
      expect(fake.crm.get('invoices', provider_entity_id).properties).to.include({
        hs_currency: 'USD',
        hs_invoice_date: '2026-11-01T23:30:00.000Z',
        hs_due_date: '2026-12-01T00:00:00.000Z',
        hs_comments: 'Invoice INV-0001',
        hs_invoice_status: 'open',
        hs_amount_billed: '99.05',
        farthing_id: INVOICE_ID,
      });
      expect(fake.crm.listLinked('invoices', provider_entity_id, 'contacts')).to.deep.equal([customer_id]);
      expect(list('line_items')).to.deep.equal(
        ['100.1', '19'].map((price) => ({
          name: `for ${price === '19' ? price : '100.10'}`,
          description: '2026-10-01 – 2026-11-01',
          quantity: '1',
          price,
          hs_line_item_currency_code: 'USD',
        })),
      );
      expect(list('discounts')).to.deep.equal([
        { hs_label: 'for -20.05', hs_type: 'FIXED', hs_value: '20.05', hs_sort_order: '0' },
      ]);
    });

    it('sends more than a hundred lines in several requests', async () => {
      const lines = Array.from({ length: 201 }, () => line('1'));
      const { provider_entity_id } = await account.pushInvoice!(invoice({ lines, total: '201' }));
      expect(fake.crm.get('invoices', provider_entity_id).properties['hs_amount_billed']).to.equal('201');
      expect(fake.requests.filter((one) => one === 'POST 0-8/batch/create')).to.have.length(3);
    });

    it('waits until HubSpot has computed the total', async () => {
      fake.crm.delayed_reads = 2;
      const { provider_entity_id } = await account.pushInvoice!(invoice());
      expect(fake.crm.get('invoices', provider_entity_id).properties['hs_invoice_status']).to.equal('open');
    });

    it('waits until HubSpot has subtracted the discounts', async () => {
      Object.assign(fake.crm, { delayed_reads: 2, delayed_total: '119.1' });
      const { provider_entity_id } = await account.pushInvoice!(invoice());
      expect(fake.crm.get('invoices', provider_entity_id).properties['hs_invoice_status']).to.equal('open');
    });

    it('another total leaves nothing there, and the error has both', async () => {
      fake.crm.tax_rate = '0.2';
      const { error_class, message } = await catchFailure(() => account.pushInvoice!(invoice()));
      expect(error_class).to.equal('person');
      expect(message).to.match(
        /^the total of invoice inv_\w+ is 99.05 usd, but 118.86 usd at HubSpot, where it was del/,
      );
      expect(count()).to.deep.equal([0, 0, 0]);
      fake.crm.tax_rate = '0';
      await account.pushInvoice!({ ...invoice(), is_key_renewed: true });
      expect(count()).to.deep.equal([1, 2, 1]);
    });

    it('a refused opening leaves nothing there', async () => {
      fake.disturb(/^PATCH 0-53\/\d+$/, 'unavailable');
      expect((await catchFailure(() => account.pushInvoice!(invoice()))).error_class).to.equal('wait');
      expect(list('invoices').map(({ hs_invoice_status }) => hs_invoice_status)).to.deep.equal(['draft']);
      fake.crm.archive('contacts', customer_id);
      const { error_class, message } = await catchFailure(() => account.pushInvoice!(invoice(AGAIN)));
      expect([error_class, message]).to.deep.equal([
        'person',
        'HubSpot: An open invoice needs a contact and a line item',
      ]);
      expect(count()).to.deep.equal([0, 0, 0]);
    });

    it('refuses a currency that the account does not have', async () => {
      const { error_class, message } = await catchFailure(() => account.pushInvoice!(invoice({ currency: 'chf' })));
      expect([error_class, list('invoices')]).to.deep.equal(['person', []]);
      expect(message).to.match(/^HubSpot does not accept the currency chf: add it to the account there/);
    });

    for (const [why, more, expected] of [
      ['more decimals than the currency has', { lines: [line('1.005')], total: '1.005' }, /cannot represent 1.005 usd/],
      ['decimals of a currency without them', { currency: 'jpy', lines: [line('1.5')], total: '1.5' }, /1.5 jpy/],
      ['lines that are not the total', { total: '99' }, /add up to 99.05 usd, the total is 99$/],
      ['a total of 0', { lines: [line('5'), line('-5')], total: '0' }, /over 0 cannot be sent/],
      ['no lines', { lines: [], total: '0' }, /over 0 cannot be sent/],
    ] as const)
      it(`refuses ${why} before anything is sent`, async () => {
        const { error_class, message } = await catchFailure(() => account.pushInvoice!(invoice(more)));
        expect(error_class).to.equal('person');
        expect(message).to.match(expected);
        expect(fake.requests).to.deep.equal([]);
      });

    for (const at of ['POST 0-53', 'POST 0-8/batch/create', 'POST 0-84/batch/create', 'PATCH 0-53'])
      for (const failure of ['lost_answer', 'unavailable', 'rate_limit'] as const)
        it(`${failure} of ${at} is resumed with one invoice`, async () => {
          fake.disturb(new RegExp(`^${at}`), failure);
          expect((await catchFailure(() => account.pushInvoice!(invoice()))).error_class).to.equal('wait');
          const { provider_entity_id } = await account.pushInvoice!(invoice(AGAIN));
          expect(await account.pushInvoice!(invoice(AGAIN))).to.include({ provider_entity_id });
          expect(await account.pushInvoice!(invoice()), 'also without a search').to.include({ provider_entity_id });
          expect(list('invoices')).to.have.length(1);
          expect(count(), 'lines of an earlier attempt are removed').to.deep.equal([1, 2, 1]);
          expect(list('invoices')[0]).to.include({ hs_invoice_status: 'open', hs_amount_billed: '99.05' });
        });

    it('any interruptions end with one open invoice', async () => {
      const places = fc.constantFrom('POST 0-53', 'GET 0-53', 'POST 0-8/', 'POST 0-84/', 'PATCH 0-53', 'DELETE 0-53');
      const failures = fc.constantFrom('lost_answer' as const, 'unavailable' as const, 'html' as const);
      await fc.assert(
        fc.asyncProperty(fc.array(fc.tuple(places, failures), { maxLength: 6 }), fc.uuid(), async (all, invoice_id) => {
          for (const [at, failure] of all) {
            fake.disturb(new RegExp(`^${at}`), failure);
            await account.pushInvoice!(invoice({ ...AGAIN, invoice_id })).catch(() => {});
          }
          fake.clearDisturbances();
          const { provider_entity_id } = await account.pushInvoice!(invoice({ ...AGAIN, invoice_id }));
          const ours = list('invoices').filter(({ farthing_id }) => farthing_id === invoice_id);
          expect(ours).to.have.length(1);
          expect(fake.crm.get('invoices', provider_entity_id).properties['hs_amount_billed']).to.equal('99.05');
          expect(list('invoices').filter(({ hs_invoice_status }) => hs_invoice_status === 'draft')).to.deep.equal([]);
        }),
        { numRuns: 25 },
      );
    });

    it('an invoice of an earlier attempt that a person has edited stays, and is refused', async () => {
      const { provider_entity_id } = await account.pushInvoice!(invoice());
      const [line_id = ''] = fake.crm.listLinked('invoices', provider_entity_id, 'line_items');
      fake.crm.update('line_items', line_id, { price: '1' });
      const { message } = await catchFailure(() => account.pushInvoice!(invoice(AGAIN)));
      expect(message).to.contain('99.05 usd').and.contain('correct or delete it there');
      expect(list('invoices')).to.have.length(1);
    });

    it('a total that changes while the invoice is opened voids it', async () => {
      const held = fake.hold(/^PATCH 0-53/);
      const pushed = catchFailure(() => account.pushInvoice!(invoice()));
      await held.arrived;
      fake.crm.tax_rate = '0.2';
      held.release();
      expect((await pushed).message).to.contain('118.86 usd at HubSpot, where it was voided');
      expect(list('invoices')[0]).to.include({ hs_invoice_status: 'voided' });
    });

    it('one that a person has voided is replaced', async () => {
      const first = await account.pushInvoice!(invoice());
      fake.crm.update('invoices', first.provider_entity_id, { hs_invoice_status: 'voided' });
      const second = await account.pushInvoice!(invoice(AGAIN));
      expect(second.provider_entity_id).not.to.equal(first.provider_entity_id);
      expect(list('invoices').map(({ hs_invoice_status }) => hs_invoice_status)).to.deep.equal(['voided', 'open']);
    });
  });

  describe('voidInvoice', () => {
    it('voids once', async () => {
      const { provider_entity_id } = await account.pushInvoice!(invoice());
      for (let times = 0; times < 2; times++) await account.voidInvoice!(provider_entity_id, 'key');
      expect(list('invoices')[0]).to.include({ hs_invoice_status: 'voided' });
      await account.voidInvoice!('987654', 'key');
    });

    it('deletes a draft', async () => {
      fake.disturb(/^PATCH 0-53/, 'unavailable');
      await catchFailure(() => account.pushInvoice!(invoice()));
      const searched = { invoice_id: INVOICE_ID, provider_customer_id: customer_id, key_created_at: new Date() };
      const found = await account.findInvoice!(searched);
      await account.voidInvoice!(found!.provider_entity_id, 'key');
      expect(count()).to.deep.equal([0, 0, 0]);
      expect(await account.findInvoice!(searched)).to.equal(null);
    });

    it('refuses one with payments', async () => {
      const { provider_entity_id } = await account.pushInvoice!(invoice());
      await account.pushPayment!(payment(provider_entity_id));
      expect((await catchFailure(() => account.voidInvoice!(provider_entity_id, 'key'))).message).to.contain(
        'payments',
      );
    });
  });

  describe('pushPayment and pullInvoice', () => {
    let invoice_id: string;
    beforeEach(async () => {
      invoice_id = (await account.pushInvoice!(invoice())).provider_entity_id;
    });
    const pull = async () => (await account.pullInvoice!(invoice_id))!;

    it('a payment lowers the invoice, and is reported as ours', async () => {
      const { provider_entity_id } = await account.pushPayment!(payment(invoice_id));
      expect(fake.crm.get('commerce_payments', provider_entity_id).properties).to.include({
        hs_initial_amount: '40.05',
        hs_currency_code: 'USD',
        hs_initiated_date: '2026-11-05T10:00:00.000Z',
        hs_latest_status: 'succeeded',
        hs_payment_method_type: 'other',
        hs_reference_number: 'pi_12345678901234567890123',
        farthing_id: PAYMENT_ID,
      });
      expect(await pull()).to.deep.equal({
        provider_entity_id: invoice_id,
        url: `https://invoice.example/${invoice_id}`,
        invoice_status: 'open',
        total: '99.05',
        currency: 'usd',
        payments: [
          {
            provider_payment_id: provider_entity_id,
            payment_status: 'succeeded',
            amount: '40.05',
            currency: 'usd',
            paid_at: '2026-11-05T10:00:00.000Z',
            refunded_amount: '0',
            provider_tax: null,
            reported_payment_id: PAYMENT_ID,
          },
        ],
      });
      await account.pushPayment!(payment(invoice_id, { payment_id: INVOICE_ID, amount: '59' }));
      expect((await pull()).invoice_status).to.equal('paid');
      expect((await pull()).payments.map(({ reported_payment_id }) => reported_payment_id)).to.have.members([
        PAYMENT_ID,
        INVOICE_ID,
      ]);
    });

    it('is not repeated if its answer was lost', async () => {
      fake.disturb(/^POST 0-101$/, 'lost_answer');
      expect((await catchFailure(() => account.pushPayment!(payment(invoice_id)))).error_class).to.equal('wait');
      await account.pushPayment!({ ...payment(invoice_id), ...AGAIN });
      await account.pushPayment!(payment(invoice_id));
      expect(list('commerce_payments')).to.have.length(1);
    });

    it('one of an earlier attempt with another amount stays, and is refused', async () => {
      await account.pushPayment!(payment(invoice_id));
      const { message } = await catchFailure(() => account.pushPayment!(payment(invoice_id, { amount: '7' })));
      expect(message).to.contain('is 7 usd, but 40.05 usd at HubSpot, correct or delete it there');
      expect(list('commerce_payments')).to.have.length(1);
    });

    const payThere = (properties: Record<string, string>, ids = [invoice_id]) =>
      fake.crm.create('commerce_payments', {
        properties: { hs_initial_amount: '10', hs_initiated_date: '2026-11-05T10:00:00Z', ...properties },
        associations: ids.map((id) => ({
          to: { id },
          types: [{ associationCategory: 'HUBSPOT_DEFINED', associationTypeId: 542 }],
        })),
      }).id;

    for (const [status, expected, refunded] of [
      ['processing', 'pending', '0'],
      ['succeeded', 'succeeded', '0'],
      ['failed', 'failed', '0'],
      ['refunded', 'refunded', '10'],
      ['processing_refund', 'succeeded', '0'],
      ['disputed_lost', 'succeeded', '0'],
      ['disputed_action_required', 'succeeded', '0'],
    ] as const)
      it(`a payment that is ${status} there is read as ${expected}`, async () => {
        payThere({ hs_latest_status: status });
        const [only] = (await pull()).payments;
        expect(only).to.include({ payment_status: expected, amount: '10', refunded_amount: refunded, currency: 'usd' });
        expect(only).to.include({ reported_payment_id: null, paid_at: '2026-11-05T10:00:00.000Z' });
      });

    it('a part of a payment may be refunded', async () => {
      payThere({ hs_latest_status: 'partially_refunded', hs_refunds_amount: '4' });
      expect((await pull()).payments[0]).to.include({
        payment_status: 'succeeded',
        amount: '10',
        refunded_amount: '4',
      });
    });

    it('many payments are read from all pages, in both forms of the list', async () => {
      for (let times = 0; times < 5; times++) payThere({ hs_latest_status: 'succeeded' });
      expect((await pull()).payments).to.have.length(5);
      fake.has_v3_associations = true;
      expect((await pull()).payments).to.have.length(5);
    });

    it('a payment of several invoices is for a person', async () => {
      const other = (await account.pushInvoice!(invoice({ invoice_id: 'inv_2' }))).provider_entity_id;
      const id = payThere({ hs_latest_status: 'succeeded' }, [invoice_id, other]);
      const { error_class, message } = await catchFailure(pull);
      expect([error_class, message]).to.deep.equal([
        'person',
        `the payment ${id} at HubSpot is for several invoices: record it by hand`,
      ]);
    });

    it('a deleted invoice is gone, and a deleted payment no longer listed', async () => {
      const id = payThere({ hs_latest_status: 'succeeded' });
      expect(await account.listConcernedInvoices!({ kind: 'payment', provider_entity_id: id })).to.deep.equal([
        invoice_id,
      ]);
      fake.crm.archive('commerce_payments', id);
      expect(await account.listConcernedInvoices!({ kind: 'payment', provider_entity_id: id })).to.deep.equal([]);
      expect((await pull()).payments).to.deep.equal([]);
      fake.crm.can_delete_open = true;
      fake.crm.archive('invoices', invoice_id);
      expect(await account.pullInvoice!(invoice_id)).to.equal(null);
    });

    it('events of other records concern no invoice', async () => {
      for (const kind of ['customer', 'refund', 'dispute'] as const)
        expect(await account.listConcernedInvoices!({ kind, provider_entity_id: '1' })).to.deep.equal([]);
    });
  });

  describe('failures', () => {
    for (const [failure, header, seconds] of [
      ['rate_limit', 7, 7],
      ['rate_limit', null, 10],
      ['daily_limit', null, 3_600],
      ['unavailable', null, null],
    ] as const)
      it(`${failure} with Retry-After ${header} waits ${seconds} seconds`, async () => {
        fake.retry_after_seconds = header;
        fake.disturb(/^GET account-info/, failure);
        const failed = await catchFailure(() => account.identify());
        expect(failed).to.include({ error_class: 'wait', retry_after_seconds: seconds, is_unauthorized: false });
      });

    it('a page of a gateway and a lost connection wait', async () => {
      for (const failure of ['html', 'lost_answer'] as const) {
        fake.disturb(/^GET account-info/, failure);
        expect((await catchFailure(() => account.identify())).error_class).to.equal('wait');
      }
    });
  });
});
