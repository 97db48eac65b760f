/** An environment with a connection to a provider's fake, and the jobs of the connection. */
import { expect } from 'chai';
import { readProvider } from '../../../actions/delivery/inbound/read-provider.ts';
import { pushPending } from '../../../actions/delivery/integrations/push-pending.ts';
import { dispatchBatch } from '../../../actions/delivery/webhooks/dispatch-events.ts';
import { startTestApi, type TestApi } from '../api.ts';
import { ageKeys } from './aged-keys.ts';
import type { ProviderDouble, SignedWebhook } from './provider-double.ts';

export const SETTINGS_KEY = 'a key of the settings that has 32 characters';

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

export class ConnectedAccount {
  /** Time at which the jobs run. */
  now = new Date();
  readonly api: TestApi;
  readonly provider: ProviderDouble;
  connection_id = '';
  #customers = 0;

  private constructor(api: TestApi, provider: ProviderDouble) {
    this.api = api;
    this.provider = provider;
  }

  static async open(provider: ProviderDouble): Promise<ConnectedAccount> {
    const account = await ConnectedAccount.start(provider);
    await account.connect();
    return account;
  }

  /** Starts the fake and an environment that has no connection yet. */
  static async start(provider: ProviderDouble, settings: Record<string, string> = {}): Promise<ConnectedAccount> {
    await provider.fake.start();
    const config = {
      ...settings,
      SECRETS_KEYS: SETTINGS_KEY,
      PROVIDER_ADDRESSES: `${provider.provider_type}=${provider.fake.url.href}`,
    };
    return new ConnectedAccount(await startTestApi({ now: new Date(), config }), provider);
  }

  /** An environment of a service that knows the address of the fake, which has started. */
  static async join(api: TestApi, provider: ProviderDouble): Promise<ConnectedAccount> {
    const account = new ConnectedAccount(api, provider);
    await account.connect();
    return account;
  }

  async connect(): Promise<void> {
    const { provider_type, secrets } = this.provider;
    const encrypted_secret_data = { [provider_type]: secrets };
    const body = { name: provider_type, provider_type, encrypted_secret_data };
    this.connection_id = (await this.request('POST', '/connections', body))['id']!;
  }

  async stop(): Promise<void> {
    await this.api.stop();
    await this.provider.fake.stop();
  }

  async request(method: Method, path: `/${string}`, body?: object): Promise<Record<string, string>> {
    const answer = await this.api.request<Record<string, string>>(method, path, body === undefined ? {} : { body });
    expect(answer.status, answer.text).to.be.within(200, 299);
    return answer.body;
  }

  async newCustomer(): Promise<string> {
    const number = ++this.#customers;
    const body = { external_id: `customer ${number}`, name: `Acme ${number}`, email: `books${number}@example.com` };
    const address = {
      ...{ address_line1: 'Way 1', address_city: 'Berlin', address_state: 'BE' },
      ...{ address_postal_code: '10115', address_country: 'DE' },
    };
    return (await this.request('POST', '/customers', { ...body, ...address }))['id']!;
  }

  /** A subscription over 100 a month, of a plan of its own. */
  async newSubscription(fields: object = {}): Promise<string> {
    const customer_id = await this.newCustomer();
    const { currency } = this.provider;
    const plan_id = (await this.request('POST', '/plans', { name: 'Pro' }))['id']!;
    const terms = { entity_type: 'PLAN', entity_id: plan_id, type: 'FIXED', billing_model: 'FLAT_FEE', amount: '100' };
    const cadence = { billing_period: 'MONTHLY', invoice_cadence: 'ADVANCE', price_unit_type: 'FIAT' };
    await this.request('POST', '/prices', { ...terms, ...cadence, currency });
    const body = { customer_id, plan_id, currency, billing_period: 'MONTHLY', ...fields };
    return (await this.request('POST', '/subscriptions', body))['id']!;
  }

  /** A final invoice over 100. */
  async newInvoice(customer_id?: string): Promise<string> {
    const line_items = [{ display_name: 'Help', amount: '100', quantity: '1' }];
    const { currency } = this.provider;
    const amounts = { amount_due: '100', total: '100', subtotal: '100', currency, line_items };
    const owner = { customer_id: customer_id ?? (await this.newCustomer()) };
    return (await this.request('POST', '/invoices', { ...owner, ...amounts, invoice_status: 'FINALIZED' }))['id']!;
  }

