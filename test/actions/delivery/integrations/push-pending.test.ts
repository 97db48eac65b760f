/** docs/integrations/README.md, "Sending by itself": which records reach the provider after which events and failures. */
import { expect } from 'chai';
import { createSealer } from '../../../../storage/foundation/secrets/sealing.ts';
import type { TestApi } from '../../../support/api.ts';
import { ConnectedAccount, SETTINGS_KEY } from '../../../support/providers/connected-account.ts';
import { StripeDouble } from '../../../support/providers/stripe-double.ts';

describe('records that are sent by themselves', () => {
  const stripe = new StripeDouble();
  const { fake } = stripe;
  let account: ConnectedAccount;
  let api: TestApi;
  let before_connection: string;

  const newCustomer = () => account.newCustomer();
  const newInvoice = (customer_id: string) => account.newInvoice(customer_id);
  const dispatch = () => account.dispatch();
  const push = (mayGoOn?: () => Promise<boolean>) => account.push(mayGoOn);
  const mapping = (entity_id: string) => account.findMapping(entity_id);
  const waitingJobs = async () => {
    const jobs = api.services.postgres('graphile_worker.jobs').where('key', `push-records:${account.connection_id}`);
    return (await jobs.select('run_at')).map(({ run_at }) => Date.parse(run_at));
  };
  /** Pushes until the connection pauses. The job that ends the pause goes by the clock of the database, which is that of this machine. */
  const expectPause = async (seconds: number) => {
    const began = Date.now();
    expect((await push()).ended).to.equal('paused');
    const [run_at, ...others] = await waitingJobs();
    expect(others).to.deep.equal([]);
    expect(run_at).to.be.within(began + seconds * 1_000, Date.now() + seconds * 1_000);
  };
  const invoicesThere = (invoice_id: string) =>
    fake.listInvoices().filter(({ metadata }) => metadata.farthing_invoice_id === invoice_id);

  before(async () => {
    account = await ConnectedAccount.start(stripe);
    api = account.api;
    before_connection = await newCustomer();
    const an_hour_ago = new Date(Date.now() - 3_600_000);
    await api.services.postgres('customers').update({ created_at: an_hour_ago });
    await account.connect();
  });
  beforeEach(() => {
    account.now = new Date();
  });
  after(() => account.stop());

  it('are those that came after the connection, each once, by one job', async () => {
    const customer_id = await newCustomer();
    const invoice_id = await newInvoice(customer_id);
    await dispatch();
    expect(await waitingJobs()).to.have.length(1);
    expect(await push()).to.deep.equal({ ended: 'done', sent: 2 });
    expect(await push()).to.deep.equal({ ended: 'done', sent: 0 });
    expect(invoicesThere(invoice_id).map(({ status }) => status)).to.deep.equal(['open']);
    expect(await mapping(customer_id)).to.include({ mapping_state: 'made', pending_since: null });
    expect(await mapping(before_connection)).to.equal(undefined);
  });

  it('an invoice is voided there when it is voided here', async () => {
    const invoice_id = await newInvoice(await newCustomer());
    await push();
    expect((await api.request('POST', `/invoices/${invoice_id}/void`)).status).to.equal(200);
    await push();
    expect(invoicesThere(invoice_id).map(({ status }) => status)).to.deep.equal(['void']);
  });

  it('an invoice that is void before it was sent is not sent', async () => {
    const invoice_id = await newInvoice(await newCustomer());
    await dispatch();
    await api.request('POST', `/invoices/${invoice_id}/void`);
    await push();
    expect(invoicesThere(invoice_id)).to.deep.equal([]);
    expect(await mapping(invoice_id)).to.include({ mapping_state: 'gone', pending_since: null });
  });

  it('an invoice that is voided while it is being sent is voided there, too', async () => {
    const invoice_id = await newInvoice(await newCustomer());
    await dispatch();
    const held = fake.hold(/POST invoices$/);
    const pushing = push();
    await held.arrived;
    expect((await api.request('POST', `/invoices/${invoice_id}/void`)).status).to.equal(200);
    await dispatch();
    held.release();
    expect((await pushing).ended).to.equal('done');
    expect(invoicesThere(invoice_id).map(({ status }) => status)).to.deep.equal(['void']);
  });

  it('a record that is unlinked while it waits is not sent, nor by a repeated event', async () => {
    const invoice_id = await newInvoice(await newCustomer());
    await dispatch();
    const link = { entity_type: 'invoice', entity_id: invoice_id, provider_type: 'stripe' };
    expect((await api.request('DELETE', '/integrations/link', { body: link })).status).to.equal(200);
    await push();
    const { postgres } = api.services;
    await postgres('system_events').where({ entity_id: invoice_id }).update({ dispatched_at: null });
    await push();
    expect(invoicesThere(invoice_id)).to.deep.equal([]);
  });

  for (const [what, settle] of [
    ['settled', ['PUT', 'payment', { payment_status: 'SUCCEEDED', amount: '100' }]],
    ['voided', ['POST', 'void', {}]],
  ] as const)
    for (const step of [/POST invoices$/, /POST invoices.*finalize$/])
      it(`an invoice that is ${what} after a lost answer to ${step.source} is found there and can no longer be paid`, async () => {
        const invoice_id = await newInvoice(await newCustomer());
        fake.disturb(step, 'lost_answer');
        expect((await push()).ended).to.equal('paused');
        const [method, path, body] = settle;
        expect((await api.request(method, `/invoices/${invoice_id}/${path}`, { body })).status).to.equal(200);
        account.passSeconds(3_600);
        expect((await push()).ended).to.equal('done');
        expect(invoicesThere(invoice_id).filter(({ status }) => status !== 'void')).to.deep.equal([]);
        expect(await mapping(invoice_id)).to.include({ mapping_state: 'gone', push_error: null, pending_since: null });
      });

  it('an invoice that the provider never got is not searched for in vain after it is voided', async () => {
    const invoice_id = await newInvoice(await newCustomer());
    fake.disturb(/POST invoices$/, 'lost_request');
    expect((await push()).ended).to.equal('paused');
    expect((await api.request('POST', `/invoices/${invoice_id}/void`)).status).to.equal(200);
    account.passSeconds(3_600);
    expect((await push()).ended).to.equal('done');
    expect(invoicesThere(invoice_id)).to.deep.equal([]);
    expect(await mapping(invoice_id)).to.include({ mapping_state: 'gone', push_error: null });
  });

  it('an invoice whose rest changed after a lost answer is sent with the first amounts', async () => {
    const invoice_id = await newInvoice(await newCustomer());
    fake.disturb(/POST invoices.*finalize$/, 'lost_answer');
    expect((await push()).ended).to.equal('paused');
    const body = {
      ...{ destination_type: 'INVOICE', destination_id: invoice_id, payment_method_type: 'OFFLINE' },
      ...{ amount: '40', currency: 'usd' },
    };
    expect((await api.request('POST', '/payments', { body })).status).to.equal(201);
    account.passSeconds(3_600);
    expect((await push()).ended).to.equal('done');
    const there = invoicesThere(invoice_id).map(({ status, total, amount_remaining }) => {
      return { status, total, amount_remaining };
    });
    expect(there).to.deep.equal([{ status: 'open', total: 10_000, amount_remaining: 6_000 }]);
    expect((await mapping(invoice_id)).push_error).to.equal(null);
  });

  it('a record that is about to be sent can be linked instead', async () => {
    const customer_id = await newCustomer();
    await dispatch();
    const link = {
      entity_type: 'customer',
      entity_id: customer_id,
      provider_type: 'stripe',
      provider_entity_id: 'cus_own',
    };
    expect((await api.request('POST', '/integrations/link', { body: link })).status).to.equal(200);
    const requests = fake.requests.length;
    await push();
    expect(fake.requests.length).to.equal(requests);
  });

  it('wait while the provider is away, longer each time, and are sent when it is back', async () => {
    const [customer_id, other_id] = [await newCustomer(), await newCustomer()];
    fake.disturb(/POST customers$/, 'lost_answer');
    await expectPause(60);
    const requests = fake.requests.length;
    expect(await push(), 'nothing is called during the pause').to.deep.equal({ ended: 'paused', sent: 0 });
    expect(fake.requests.length).to.equal(requests);
    account.passSeconds(60);
    fake.disturb(/POST customers$/, 'lost_request');
    await expectPause(120);
    account.passSeconds(120);
    expect(await push()).to.deep.equal({ ended: 'done', sent: 2 });
    for (const id of [customer_id, other_id])
      expect(fake.book.list('customer').filter(({ metadata }) => metadata.farthing_customer_id === id)).to.have.length(
        1,
      );
    const row = await api.services.postgres('connections').where({ id: account.connection_id }).first();
    expect(row).to.include({ paused_until: null, pause_count: 0 });
  });

  it('a refused record tells its reason and does not hold up the others', async () => {
    const [refused_id, invoice_id] = [await newInvoice(await newCustomer()), await newInvoice(await newCustomer())];
    await api.services.postgres('invoices').where({ id: refused_id }).update({ currency: 'xxx' });
    expect(await push()).to.deep.equal({ ended: 'done', sent: 3 });
    expect(invoicesThere(invoice_id)).to.have.length(1);
    const { id, push_error, pending_since } = await mapping(refused_id);
    expect([typeof push_error, pending_since]).to.deep.equal(['string', null]);
    const told = await api.services
      .postgres('system_events')
      .where({ event_name: 'integration_mapping.failed', entity_id: id })
      .select('payload');
    expect(told.map(({ payload }) => payload.integration_mapping.push_error)).to.deep.equal([push_error]);
    const shown = await api.request('GET', `/integrations/mappings?entity_type=invoice&entity_id=${refused_id}`);
    expect(shown.body.items[0]!.push_error).to.equal(push_error);
  });

  it('wait while the credentials are refused, and are sent when new ones pass the test', async () => {
    const { postgres } = api.services;
    const row = await postgres('connections').where({ id: account.connection_id }).first();
    const secret = createSealer([SETTINGS_KEY]).seal(
      JSON.stringify({ stripe: { secret_key: 'sk_test_revoked' } }),
      row,
    );
    await postgres('connections').where({ id: account.connection_id }).update({ secret });
    const customer_id = await newCustomer();
    expect(await push()).to.deep.equal({ ended: 'stopped', sent: 0 });
    expect(await push()).to.deep.equal({ ended: 'stopped', sent: 0 });
    await postgres('graphile_worker._private_jobs').del();
    const renewed = { encrypted_secret_data: { stripe: { secret_key: 'sk_test_fake' } } };
    expect((await api.request('PUT', `/connections/${account.connection_id}`, { body: renewed })).status).to.equal(200);
    expect(await waitingJobs()).to.have.length(1);
    expect(await push()).to.deep.equal({ ended: 'done', sent: 1 });
    expect((await mapping(customer_id)).mapping_state).to.equal('made');
  });

  it('leave the slot to others after a while, and the rest follows', async () => {
    const ids = [await newCustomer(), await newCustomer()];
    let times = 0;
    expect(await push(async () => times++ === 0)).to.deep.equal({ ended: 'continued', sent: 1 });
    expect(await waitingJobs()).to.have.length(1);
    expect(await push()).to.deep.equal({ ended: 'done', sent: 1 });
    for (const id of ids) expect((await mapping(id)).mapping_state).to.equal('made');
  });
});
