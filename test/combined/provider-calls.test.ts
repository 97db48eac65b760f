/**
 * docs/integrations/README.md, "Connections": no answer, log line, trace, audit entry, system event or row contains a credential, a token, a
 * webhook secret or a client secret of a checkout, although the provider quotes each request in its errors. No redirect is followed, and no
 * transaction is open during a call.
 */
import { gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { readProvider } from '../../actions/delivery/inbound/read-provider.ts';
import { pushPending } from '../../actions/delivery/integrations/push-pending.ts';
import { dispatchBatch } from '../../actions/delivery/webhooks/dispatch-events.ts';
import { readConfig } from '../../config.ts';
import { startTracing } from '../../process/tracing.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { type Collector, startCollector } from '../support/collector.ts';
import { encodeBasic } from '../support/providers/chargebee-double.ts';
import { ChargebeeFake } from '../support/providers/chargebee-fake.ts';
import { HubSpotFake, signHubSpotRequest } from '../support/providers/hubspot-fake.ts';
import { MoyasarFake } from '../support/providers/moyasar-fake.ts';
import { NomodFake } from '../support/providers/nomod-fake.ts';
import { PaddleFake, signPaddleBody } from '../support/providers/paddle-fake.ts';
import { QuickBooksFake, signIntuitBody } from '../support/providers/quickbooks-fake.ts';
import { QuotingProxy } from '../support/providers/quoting-proxy.ts';
import { RazorpayFake, signRazorpayBody } from '../support/providers/razorpay-fake.ts';
import { skipPace } from '../support/providers/skip-pace.ts';
import { StripeFake, signStripeBody } from '../support/providers/stripe-fake.ts';
import { WhopDouble } from '../support/providers/whop-double.ts';
import { signWhopBody, WhopFake } from '../support/providers/whop-fake.ts';
import { signXeroBody, XeroFake } from '../support/providers/xero-fake.ts';
import { signZohoWebhook, ZohoBooksFake } from '../support/providers/zoho-books-fake.ts';

const KEY = 'a key of the settings that has 32 characters';
const PLANTED = {
  stripe: {
    publishable_key: 'pk_test_canaryPublishable',
    secret_key: 'sk_test_canaryStripe',
    webhook_secret: 'whsec_canary+Stripe/=',
  },
  razorpay: {
    key_id: 'rzp_test_canaryId',
    secret_key: 'canaryRazorpay',
    webhook_secret: 'canaryRazorpayHook',
    previous_webhook_secret: 'canaryRazorpayEarlier',
  },
  quickbooks: {
    client_id: 'canaryClient',
    client_secret: 'canaryClientSecret',
    environment: 'sandbox',
    webhook_verifier_token: 'canaryVerifier',
    income_account_id: '79',
  },
  zoho_books: {
    client_id: 'canaryZohoClient',
    client_secret: 'canaryZohoSecret',
    webhook_secret: 'canaryZohoHook',
    previous_webhook_secret: 'canaryZohoEarlier',
  },
  paddle: {
    api_key: 'pdl_sdbx_apikey_canaryPaddle',
    webhook_secret: 'canaryPaddleHook',
    client_side_token: 'canaryClientSide',
  },
  chargebee: {
    site: 'canary-test',
    api_key: 'test_canaryChargebee',
    webhook_username: 'canaryUser',
    webhook_password: 'canaryPassword',
    requests_per_minute: '60000',
  },
  xero: {
    client_id: 'canaryXeroClient',
    client_secret: 'canaryXeroSecret',
    webhook_key: 'canaryXeroHook',
    sales_account: '200',
    payment_account: '090',
  },
  hubspot: { access_token: 'pat-na1-canaryHubspot', client_secret: 'canaryHubspotSecret', app_id: '12345' },
  moyasar: {
    publishable_key: 'pk_test_canaryMoyasar',
    secret_key: 'sk_test_canaryMoyasar',
    webhook_secret: 'canaryMoyasarHook',
  },
  nomod: { api_key: 'sk_test_canaryNomod.1', webhook_secret: 'canaryNomodHook' },
  whop: { api_key: 'canaryWhop', company_id: 'biz_fake', environment: 'sandbox', webhook_secret: 'canaryWhopHook' },
} as const;
/** Credentials that are no secrets. */
const PUBLIC = new Set([
  ...['publishable_key', 'key_id', 'client_id', 'environment', 'income_account_id', 'realm_id'],
  ...['site', 'requests_per_minute', 'sales_account', 'payment_account', 'app_id', 'company_id'],
]);

type ProviderName = keyof typeof PLANTED;
type Play = {
  readonly buildError: (request: { path: string; quote: string }) => unknown;
  /** Headers of a webhook with its signature at a time in Unix seconds. */
  readonly sign: (body: string, secret: string, time: number, url: string) => Record<string, string>;
  /** Body of a webhook, or what builds it from the secret that it contains. */
  readonly event: string | ((secret: string) => string);
};

const PLAYS: Readonly<Record<ProviderName, Play>> = {
  stripe: {
    buildError: ({ quote }) => ({ error: { type: 'invalid_request_error', code: 'quoted', message: quote } }),
    sign: (body, secret, time) => ({ 'stripe-signature': signStripeBody(body, [secret], time) }),
    event: JSON.stringify({ id: 'evt_1', type: 'payment_intent.succeeded', data: { object: { id: 'pi_1' } } }),
  },
  razorpay: {
    buildError: ({ quote }) => ({ error: { code: 'BAD_REQUEST_ERROR', description: quote, reason: 'NA' } }),
    sign: (body, secret) => ({ 'x-razorpay-signature': signRazorpayBody(body, secret) }),
    event: JSON.stringify({
      ...{ entity: 'event', event: 'payment.captured', account_id: 'acc_fake' },
      payload: { payment: { entity: { id: 'pay_00000000000001' } } },
    }),
  },
  quickbooks: {
    buildError: ({ path, quote }) =>
      path.includes('/oauth2/')
        ? { error: quote, error_description: quote }
        : { Fault: { type: 'ValidationFault', Error: [{ code: '2020', Message: quote, Detail: quote }] } },
    sign: (body, secret) => ({ 'intuit-signature': signIntuitBody(body, secret) }),
    event: JSON.stringify([
      { id: 'event-1', type: 'qbo.payment.created.v1', intuitentityid: '1', intuitaccountid: '9130347000000001' },
    ]),
  },
  zoho_books: {
    buildError: ({ path, quote }) =>
      path.includes('/oauth/') ? { error: quote, error_description: quote } : { code: 4_001, message: quote },
    sign: (body, secret) => ({ 'x-zoho-webhook-signature': signZohoWebhook({ body }, secret) }),
    event: JSON.stringify({ payment: { payment_id: '9030000079467', invoices: [] } }),
  },
  paddle: {
    buildError: ({ quote }) => ({ error: { type: 'request_error', code: 'quoted', detail: quote } }),
    sign: (body, secret, time) => ({ 'paddle-signature': signPaddleBody(body, [secret], time) }),
    event: JSON.stringify({ event_id: 'evt_1', event_type: 'transaction.paid', data: { id: `txn_${'1'.repeat(26)}` } }),
  },
  chargebee: {
    buildError: ({ quote }) => ({ message: quote, type: 'invalid_request', api_error_code: 'quoted', param: quote }),
    sign: (_, secret) => ({ authorization: encodeBasic(PLANTED.chargebee.webhook_username, secret) }),
    event: JSON.stringify({
      ...{ id: 'ev_1', event_type: 'payment_succeeded' },
      content: { transaction: { id: 'txn_1', type: 'payment' } },
    }),
  },
  xero: {
    buildError: ({ path, quote }) =>
      path.includes('/connect/') ? { error: quote, error_description: quote } : { Title: quote, Detail: quote },
    sign: (body, secret) => ({ 'x-xero-signature': signXeroBody(body, secret) }),
    event: JSON.stringify({ events: [], firstEventSequence: 0, lastEventSequence: 0, entropy: 'random' }),
  },
  hubspot: {
    buildError: ({ quote }) => ({ status: 'error', message: quote, category: 'VALIDATION_ERROR' }),
    sign(body, secret, time, url) {
      const timestamp = String(time * 1_000);
      const signature = signHubSpotRequest({ method: 'POST', url, body, timestamp }, secret);
      return { 'x-hubspot-signature-v3': signature, 'x-hubspot-request-timestamp': timestamp };
    },
    event: JSON.stringify([{ eventId: 1, subscriptionType: 'contact.creation', portalId: 4711, objectId: 1 }]),
  },
  moyasar: {
    buildError: ({ quote }) => ({ type: 'invalid_request_error', message: quote, errors: { source: [quote] } }),
    sign: () => ({}),
    event: (secret_token) => JSON.stringify({ id: 'event_1', type: 'payout_paid', secret_token }),
  },
  nomod: {
    buildError: ({ quote }) => ({ error: { code: 'quoted', message: quote } }),
    sign: (_, secret) => ({ 'x-api-key': secret }),
    event: JSON.stringify({ id: '7a6ff1c2-0b4e-4d2b-8a67-2f9c5d1e3b40' }),
  },
  whop: {
    buildError: ({ quote }) => ({ error: { type: 'bad_request', message: quote } }),
    sign: (body, secret, time) => signWhopBody(body, secret, { now: new Date(time * 1_000) }),
    event: JSON.stringify(new WhopDouble().buildWebhook('withdrawal.created')),
  },
};
const NAMES = Object.keys(PLAYS) as ProviderName[];
const CURRENCIES: Readonly<Partial<Record<ProviderName, string>>> = { razorpay: 'inr', moyasar: 'sar', nomod: 'aed' };
const FAILURES = [400, 401, 403, 404, 429, 500, 200];

describe('calls of providers', function () {
  this.timeout(60_000);
  const stripe = new StripeFake();
  const razorpay = new RazorpayFake();
  const quickbooks = new QuickBooksFake();
  const zoho_books = new ZohoBooksFake();
  const paddle = new PaddleFake();
  const chargebee = new ChargebeeFake();
  const xero = new XeroFake();
  const hubspot = new HubSpotFake();
  const moyasar = new MoyasarFake();
  const nomod = new NomodFake();
  const whop = new WhopFake();
  const fakes = {
    ...{ stripe, razorpay, quickbooks, zoho_books, paddle, chargebee },
    ...{ xero, hubspot, moyasar, nomod, whop },
  };
  const proxies = {} as Record<ProviderName, QuotingProxy>;
  /** Would be reached by a redirect that is followed. */
  const stranger = new QuotingProxy({ target: new URL('http://127.0.0.1'), buildError: () => ({}) });
  const answers: string[] = [];
  const open: string[] = [];
  /** Tokens and client secrets that came into being. */
  const issued = new Set<string>();
  let api: TestApi;
  let collector: Collector;
  let stopTracing: () => Promise<void>;
  let customers = 0;
  let stopSkipping = () => {};
  /** Set when the tests begin: webhooks that are older than five minutes are refused. */
  let now: Date;

  before(async () => {
    collector = await startCollector();
    stopTracing = await startTracing(readConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }), 'farthing');
    stranger.status = 200;
    await stranger.start();
    stripe.keys.add(PLANTED.stripe.secret_key);
    razorpay.keys.add(`${PLANTED.razorpay.key_id}:${PLANTED.razorpay.secret_key}`);
    paddle.api_key = PLANTED.paddle.api_key;
    chargebee.keys.add(PLANTED.chargebee.api_key);
    quickbooks.app = { client_id: PLANTED.quickbooks.client_id, client_secret: PLANTED.quickbooks.client_secret };
    Object.assign(xero.app, { client_id: PLANTED.xero.client_id, client_secret: PLANTED.xero.client_secret });
    Object.assign(hubspot, PLANTED.hubspot);
    moyasar.keys.add(PLANTED.moyasar.secret_key);
    nomod.keys.add(PLANTED.nomod.api_key);
    whop.keys.add(PLANTED.whop.api_key);
    zoho_books.app = { client_id: PLANTED.zoho_books.client_id, client_secret: PLANTED.zoho_books.client_secret };
    for (const name of NAMES) {
      await fakes[name].start();
      const { buildError } = PLAYS[name];
      proxies[name] = await new QuotingProxy({ target: fakes[name].url, buildError, onRequest: noteOpen }).start();
    }
    stopSkipping = skipPace(...Object.values(proxies));
    now = new Date();
    api = await startTestApi({ now, config: { SECRETS_KEYS: KEY, PROVIDER_ADDRESSES: settings().join(',') } });
  });
  after(async () => {
    stopSkipping();
    await api.stop();
    for (const server of [...Object.values(fakes), ...Object.values(proxies), stranger]) await server.stop();
    await stopTracing();
    await collector.stop();
  });

  /** Statements of transactions that are open while the provider is called. The steps of this file follow one another, so none may be. */
  const noteOpen = async (call: string) => {
    const { rows } = await api.services.postgres.raw(
      `select query from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null and state <> 'active'`,
    );
    for (const { query } of rows) open.push(`${call}: ${query}`);
  };
  const settings = () => NAMES.map((name) => `${name}=${proxies[name].url.href}`);
  const pass = (minutes: number) => {
    now = new Date(now.getTime() + minutes * 60_000);
    api.setNow(now);
  };
  const noteTokens = () => {
    for (const { access_token, refresh_token } of [quickbooks, zoho_books, xero])
      for (const token of [access_token, refresh_token]) issued.add(token);
  };
  /** A request whose answer must contain no secret. */
  const send = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const request = { headers, ...(body === undefined ? {} : { body }) };
    const answer = await api.request<Record<string, string>>(method, path, request);
    answers.push(answer.text ?? '');
    noteTokens();
    return answer;
  };
  const post = (path: string, body?: unknown, headers?: Record<string, string>) => send('POST', path, body, headers);

  const credentialsOf = (name: ProviderName) => ({
    ...PLANTED[name],
    ...(name === 'quickbooks' ? { realm_id: quickbooks.books.realm_id, refresh_token: quickbooks.refresh_token } : {}),
    ...(name === 'zoho_books'
      ? { organization_id: zoho_books.books.organization_id, refresh_token: zoho_books.refresh_token }
      : {}),
    ...(name === 'xero' ? { tenant_id: xero.books.tenant_id, refresh_token: xero.refresh_token } : {}),
  });
  const connect = (name: ProviderName, secrets: object = credentialsOf(name)) =>
    post('/connections', { name, provider_type: name, encrypted_secret_data: { [name]: secrets } });
  const jobOf = (connection_id: string) => ({
    ...{ connection_id, settings: { SECRETS_KEYS: [KEY], PROVIDER_ADDRESSES: settings() } },
    clock: () => now,
    mayGoOn: async () => true,
  });
  const newInvoice = async (currency: string) => {
    const customer = {
      ...{ external_id: `customer ${++customers}`, name: 'Acme', email: `a${customers}@example.com` },
      ...{ address_line1: 'Way 1', address_city: 'Berlin', address_state: 'BE' },
      ...{ address_postal_code: '10115', address_country: 'DE' },
    };
    const customer_id = (await post('/customers', customer)).body.id!;
    const line_items = [{ display_name: 'Help', amount: '100', quantity: '1' }];
    const amounts = { amount_due: '100', total: '100', subtotal: '100', currency, line_items };
    const invoice_id = (await post('/invoices', { customer_id, ...amounts, invoice_status: 'FINALIZED' })).body.id!;
    return { customer_id, invoice_id };
  };
  /** Sends all kinds of requests to the provider. */
  const exchange = async (name: ProviderName, id: string) => {
    const currency = CURRENCIES[name] ?? 'usd';
    const { customer_id, invoice_id } = await newInvoice(currency);
    for (const entity of [
      { entity_type: 'customer', entity_id: customer_id },
      { entity_type: 'invoice', entity_id: invoice_id },
    ])
      await post('/integrations/sync', entity);
    const link = { payment_method_type: 'PAYMENT_LINK', payment_gateway: name, success_url: 'https://shop.example/' };
    const destination = { destination_type: 'INVOICE', destination_id: invoice_id };
    await post('/payments', { ...destination, amount: '100', currency, ...link });
    const path = `/payments/customers/${customer_id}/setup/intent`;
    const setup = await api.request<{ client_secret?: string }>('POST', path, {
      body: { provider: name },
      headers: { 'idempotency-key': `setup ${customer_id}` },
    });
    const { client_secret } = setup.body;
    if (client_secret) issued.add(client_secret);
    answers.push(client_secret ? setup.text.replace(client_secret, '') : setup.text);
    await send('PUT', `/connections/${id}`, { encrypted_secret_data: { [name]: credentialsOf(name) } });
    await post(`/connections/${id}/test`);
    while ((await dispatchBatch(api.services, { has_targets: true, now: new Date() })).dispatched > 0);
    await pushPending(api.services, api.scope, jobOf(id));
    await readProvider(api.services, api.scope, jobOf(id));
    noteTokens();
  };
  const receive = async (name: ProviderName, secret: string) => {
    const { event, sign } = PLAYS[name];
    const { tenant_id, environment_id } = api.scope;
    const path = `/webhooks/${name}/${tenant_id}/${environment_id}`;
    const body = typeof event === 'string' ? event : event(secret);
    const headers = sign(body, secret, Math.floor(now.getTime() / 1_000), `${api.url}/v1${path}`);
    return (await post(path, body, headers)).status;
  };

  /** Every row of every table, with texts in binary columns. */
  const dump = async () => {
    const { rows: tables } = await api.services.postgres.raw(
      `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
        where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')`,
    );
    const texts: string[] = [];
    for (const { name } of tables as { name: string }[]) {
      const { rows } = await api.services.postgres.raw(`select * from ${name}`);
      texts.push(JSON.stringify(rows, (_, value) => (value?.type === 'Buffer' ? readBytes(value.data) : value)));
    }
    return texts.join('\n');
  };
  const readBytes = (data: number[]) => {
    const bytes = Buffer.from(data);
    const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b;
    return (isGzip ? gunzipSync(bytes) : bytes).toString('latin1');
  };
  const listSecrets = () => [
    ...NAMES.flatMap((name) =>
      Object.entries(PLANTED[name]).flatMap(([field, value]) => (PUBLIC.has(field) ? [] : [value as string])),
    ),
    ...issued,
  ];
  /** A secret, and the forms in which a request contains it. */
  const listForms = (secret: string) => {
    const { razorpay: one, quickbooks: two, chargebee: three, xero: four } = PLANTED;
    const names = [one.key_id, two.client_id, three.webhook_username, four.client_id];
    const pairs = [secret, `${secret}:`, ...names.map((name) => `${name}:${secret}`)];
    return [secret, encodeURIComponent(secret), ...pairs.map((pair) => Buffer.from(pair).toString('base64'))];
  };

  for (const name of NAMES)
    it(`${name}: all flows, and all failures`, async () => {
      const proxy = proxies[name];
      for (const status of FAILURES) {
        proxy.status = status;
        const refused = await connect(name);
        expect(refused.status, `${status}: ${refused.text}`).to.be.oneOf([400, 503]);
      }
      proxy.status = null;
      const made = await connect(name);
      expect(made.status, made.text).to.equal(201);
      const id = made.body.id!;
      await exchange(name, id);
      for (const secret of ['canaryForged', 'canaryForged2']) expect(await receive(name, secret)).to.equal(401);
      expect(await receive(name, findWebhookSecret(PLANTED[name]))).to.equal(200);
      for (const status of [400, 401, 500]) {
        pass(120);
        proxy.status = status;
        await exchange(name, id);
        proxy.status = null;
        const tested = await post(`/connections/${id}/test`);
        expect(tested.status, `after ${status}: ${tested.text}`).to.equal(200);
      }
      expect(await api.services.postgres('connections').where({ id }).first()).to.include({ status: 'published' });
    });

  it('quickbooks: an OAuth flow, whose tokens are refused, exchanged and never completed', async () => {
    const proxy = proxies.quickbooks;
    const credentials = { ...PLANTED.quickbooks, redirect_uri: 'https://seller.example/return' };
    const flow = { provider: 'quickbooks', name: 'Books', metadata: {}, credentials };
    const begin = async () => {
      const headers = { 'idempotency-key': `flow ${issued.size}` };
      const { body } = await api.request<{ oauth_url: string; session_id: string }>('POST', '/oauth/init', {
        body: flow,
        headers,
      });
      const { state, ...consent } = quickbooks.consent(body.oauth_url);
      issued.add(state);
      return { provider: 'quickbooks', session_id: body.session_id, state, ...consent };
    };
    await begin();
    for (const status of FAILURES) {
      const returned = await begin();
      proxy.status = status;
      expect((await post('/oauth/complete', returned)).status, `${status}`).to.be.oneOf([400, 503]);
      proxy.status = null;
    }
    const headers = { 'idempotency-key': 'complete' };
    expect((await post('/oauth/complete', await begin(), headers)).status).to.equal(200);
    const [{ id }] = await api.services.postgres('connections').where({ provider_type: 'quickbooks' }).select('id');
    for (const status of [400, 401, 500]) {
      quickbooks.expireAccessToken();
      pass(120);
      proxy.status = status;
      await post(`/connections/${id}/test`);
      proxy.status = null;
      await post(`/connections/${id}/test`);
    }
  });

  it('no redirect is followed', async () => {
    for (const name of NAMES) {
      const proxy = proxies[name];
      const [{ id }] = await api.services.postgres('connections').where({ provider_type: name }).select('id');
      for (const status of [301, 302, 307, 308]) {
        Object.assign(proxy, { status, location: stranger.url.href });
        pass(120);
        await post(`/connections/${id}/test`);
        const customer = { external_id: `customer ${++customers}`, name: 'Acme' };
        const { id: entity_id } = (await post('/customers', customer)).body;
        await post('/integrations/sync', { entity_type: 'customer', entity_id });
        Object.assign(proxy, { status: null, location: '' });
      }
    }
    expect(stranger.requests).to.deep.equal([]);
  });

  it('no transaction is open during a call', async () => {
    for (const name of NAMES) expect(proxies[name].requests.length, name).to.be.above(30);
    expect(open).to.deep.equal([]);
    await api.services.postgres.transaction(async (transaction) => {
      await transaction.raw('select 1 as control');
      await noteOpen('control');
    });
    expect(open, 'an open transaction is noticed').to.deep.equal(['control: select 1 as control']);
  });

  it('secrets are nowhere', async () => {
    for (const path of [
      '/connections?limit=1000',
      '/audit-logs?limit=1000',
      '/webhooks/events?limit=1000',
      '/webhooks/inbound?limit=1000',
      '/payments?limit=1000',
      '/integrations/config',
      '/secrets/integrations/linked',
      ...NAMES.map((name) => `/secrets/integrations/by-provider/${name}`),
    ])
      expect((await send('GET', path)).status, path).to.equal(200);
    await stopTracing();
    const quoted = NAMES.map((name) => proxies[name].quoted).join();
    const places = {
      answers: answers.join('\n'),
      log: api.logged(),
      traces: JSON.stringify(collector.spans),
      rows: await dump(),
    };
    for (const [place, text] of Object.entries(places)) {
      expect(text.length, place).to.be.above(1_000);
      const found = listSecrets().filter((secret) => listForms(secret).some((form) => text.includes(form)));
      expect(found, place).to.deep.equal([]);
    }
    // The provider quoted what was sent to it, and the errors reached the places.
    for (const name of NAMES)
      expect(
        listForms(findSentSecret(PLANTED[name])).some((form) => quoted.includes(form)),
        name,
      ).to.equal(true);
    for (const text of [places.answers, places.rows]) expect(text).to.include('[redacted]');
    expect(issued.size, 'tokens, states and client secrets').to.be.above(20);
  });
});

function findWebhookSecret(secrets: Readonly<Record<string, string>>): string {
  const { webhook_secret, webhook_verifier_token, webhook_password, webhook_key, client_secret } = secrets;
  return (webhook_secret ?? webhook_verifier_token ?? webhook_password ?? webhook_key ?? client_secret)!;
}

/** The secret that requests to the provider contain. */
function findSentSecret({
  secret_key,
  api_key,
  access_token,
  client_secret,
}: Readonly<Record<string, string>>): string {
  return (secret_key ?? api_key ?? access_token ?? client_secret)!;
}