  /** Creates an invoice, pushes it, and returns its id and that of its copy at the provider. */
  async newPushed(): Promise<{ invoice_id: string; copy_id: string }> {
    const invoice_id = await this.newInvoice();
    expect((await this.push()).ended).to.equal('done');
    return { invoice_id, copy_id: (await this.findMapping(invoice_id)).provider_entity_id };
  }

  /** Records money that was received outside of the provider. */
  async pay(invoice_id: string, amount: string): Promise<string> {
    const destination = { destination_type: 'INVOICE', destination_id: invoice_id, payment_method_type: 'OFFLINE' };
    const { currency } = this.provider;
    return (await this.request('POST', '/payments', { ...destination, amount, currency }))['id']!;
  }

  async credit(invoice_id: string, amount: string, fields: object = {}): Promise<string> {
    const [line] = await this.api.services.postgres('invoice_line_items').where({ invoice_id });
    const line_items = [{ invoice_line_item_id: line.id, amount }];
    const note = { invoice_id, reason: 'BILLING_ERROR', line_items, ...fields };
    return (await this.request('POST', '/creditnotes', note))['id']!;
  }

  async dispatch(): Promise<void> {
    while ((await dispatchBatch(this.api.services, { has_targets: true, now: new Date() })).dispatched > 0);
  }

  /** Runs the job that sends to the provider. */
  async push(mayGoOn: () => Promise<boolean> = async () => true) {
    await this.dispatch();
    return pushPending(this.api.services, this.api.scope, this.#describeRun(mayGoOn));
  }

  /** Runs the job that reads from the provider. */
  read(mayGoOn: () => Promise<boolean> = async () => true) {
    return readProvider(this.api.services, this.api.scope, this.#describeRun(mayGoOn));
  }

  #describeRun(mayGoOn: () => Promise<boolean>) {
    const { provider_type, fake } = this.provider;
    const settings = { SECRETS_KEYS: [SETTINGS_KEY], PROVIDER_ADDRESSES: [`${provider_type}=${fake.url.href}`] };
    return { connection_id: this.connection_id, settings, clock: () => this.now, mayGoOn };
  }

  passSeconds(seconds: number): void {
    this.now = new Date(this.now.getTime() + seconds * 1_000);
  }

  /** A day passes, after which the provider has forgotten the idempotency keys. */
  async passDay(): Promise<void> {
    this.passSeconds(86_400);
    await ageKeys(this.api.services.postgres);
    this.provider.forgetKeys();
  }

  /** Posts a webhook to our address, and returns the status of the answer. */
  async deliver({ headers, body, query, sign }: SignedWebhook): Promise<number> {
    const { tenant_id, environment_id } = this.api.scope;
    const address = `/webhooks/${this.provider.provider_type}/${tenant_id}/${environment_id}`;
    const path = `${address}${query === undefined ? '' : `?${query}`}` as const;
    const signed = { ...headers, ...sign?.(`${this.api.url}/v1${path}`) };
    return (await this.api.request('POST', path, { body, key: null, headers: signed })).status;
  }

  /** Posts the webhooks of what happened at the provider since the last call. */
  async deliverAll(): Promise<void> {
    for (const webhook of this.provider.takeWebhooks()) expect(await this.deliver(webhook)).to.equal(200);
  }

  /** Status and remaining amount of each copy, such as `open 100`. */
  showCopies(invoice_id: string): string[] {
    const copies = this.provider.listCopies(invoice_id);
    return copies.map(({ status, remaining }) => (status === 'void' ? status : `${status} ${remaining}`));
  }

  /** Status and paid amount, such as `SUCCEEDED 100`. */
  async showPaid(invoice_id: string): Promise<string> {
    const { payment_status, amount_paid } = await this.request('GET', `/invoices/${invoice_id}`);
    return `${payment_status} ${amount_paid}`;
  }

  /** Amount of each payment and its id at the provider. */
  async listPayments(invoice_id: string): Promise<string[]> {
    const { items } = (await this.api.request('GET', `/payments?destination_id=${invoice_id}`)).body;
    return items.map(({ amount, gateway_payment_id }) => `${amount} ${gateway_payment_id}`);
  }

  /** The newest mapping of a record. */
  async findMapping(entity_id: string) {
    const found = this.api.services.postgres('integration_mappings').where({ entity_id });
    return found.orderBy('created_at', 'desc').first();
  }

  async findConnection() {
    return this.api.services.postgres('connections').where({ id: this.connection_id }).first();
  }

  async listSystemEvents(event_name: string, entity_id: string) {
    const rows = await this.api.services.postgres('system_events').where({ event_name, entity_id });
    return rows.map(({ payload }) => payload);
  }
}
