/** docs/integrations/README.md, "Sending a record" and "Amounts": records as they arrive at the provider's fake. */
import { expect } from 'chai';
import { createSealer } from '../../../../storage/foundation/secrets/sealing.ts';
import { startTestApi, type TestApi } from '../../../support/api.ts';
import { StripeFake } from '../../../support/providers/stripe-fake.ts';

const KEY = 'a key of the settings that has 32 characters';

describe('records that are sent to a provider', () => {
  let fake: StripeFake;
  let api: TestApi;
  let connection_id: string;
  let customers = 0;
  before(async () => {
    fake = await new StripeFake().start();
    const config = { SECRETS_KEYS: KEY, PROVIDER_ADDRESSES: `stripe=${fake.url.href}` };
    api = await startTestApi({ now: new Date(), config });
    const stripe = { secret_key: 'sk_test_fake' };
    const body = { name: 'Stripe', provider_type: 'stripe', encrypted_secret_data: { stripe } };
    const made = await api.request('POST', '/connections', { body });
    expect(made.status, made.text).to.equal(201);
    connection_id = made.body.id;
  });
  after(async () => {
    await api.stop();
    await fake.stop();
  });

  const newCustomer = async () => {
    const body = { external_id: `customer ${++customers}`, name: 'Acme', email: 'books@example.com' };
    return (await api.request('POST', '/customers', { body })).body.id;
  };
  const newInvoice = async (customer_id: string, fields: object = {}) => {
    const line_items = [
      { display_name: 'Help', amount: '60', quantity: '1' },
      { display_name: 'Travel', amount: '40', quantity: '1' },
    ];
    const amounts = { amount_due: '100', total: '100', subtotal: '100', currency: 'usd', line_items };
    const body = { customer_id, ...amounts, invoice_status: 'FINALIZED', ...fields };
    const answer = await api.request('POST', '/invoices', { body });
    expect(answer.status, answer.text).to.equal(201);
    return answer.body.id;
  };
  const sync = (entity_type: string, entity_id: string, fields: object = {}) =>
    api.request('POST', '/integrations/sync', { body: { entity_type, entity_id, ...fields } });
  const mapping = async (entity_type: string, entity_id: string) =>
    (await api.services.postgres('integration_mappings').where({ entity_type, entity_id }).orderBy('created_at'))[0];
  const amountsAt = (provider_entity_id: string) =>
    fake.book.lines.get(provider_entity_id)!.map(({ amount }) => amount);

  it('an invoice follows its customer, and neither is sent twice', async () => {
    const customer_id = await newCustomer();
    const invoice_id = await newInvoice(customer_id);
    const answers = [
      await sync('invoice', invoice_id),
      await sync('invoice', invoice_id),
      await sync('customer', customer_id),
    ];
    for (const { status, text } of answers) expect(status, text).to.equal(200);
    expect(answers[0]!.body.message).to.equal(`invoice ${invoice_id} is at stripe`);
    const [customer, invoice] = [await mapping('customer', customer_id), await mapping('invoice', invoice_id)];
    expect([customer.mapping_state, invoice.mapping_state]).to.deep.equal(['made', 'made']);
    const found = fake.book.find('invoice', invoice.provider_entity_id);
    expect(found).to.include({ customer: customer.provider_entity_id, status: 'open', total: 10_000 });
    expect(invoice.url).to.match(/^https?:/);
    expect(fake.listInvoices().filter(({ metadata }) => metadata.farthing_invoice_id === invoice_id)).to.have.length(1);
    expect(amountsAt(found.id)).to.deep.equal([6_000, 4_000]);
  });

  it('taxes are added, and what was paid is taken off', async () => {
    const customer_id = await newCustomer();
    const rate = { name: 'VAT', code: 'vat', percentage_value: '19' };
    await api.request('POST', '/taxes/rates', { body: rate });
    const applied = { entity_type: 'customer', entity_id: customer_id, tax_rate_code: 'vat', auto_apply: true };
    const attached = await api.request('POST', '/taxes/associations', { body: applied });
    expect(attached.status, attached.text).to.equal(200);
    const invoice_id = await newInvoice(customer_id);
    const payment = { payment_status: 'PENDING', amount: '50' };
    const paid = await api.request('PUT', `/invoices/${invoice_id}/payment`, { body: payment });
    expect(paid.status, paid.text).to.equal(200);
    const { amount_remaining } = (await api.request('GET', `/invoices/${invoice_id}`)).body;
    expect(amount_remaining).to.equal('69');
    const sent = await sync('invoice', invoice_id);
    expect(sent.status, sent.text).to.equal(200);
    const { provider_entity_id } = await mapping('invoice', invoice_id);
    expect(amountsAt(provider_entity_id)).to.deep.equal([6_000, 4_000, 1_900, -5_000]);
    expect(fake.book.find('invoice', provider_entity_id)).to.include({ total: 6_900, status: 'open' });
  });

  it('a lost answer creates nothing twice: the same key is sent again', async () => {
    const customer_id = await newCustomer();
    fake.disturb(/POST customers$/, 'lost_answer');
    const lost = await sync('customer', customer_id);
    expect([lost.status, lost.body.code]).to.deep.equal([503, 'service_unavailable']);
    const intended = await mapping('customer', customer_id);
    expect(intended.mapping_state).to.equal('intended');
    const linked = await api.request('POST', '/integrations/link', {
      body: {
        entity_type: 'customer',
        entity_id: customer_id,
        provider_type: 'stripe',
        provider_entity_id: 'cus_other',
      },
    });
    expect(linked.status, 'it is being sent').to.equal(409);
    expect((await sync('customer', customer_id)).status).to.equal(200);
    const made = await mapping('customer', customer_id);
    expect(made).to.include({ mapping_state: 'made', idempotency_key: intended.idempotency_key });
    const there = fake.book.list('customer').filter(({ metadata }) => metadata.farthing_customer_id === customer_id);
    expect(there.map(({ id }) => id)).to.deep.equal([made.provider_entity_id]);
  });

  it('of several requests at once one counterpart is made', async () => {
    const customer_id = await newCustomer();
    const invoice_id = await newInvoice(customer_id);
    const answers = await Promise.all([1, 2, 3, 4].map(() => sync('invoice', invoice_id)));
    for (const { status, text } of answers) expect(status, text).to.be.oneOf([200, 503]);
    expect((await sync('invoice', invoice_id)).status).to.equal(200);
    const customers_there = fake.book
      .list('customer')
      .filter(({ metadata }) => metadata.farthing_customer_id === customer_id);
    const invoices_there = fake.listInvoices().filter(({ metadata }) => metadata.farthing_invoice_id === invoice_id);
    expect([customers_there.length, invoices_there.length]).to.deep.equal([1, 1]);
    const rows = await api.services.postgres('integration_mappings').whereIn('entity_id', [customer_id, invoice_id]);
    expect(rows).to.have.length(2);
  });

  it('a refusal is answered with the text of the provider, and the next attempt has another key', async () => {
    const customer_id = await newCustomer();
    const invoice_id = await newInvoice(customer_id);
    fake.book.surcharge = 250;
    const keys = new Set<string>();
    for (let times = 0; times < 2; times++) {
      const { status, body } = await sync('invoice', invoice_id);
      expect([status, body.code]).to.deep.equal([400, 'invalid_operation']);
      expect(body.message).to.match(/is 100 usd, but 102.5 usd/);
      const { idempotency_key, mapping_state } = await mapping('invoice', invoice_id);
      expect(mapping_state).to.equal('intended');
      keys.add(idempotency_key);
    }
    expect(keys).to.have.property('size', 2);
    fake.book.surcharge = 0;
    const sent = await sync('invoice', invoice_id);
    expect(sent.status, sent.text).to.equal(200);
    const open = fake
      .listInvoices()
      .filter(({ status, metadata }) => status === 'open' && metadata.farthing_invoice_id === invoice_id);
    expect(open).to.have.length(1);
  });

  it('400: a draft, a void or skipped invoice, one without a remaining amount; nothing is written', async () => {
    const customer_id = await newCustomer();
    const draft = await newInvoice(customer_id, { invoice_status: 'DRAFT' });
    const voided = await newInvoice(customer_id);
    await api.request('POST', `/invoices/${voided}/void`);
    const paid = await newInvoice(customer_id, { payment_status: 'SUCCEEDED' });
    const skipped = await newInvoice(customer_id, { invoice_status: 'DRAFT' });
    await api.services.postgres('invoices').where({ id: skipped }).update({ invoice_status: 'SKIPPED' });
    for (const id of [draft, voided, paid, skipped]) {
      const { status, body } = await sync('invoice', id);
      expect([status, body.code], id).to.deep.equal([400, 'invalid_operation']);
      expect(await mapping('invoice', id)).to.equal(undefined);
    }
  });

  it('an invoice or a customer becomes due to be read at once on request, other records are not read', async () => {
    const customer_id = await newCustomer();
    const invoice_id = await newInvoice(customer_id);
    await sync('invoice', invoice_id);
    const due_in_ms = async () => Date.parse((await mapping('invoice', invoice_id)).next_pull_at) - Date.now();
    expect(await due_in_ms()).to.be.greaterThan(3_000_000);
    expect((await sync('invoice', invoice_id, { method: 'pull' })).status).to.equal(200);
    expect(await due_in_ms()).to.be.at.most(0);
    expect((await sync('customer', customer_id, { method: 'pull' })).status).to.equal(200);
    expect(Date.parse((await mapping('customer', customer_id)).next_pull_at)).to.be.at.most(Date.now());
    const unsent = await newCustomer();
    expect((await sync('customer', unsent, { method: 'pull' })).body.code).to.equal('invalid_operation');
    const plan = (await api.request('POST', '/plans', { body: { name: 'Pro' } })).body.id;
    expect((await sync('plan', plan, { method: 'pull' })).body.code).to.equal('invalid_operation');
  });

  it('400: records that the configuration excludes', async () => {
    const customer_id = await newCustomer();
    const path = `/connections/${connection_id}` as const;
    await api.request('PUT', path, { body: { sync_config: { customer: { inbound: false, outbound: false } } } });
    const { status, text } = await sync('customer', customer_id);
    expect([status, await mapping('customer', customer_id)]).to.deep.equal([400, undefined]);
    expect(text).to.match(/sync_config.customer.outbound/);
    await api.request('PUT', path, { body: { sync_config: null } });
    expect((await sync('customer', customer_id)).status).to.equal(200);
  });

  it('credentials that are refused stop the connection, and nothing more is sent', async () => {
    const customer_id = await newCustomer();
    const { postgres } = api.services;
    const row = await postgres('connections').where({ id: connection_id }).first();
    const secret = createSealer([KEY]).seal(JSON.stringify({ stripe: { secret_key: 'sk_test_revoked' } }), row);
    await postgres('connections').where({ id: connection_id }).update({ secret });
    expect((await sync('customer', customer_id)).status).to.equal(400);
    const calls = fake.requests.length;
    const next = await sync('customer', customer_id);
    expect([next.status, next.body.code]).to.deep.equal([400, 'invalid_operation']);
    expect(next.text).to.match(/needs attention/);
    expect(fake.requests).to.have.length(calls);
    await postgres('connections').where({ id: connection_id }).update({ secret: row.secret });
    expect((await api.request('POST', `/connections/${connection_id}/test`)).status).to.equal(200);
    expect((await sync('customer', customer_id)).status).to.equal(200);
  });
});
