/** docs/integrations/README.md, "Mappings": a linked customer brings the payment methods that it has at its provider. */
import { expect } from 'chai';
import { applyMethods } from '../../../../actions/delivery/inbound/pull-customer.ts';
import { readProvider } from '../../../../actions/delivery/inbound/read-provider.ts';
import { IntegrationMappingModel } from '../../../../storage/models/foundation/integration-mapping.ts';
import { listConnectionsToRead } from '../../../../storage/queue/provider-events.ts';
import { startTestApi, type TestApi } from '../../../support/api.ts';
import { RazorpayFake } from '../../../support/providers/razorpay-fake.ts';
import { StripeFake } from '../../../support/providers/stripe-fake.ts';
import { addMethod } from '../../../support/providers/stripe-fake-payments.ts';

const KEY = 'a key of the settings that has 32 characters';
const HOUR_MS = 3_600_000;

type Shown = { id: string; is_default: boolean; items: Shown[]; [field: string]: unknown };

describe('payment methods of a linked customer', () => {
  let stripe: StripeFake;
  let razorpay: RazorpayFake;
  let api: TestApi;
  let now: Date;
  let customers = 0;
  const connections: Record<string, string> = {};

  const ok = async (method: string, path: string, body?: unknown) => {
    const answer = await api.request<Shown>(method, path, body === undefined ? {} : { body });
    expect(answer.status, answer.text).to.be.lessThan(300);
    return answer.body;
  };
  const connect = async (provider_type: string, secrets: object) => {
    const encrypted_secret_data = { [provider_type]: secrets };
    const body = { name: provider_type, provider_type, encrypted_secret_data };
    connections[provider_type] = (await ok('POST', '/connections', body)).id;
  };
  before(async () => {
    stripe = await new StripeFake().start();
    razorpay = await new RazorpayFake().start();
    const config = { SECRETS_KEYS: KEY, PROVIDER_ADDRESSES: addresses().join(',') };
    api = await startTestApi({ now: new Date(), config });
    await connect('stripe', { secret_key: 'sk_test_fake' });
    await connect('razorpay', { key_id: 'rzp_test_fake', secret_key: 'secret_fake' });
  });
  beforeEach(() => {
    now = new Date(Date.now() + HOUR_MS);
    stripe.clearDisturbances();
  });
  after(async () => {
    await api.stop();
    await stripe.stop();
    await razorpay.stop();
  });

  const addresses = () => [`stripe=${stripe.url.href}`, `razorpay=${razorpay.url.href}`];
  const newCustomer = async (fields: object = {}) =>
    (await ok('POST', '/customers', { external_id: `linked ${++customers}`, ...fields })).id;
  const linkTo = (provider_type: string, entity_id: string, provider_entity_id: string) =>
    ok('POST', '/integrations/link', { entity_type: 'customer', entity_id, provider_type, provider_entity_id });
  const read = (provider_type = 'stripe') =>
    readProvider(api.services, api.scope, {
      connection_id: connections[provider_type]!,
      settings: { SECRETS_KEYS: [KEY], PROVIDER_ADDRESSES: addresses() },
      clock: () => now,
      mayGoOn: async () => true,
    });
  /** Lists id at the provider, type and whether it is the default, in the order of saving. */
  const methodsOf = async (customer_id: string) => {
    const { items } = await ok('GET', `/payments/customers/${customer_id}/methods`);
    const shown = items.map((one) => [one['gateway_payment_method_id'], one['payment_method_type'], one.is_default]);
    return shown.toSorted();
  };
  const mapping = (entity_id: string) => api.services.postgres('integration_mappings').where({ entity_id }).first();
  /** Creates a customer at Stripe with a card and a bank account, of which the second is the default. */
  const newThere = () => {
    const there = stripe.book.createCustomer({ name: 'Acme' });
    const card = addMethod(stripe.book, 'pm_card_visa', there.id).id;
    const bank = addMethod(stripe.book, 'pm_usBankAccount_success', there.id).id;
    there['invoice_settings'] = { default_payment_method: bank };
    return { there: there.id, card, bank };
  };
  const requestPull = (entity_id: string) =>
    ok('POST', '/integrations/sync', { entity_type: 'customer', entity_id, method: 'pull' });
  const isWaiting = async () => {
    const waiting = await listConnectionsToRead(api.services.postgres, now);
    return waiting.some(({ id }) => id === connections['stripe']);
  };
  const listJobs = () =>
    api.services.postgres('graphile_worker.jobs').whereRaw('key = ?', [`read-provider:${connections['stripe']}`]);

  it('are saved once at Stripe, with its default', async () => {
    const { there, card, bank } = newThere();
    const saved = [
      [card, 'CARD', false],
      [bank, 'ACH', true],
    ].toSorted();
    const customer_id = await newCustomer();
    await linkTo('stripe', customer_id, there);
    expect(await methodsOf(customer_id)).to.deep.equal([]);
    expect(await listJobs()).to.have.length(1);
    expect(await read()).to.deep.equal({ ended: 'done', read: 1 });
    expect(await methodsOf(customer_id)).to.deep.equal(saved);
    expect(await isWaiting()).to.equal(false);
    await requestPull(customer_id);
    await Promise.all([read(), read()]);
    expect(await methodsOf(customer_id)).to.deep.equal(saved);
  });

  it('are saved at Razorpay, which has no default', async () => {
    const there = razorpay.book.createCustomer({ name: 'Acme', email: 'linked@example.com' }).id;
    const token = razorpay.book.addToken(there, 'pays').id;
    const upi = razorpay.book.addToken(there, 'pays', { method: 'upi', card: undefined }).id;
    const customer_id = await newCustomer();
    await linkTo('razorpay', customer_id, there);
    expect((await read('razorpay')).read).to.equal(1);
    expect(await methodsOf(customer_id)).to.deep.equal(
      [
        [token, 'CARD', false],
        [upi, 'CARD', false],
      ].toSorted(),
    );
  });

  it('are saved for a customer that is created or changed with a mapping', async () => {
    const [first, second] = [newThere(), newThere()];
    const created = await newCustomer({ integration_entity_mapping: [{ provider: 'stripe', id: first.there }] });
    const changed = await newCustomer();
    const integration_entity_mapping = [{ provider: 'stripe', id: second.there }];
    await ok('PUT', `/customers/${changed}`, { integration_entity_mapping });
    expect((await read()).read).to.equal(2);
    expect((await methodsOf(created)).map(([id]) => id)).to.have.members([first.card, first.bank]);
    expect((await methodsOf(changed)).map(([id]) => id)).to.have.members([second.card, second.bank]);
  });

  it('leave the default here, and one that was removed here stays removed', async () => {
    const { there, card, bank } = newThere();
    const customer_id = await newCustomer();
    const own = { payment_gateway: 'stripe', gateway_payment_method_id: 'pm_own', is_default: true };
    await ok('POST', `/payments/customers/${customer_id}/methods`, own);
    const removed = await ok('POST', `/payments/customers/${customer_id}/methods`, {
      ...own,
      gateway_payment_method_id: card,
      is_default: false,
    });
    const path = `/payments/customers/${customer_id}/methods/${removed.id}` as const;
    expect((await api.request('DELETE', path)).status).to.be.lessThan(300);
    await linkTo('stripe', customer_id, there);
    await read();
    expect(await methodsOf(customer_id)).to.deep.equal(
      [
        ['pm_own', 'CARD', true],
        [bank, 'ACH', false],
      ].toSorted(),
    );
  });

  it('are read after the pause if Stripe is away; the link is there', async () => {
    const { there, bank } = newThere();
    const customer_id = await newCustomer();
    stripe.disturb(/payment_methods/, 'unavailable');
    await linkTo('stripe', customer_id, there);
    expect((await read()).ended).to.equal('paused');
    expect(await mapping(customer_id)).to.include({ mapping_state: 'made', provider_entity_id: there });
    expect(await methodsOf(customer_id)).to.deep.equal([]);
    now = new Date(now.getTime() + HOUR_MS);
    expect(await isWaiting()).to.equal(true);
    expect((await read()).ended).to.equal('done');
    expect((await methodsOf(customer_id)).map(([method]) => method)).to.include(bank);
  });

  it('of a customer that Stripe does not have need a person, until it is there', async () => {
    const { there, bank } = newThere();
    const record = stripe.book.records.get(there)!;
    stripe.book.records.delete(there);
    const customer_id = await newCustomer();
    await linkTo('stripe', customer_id, there);
    expect((await read()).ended).to.equal('done');
    const { id, attention_reason, mapping_state } = await mapping(customer_id);
    expect(mapping_state).to.equal('made');
    expect(attention_reason).to.match(new RegExp(`^it cannot be read: .*${there}`));
    const [event] = await api.services.postgres('system_events').where({ entity_id: id });
    expect(event.event_name).to.equal('integration_mapping.needs_attention');
    stripe.book.records.set(there, record);
    await requestPull(customer_id);
    await read();
    expect((await mapping(customer_id)).attention_reason).to.equal(null);
    expect((await methodsOf(customer_id)).map(([method]) => method)).to.include(bank);
  });

  it('are not saved if the customer was unlinked during the call', async () => {
    const customer_id = await newCustomer();
    await linkTo('stripe', customer_id, newThere().there);
    const { id } = await mapping(customer_id);
    const seen = await IntegrationMappingModel.fetch(api.scope, id, { database: api.services.postgres });
    const body = { entity_type: 'customer', entity_id: customer_id, provider_type: 'stripe' };
    await ok('DELETE', '/integrations/link', body);
    const method = {
      provider_payment_method_id: 'pm_1',
      payment_method_type: 'CARD',
      is_default: true,
      card: null,
    } as const;
    await api.services.postgres.transaction((transaction) =>
      applyMethods(transaction, { mapping: seen, methods: [method], now }),
    );
    expect(await methodsOf(customer_id)).to.deep.equal([]);
    expect(await read()).to.deep.equal({ ended: 'done', read: 0 });
  });

  it('are not read while the connection needs attention, or excludes them', async () => {
    const { there, bank } = newThere();
    const customer_id = await newCustomer();
    const change = (changes: object) =>
      api.services.postgres('connections').where({ id: connections['stripe'] }).update(changes);
    await change({ connection_state: 'needs_attention', attention_reason: 'key revoked' });
    await linkTo('stripe', customer_id, there);
    const requests = stripe.requests.length;
    expect((await read()).ended).to.equal('stopped');
    expect(await isWaiting()).to.equal(false);
    await change({ connection_state: 'active', attention_reason: null });
    await ok('PUT', `/connections/${connections['stripe']}`, {
      sync_config: { customer: { inbound: false, outbound: true } },
    });
    const called = stripe.requests.length;
    expect((await read()).ended).to.equal('done');
    expect([requests, stripe.requests.length]).to.deep.equal([called, called]);
    await ok('PUT', `/connections/${connections['stripe']}`, { sync_config: null });
    now = new Date(now.getTime() + 25 * HOUR_MS);
    expect((await read()).read).to.equal(1);
    expect((await methodsOf(customer_id)).map(([method]) => method)).to.include(bank);
  });

  it('are not read in an environment with a test clock', async () => {
    const { there } = newThere();
    const customer_id = await newCustomer();
    await api.request('POST', '/test-clocks', { body: { frozen_time: new Date().toISOString() } });
    await linkTo('stripe', customer_id, there);
    const requests = stripe.requests.length;
    expect((await read()).ended).to.equal('stopped');
    expect(await isWaiting()).to.equal(false);
    expect(stripe.requests).to.have.length(requests);
  });
});
