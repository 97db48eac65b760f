/**
 * The examples of the documentation are one story: Example Inc. sells the plan Pro to Acme, which calls its API in January
 * 2026. It is told here to a running service in the requests that the documentation shows, and what is answered must be what
 * the documentation shows. `GOLDEN=write` before the test command records the answers anew.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { dispatchBatch } from '../../actions/delivery/webhooks/dispatch-events.ts';
import { tryComputation } from '../../actions/invoicing/invoices/compute-later.ts';
import { trySync } from '../../actions/lifecycle/subscriptions/sync-plan.ts';
import { tryImport } from '../../actions/operations/imports/run-import.ts';
import { tryExport } from '../../actions/reporting/exports/perform-export.ts';
import { streamRevenue } from '../../actions/reporting/revenue/stream-revenue.ts';
import { tryAdvance } from '../../actions/schedule/test-clocks/advance-test-clock.ts';
import { CLIENT_EXAMPLES, exampleFile, FILE_EXAMPLES, PATH_EXAMPLES } from '../../api/http/examples.ts';
import { requestExample } from '../../api/http/openapi.ts';
import type { Route } from '../../api/http/route.ts';
import { hasCondition } from '../../api/http/target.ts';
import { routes } from '../../api/resources.ts';
import { Decimal } from '../../core/foundation/decimal.ts';
import { createdBy } from '../../core/foundation/stamp.ts';
import { newId } from '../../storage/foundation/new-id.ts';
import { CouponAssociationModel } from '../../storage/models/subscriptions/coupon-association.ts';
import { openBrowser, type TestBrowser } from '../support/browser.ts';
import { clientCall, hasMethod } from '../support/client-call.ts';
import { ExampleIds, exampleId as id } from '../support/example-ids.ts';
import { expectGoldenJson } from '../support/golden.ts';
import { encodeBasic } from '../support/providers/chargebee-double.ts';
import { API_KEY, ChargebeeFake } from '../support/providers/chargebee-fake.ts';
import { HubSpotFake, signHubSpotRequest } from '../support/providers/hubspot-fake.ts';
import { MoyasarDouble } from '../support/providers/moyasar-double.ts';
import { NomodDouble } from '../support/providers/nomod-double.ts';
import { PaddleFake, signPaddleBody } from '../support/providers/paddle-fake.ts';
import type { ProviderDouble } from '../support/providers/provider-double.ts';
import { QuickBooksFake, signIntuitBody } from '../support/providers/quickbooks-fake.ts';
import { RazorpayFake, signRazorpayBody } from '../support/providers/razorpay-fake.ts';
import { StripeFake, signStripeBody } from '../support/providers/stripe-fake.ts';
import { WhopDouble } from '../support/providers/whop-double.ts';
import { signWhopBody } from '../support/providers/whop-fake.ts';
import { signXeroBody, XeroFake } from '../support/providers/xero-fake.ts';
import { signZohoWebhook, ZohoBooksFake } from '../support/providers/zoho-books-fake.ts';
import { sandboxNotice } from '../support/sandbox.ts';
import { startWorld, type World } from '../support/world.ts';

const SHOWN_TOKEN = 'eyJhbGciOiJIUzI1NiIs.…';
const SECRET = 'of the installation';
const SEALING_KEY = 'a key of the installation that has 32 characters';
const EXAMPLES = new URL('../../api/examples/', import.meta.url).pathname;

/** Types of the answers that the story reads, by the id of their operation. */
type Shown = Record<
  'id' | 'oauth_url' | 'workflow_id' | 'run_id' | 'customer_id' | 'plan_id' | 'currency' | 'billing_period',
  string
> & {
  secret: { id: string };
};

/** Previews and reads that happen at one instant with the request before them. */
const PREVIEWS = [
  'previewSubscription',
  'previewOneOffInvoice',
  'previewSubscriptionCancellation',
  'previewCreditNote',
  'getAttention',
  'listEventNames',
  'listCorrections',
  'listLateEvents',
  'listEventProperties',
  'summarizeCustomers',
  'summarizePlans',
  'search',
  'getPriceCost',
  'previewInvoicePdf',
  'previewEventVoid',
  'previewEventReplacement',
];

describe('the examples of the documentation', () => {
  let world: World;
  let fake: StripeFake;
  let books: QuickBooksFake;
  let zoho: ZohoBooksFake;
  let xero: XeroFake;
  let razorpay: RazorpayFake;
  const paddle = new PaddleFake();
  const moyasar = new MoyasarDouble();
  const nomod = new NomodDouble();
  const gateways = [moyasar, nomod];
  const hubspot = new HubSpotFake();
  let chargebee: ChargebeeFake;
  const whop = new WhopDouble();
  const ids = new ExampleIds();
  const directory = mkdtempSync(join(tmpdir(), 'exports-'));
  const answers = new Map<string, Shown>();
  /** What was answered as a file, and where each operation was asked. */
  const files = new Map<string, string>();
  const asked = new Map<string, string>();
  /** What each change and each deletion of a record answers to an entity tag of before. */
  const conditions = new Map<string, string>();
  /** Another than that of the first environment. */
  let key: string | undefined;
  /** Sends the requests, in place of a key. */
  let browser: TestBrowser | undefined;

  before(async () => {
    fake = await new StripeFake().start();
    books = await new QuickBooksFake().start();
    zoho = await new ZohoBooksFake().start();
    razorpay = await new RazorpayFake().start();
    await paddle.start();
    xero = await new XeroFake().start();
    await hubspot.start();
    chargebee = await new ChargebeeFake().start();
    for (const gateway of [...gateways, whop]) await gateway.fake.start();
    const fakes = Object.entries({
      stripe: fake,
      quickbooks: books,
      razorpay,
      zoho_books: zoho,
      paddle,
      xero,
      hubspot,
      chargebee,
      moyasar: moyasar.fake,
      nomod: nomod.fake,
      whop: whop.fake,
    });
    const addresses = fakes.map(([name, { url }]) => `${name}=${url.href}`).join(',');
    const stores = { EXPORT_DIRECTORY: directory, SECRETS_KEYS: SEALING_KEY };
    const config = { PAYMENT_SANDBOX_SECRET: SECRET, PROVIDER_ADDRESSES: addresses, ...stores };
    world = await startWorld({ now: '2025-12-31T09:00:00Z', config });
    ids.asShown(world.api.scope);
    await whoSells();
    await whatIsSold();
    await whoBuys();
    await whatIsUsed();
    await whatItCosts();
    await whatIsCharged();
    await whatChanges();
    await whatEnds();
    await whatElseIsSold();
    await whatIsTold();
    await whoElse();
    await whatIsDoneAgain();
    await whatIsPaid();
    await whatTimeItIs();
    await whatIsProven();
    await whatIsToCome();
    await whatIsHeld();
    await whatIsWatched();
    await whatWasEarned();
    await whatIsReserved();
    await whatIsExported();
    await whatIsImported();
    await whatIsRead();
    await whatIsExchanged();
    await whatIsCheckedOut();
    await whatIsGranted();
    await whatGoes();
  });
  after(async () => {
    await world.stop();
    await fake.stop();
    await books.stop();
    await xero.stop();
    await razorpay.stop();
    await zoho.stop();
    await paddle.stop();
    for (const gateway of gateways) await gateway.fake.stop();
    await hubspot.stop();
    await chargebee.stop();
    await whop.fake.stop();
    rmSync(directory, { recursive: true });
  });

  for (const tag of new Set(routes.map((route) => route.tag))) {
    it(`${tag}: are what is answered`, () => {
      const ofTag = routes.filter((route) => route.tag === tag && answers.has(route.operation_id));
      const told = Object.fromEntries(ofTag.map(({ operation_id }) => [operation_id, answers.get(operation_id)]));
      expectGoldenJson(`${EXAMPLES}${exampleFile(tag)}`, told);
    });
  }

  it('are refused by every change, if the record is another than the one that was read', () => {
    const done = [...conditions].filter(([, answer]) => answer !== '409 version_conflict');
    expect(done).to.deep.equal([]);
    expect([...conditions.keys()]).to.have.members(
      routes.filter(hasCondition).map(({ method, path }) => `${method} ${path}`),
    );
  });

  it('are of every operation', () => {
    const ids = routes.map(({ operation_id }) => operation_id);
    expect([...asked.keys()]).to.have.members(ids);
    expectGoldenJson(`${EXAMPLES}${PATH_EXAMPLES}`, inOrder(asked));
  });

  it('files: are what is answered', () => {
    const withFile = routes.filter(({ file_type }) => file_type !== undefined);
    expect([...files.keys()]).to.have.members(withFile.map(({ operation_id }) => operation_id));
    expectGoldenJson(`${EXAMPLES}${FILE_EXAMPLES}`, inOrder(files));
  });

  it('the published client: are called with each of its methods', () => {
    const calls = routes.filter(hasMethod).map((route): [string, string] => {
      return [route.operation_id, clientCall(route, asked.get(route.operation_id)!, requestExample(route))];
    });
    expectGoldenJson(`${EXAMPLES}${CLIENT_EXAMPLES}`, inOrder(new Map(calls)));
  });

  const inOrder = (some: ReadonlyMap<string, string>) =>
    Object.fromEntries([...some].sort(([one], [other]) => (one < other ? -1 : 1)));

  async function whoSells() {
    await ask('getUserInfo');
    await ask('updateUser');
    await ask('updateTenant');
    await ask('getTenantById', { id: id('tenant') });
    await ask('createEnvironment');
    await ask('listEnvironments');
    await ask('getEnvironment', { id: id('env', 2) });
    await ask('updateEnvironment', { id: id('env', 2) });
    await ask('listRbacRoles', { query: 'user_type=service_account' });
    await ask('getRbacRole', { id: 'event_ingestor' });
    await ask('createUser');
    await ask('renameServiceAccount', { id: id('user', 2) });
    await ask('updateUserRoles', { id: id('user', 2) });
    await ask('queryUser');
    await ask('createApiKey');
    await ask('listApiKeys', { query: 'limit=1' });
  }

  async function whatIsSold() {
    await ask('createFeature');
    await ask('getFeature', { id: id('feat') });
    await ask('updateFeature', { id: id('feat') });
    await ask('cloneFeature', { id: id('feat') });
    await ask('listFeatures', { query: 'lookup_key=api-calls' });
    await ask('queryFeature');
    await ask('deleteFeature', { id: id('feat', 2) });
    await ask('createMeter');
    await ask('updateMeter', { id: id('meter', 2) });
    await world.waitForPipeline();
    await ask('getMeter', { id: id('meter') });
    await ask('listMeters');
    await ask('createPlan');
    await ask('updatePlan', { id: id('plan') });
    await ask('getPlan', { id: id('plan') });
    await ask('createPrice');
    await ask('createPricesBulk');
    await ask('getPriceCost');
    await ask('getPriceByLookupKey', { lookup_key: 'pro_base' });
    await ask('updatePrice', { id: id('price') });
    await ask('getPrice', { id: id('price', 2) });
    await ask('listPrices', { query: `plan_ids=${id('plan')}` });
    await ask('queryPrice');
    await ask('listPlans', { query: 'expand=prices' });
    await ask('queryPlan');
    await ask('clonePlan', { id: id('plan') });
    await ask('deletePlan', { id: id('plan', 2) });
    await ask('parsePricing');
    await ask('createAddon');
    await ask('updateAddon', { id: id('addon') });
    await ask('createEntitlement');
    await ask('createEntitlementsBulk');
    await ask('updateEntitlement', { id: id('ent') });
    await ask('getEntitlement', { id: id('ent', 2) });
    await ask('listEntitlements', { query: `feature_ids=${id('feat')}&entity_type=ADDON` });
    await ask('queryEntitlement');
    await ask('getPlanEntitlements', { id: id('plan') });
    await ask('getAddonEntitlements', { id: id('addon') });
    await ask('getAddonCreditGrants', { id: id('addon') });
    await ask('getAddon', { id: id('addon') });
    await ask('getAddonByLookupKey', { lookup_key: 'more_calls' });
    await ask('listAddons', { query: 'addon_type=multiple_instance' });
    await ask('queryAddon');
  }

  async function whoBuys() {
    world.at('2026-01-01T00:00:00Z');
    await ask('createCustomer');
    await ask('getCustomer', { id: id('cust') });
    await ask('getCustomerByExternalId', { external_id: 'acme' });
    await ask('getCustomerByLookupKey', { lookup_key: 'acme' });
    await ask('updateCustomer', { query: 'external_customer_id=acme' });
    await ask('updateCustomerById', { id: id('cust') });
    await ask('listCustomers', { query: 'external_id=acme' });
    await ask('queryCustomer');
    await ask('previewSubscription');
    await ask('createSubscription');
    await ask('getSubscription', { id: id('subs') });
    secondLater();
    await ask('updateSubscription', { id: id('subs') });
    await ask('listSubscriptions');
    await ask('querySubscription');
    await ask('querySubscriptionLineItem');
    await ask('getCustomerEntitlements', { id: id('cust') });
    await ask('getCustomerEntitlementsByExternalId', { external_id: 'acme' });
    await ask('getSubscriptionEntitlements', { id: id('subs') });
    await ask('listCustomerSubscriptions', { external_id: 'acme' });
  }

  async function whatIsUsed() {
    world.at('2026-01-31T10:00:05Z');
    await ask('ingestEvent');
    await ask('ingestEventsBulk');
    await ask('ingestRawEventsBulk');
    const lacking = { event_name: 'api_call', event_id: 'call-4' };
    await send('POST', '/events/raw/bulk', {
      events: [lacking, { ...lacking, event_id: 'call-5', external_customer_id: 'acme' }],
    });
    await world.waitForPipeline();
    await ask('listEvents', { query: 'external_customer_id=acme' });
    await ask('listRawEvents');
    await ask('getEvent', { id: 'call-1' });
    await ask('lookupEvent', { query: 'id=call-1' });
    await ask('listDeadLetters');
    await ask('getAttention');
    await ask('replayDeadLetters');
    await world.waitForPipeline();
    await ask('previewEventVoid', { id: 'call-5' });
    await ask('previewEventReplacement', { id: 'call-1' });
    await ask('voidEvent', { id: 'call-5' });
    await ask('replaceEvent', { id: 'call-1' });
    await world.waitForPipeline();
    await ask('listEventCorrections', { id: 'call-1' });
    await ask('listCorrections');
    await ask('getEventsMonitoring');
    await ask('listEventNames');
    await ask('listEventProperties', { query: 'event_name=api_call' });
    await inBetween(() => ask('getEventThread', { id: 'call-2' }));
  }

  async function whatItCosts() {
    await ask('getUsageStatistics');
    await ask('getUsageByMeter');
    await ask('getUsageAnalytics');
    await ask('queryMeterUsage');
    await ask('getMeterUsageAnalytics');
    await ask('getMeterUsageDetailedAnalytics');
    await ask('getSubscriptionUsage');
    await ask('getInvoicePreview');
    await ask('getInternalInvoicePreview');
    await ask('getCustomerUsageSummary', { query: 'customer_lookup_key=acme' });
    await ask('getCustomerUsageById', { id: id('cust') });
  }

  async function whatIsCharged() {
    world.at('2026-02-01T00:00:00Z');
    await world.bill();
    await ask('queryInvoice');
    await send('POST', '/invoices/search', { subscription_id: id('subs') });
    await ask('computeInvoice', { id: id('inv', 2) });
    await compute(answers.get('computeInvoice')!);
    await ask('queryWorkflow');
    await ask('getWorkflowSummary', { workflow_id: id('wf'), run_id: id('run') });
    await ask('getTaskResult', { query: `workflow_id=${id('wf')}` });
    await ask('finalizeInvoice', { id: id('inv', 2) });
    await ask('summarizeCustomers');
    await ask('summarizePlans');
    await ask('search', { query: 'q=acme' });
    await ask('updateInvoice', { id: id('inv', 2) });
    await ask('getInvoice', { id: id('inv', 2) });
    await ask('getInvoicePdf', { id: id('inv', 2), query: 'url=true' });
    await ask('updateInvoicePaymentStatus', { id: id('inv', 2) });
    await ask('previewInvoicePdf');
    await ask('previewOneOffInvoice');
    await ask('createInvoice');
    await send('POST', `/invoices/${id('inv', 3)}/finalize`);
    await ask('getCustomerInvoiceSummary', { id: id('cust') });
    await ask('voidInvoice', { id: id('inv', 3) });
  }

  /** By the sandbox, which signs what it says. */
  async function tellOf(gateway_payment_id: string) {
    const { scope } = world.api;
    const notice = { type: 'payment.succeeded', data: { gateway_payment_id: ids.asMade(gateway_payment_id) } };
    const path = `/webhooks/sandbox/${scope.tenant_id}/${scope.environment_id}` as const;
    const answer = await world.api.request('POST', path, sandboxNotice(notice, SECRET, scope));
    expect(answer.status, answer.text).to.equal(200);
    answers.set('receiveSandboxWebhook', ids.asShown(answer.body) as object as Shown);
    asked.set('receiveSandboxWebhook', ids.asShown(path));
  }

  async function whatIsPaid() {
    // By a card, and not with what was given back.
    await send('PUT', `/wallets/${id('wallet')}`, { config: { allowed_price_types: ['USAGE'] } });
    const owed = { customer_id: id('cust'), currency: 'usd', total: '30', subtotal: '30', amount_due: '30' };
    const other = await send('POST', '/invoices', { ...owed, invoice_status: 'FINALIZED' });
    await send('POST', '/invoices', { ...owed, invoice_status: 'FINALIZED' });
    await ask('listInvoices', { query: 'limit=2' });
    await ask('savePaymentMethod', { id: id('cust') });
    await ask('listPaymentMethods', { id: id('cust') });
    await ask('createPayment');
    await ask('updatePayment', { id: id('pay') });
    await ask('getPayment', { id: id('pay') });
    await ask('deletePayment', { id: id('pay') });
    const charge = requestExample(routes.find(({ operation_id }) => operation_id === 'createPayment')!) as object;
    await send('POST', '/payments', { ...charge, idempotency_key: 'again' });
    await ask('processPayment', { id: id('pay', 2) });
    await ask('refundPayment', { id: id('pay', 2) });
    const link = { payment_method_type: 'PAYMENT_LINK', payment_method_id: null, process_payment: true, amount: '10' };
    await send('POST', '/payments', { ...charge, ...link, destination_id: other.id });
    await ask('actInSandbox', { id: id('pay', 3) });
    const page = await send('POST', '/payments', {
      ...charge,
      ...link,
      destination_id: other.id,
      idempotency_key: 'page',
    });
    await tellOf(page.gateway_payment_id);
    await ask('attemptInvoicePayment', { id: other.id });
    await ask('listPayments', { query: 'limit=1' });
    await ask('queryPayment');
    await ask('removePaymentMethod', { id: id('cust'), method_id: id('paym') });
  }

  async function whatIsCheckedOut() {
    await ask('createCheckoutSession');
    await ask('getCheckoutSession', { id: id('cs') });
    await ask('getSubscriptionV2', { id: id('subs', 4) });
    await ask('deleteCheckoutSession', { id: id('cs') });
  }

  async function whatIsProven() {
    key = undefined;
    await ask('getInvoiceProof', { id: id('inv', 2) });
    await ask('getInvoiceEventProof', { id: id('inv', 2), event_id: 'call-1' });
  }

  async function whatIsToCome() {
    const subscription_id = id('subs', 2);
    const monthly = { credits: '100', cadence: 'RECURRING', period: 'MONTHLY', period_count: 1 };
    const own = { name: 'Monthly credits', scope: 'SUBSCRIPTION', subscription_id, start_date: '2026-04-01T00:00:00Z' };
    await send('POST', '/creditgrants', { ...own, ...monthly });
    await ask('listCreditGrants', { query: 'scope=SUBSCRIPTION' });
    await ask('getSubscriptionUpcomingGrants', { id: subscription_id });
    await ask('getCustomerUpcomingGrants', { id: id('cust') });
  }

  async function whatChanges() {
    // A credit reaches the wallet of a customer who has paid; of others it lowers what they owe.
    await payWhatIsOwed();
    await ask('previewSubscriptionModification', { id: id('subs') });
    const more = routes.find(({ operation_id }) => operation_id === 'previewSubscriptionModification')!;
    await send('POST', `/subscriptions/${id('subs')}/modify/execute`, requestExample(more));
    await payWhatIsOwed();
    await ask('executeSubscriptionModification', { id: id('subs') });
    await changePlans();
    await ask('getCustomerWallets', { id: id('cust') });
    await ask('getWallet', { id: id('wallet') });
    await ask('getWalletTransactions', { id: id('wallet') });
  }

  async function whatWasEarned() {
    await streamRevenue(world.api.services);
    await ask('getRevenueDashboard');
    await ask('getDashboardRevenues');
  }

  async function whatIsWatched() {
    await ask('createAlertSetting');
    const setting = id('alert_set');
    await ask('getAlertSetting', { id: setting });
    await ask('updateAlertSetting', { id: setting });
    await ask('queryAlertSetting');
    await ask('deleteAlertSetting', { id: setting });
    await ask('queryAlertLog');
  }

  async function whatIsReserved() {
    const plan = await send('POST', '/plans', { name: 'Assistant' });
    const price = { entity_type: 'PLAN', entity_id: plan.id, type: 'FIXED', billing_model: 'FLAT_FEE', amount: '1' };
    const cadence = { invoice_cadence: 'ARREAR', billing_period: 'MONTHLY', price_unit_type: 'FIAT', currency: 'usd' };
    await send('POST', '/prices', { ...price, ...cadence });
    const granted = { plan_id: plan.id, feature_id: id('feat'), feature_type: 'metered', usage_limit: 100 };
    await send('POST', '/entitlements', granted);
    const terms = { currency: 'usd', billing_period: 'MONTHLY' };
    await send('POST', '/subscriptions', { external_customer_id: 'acme', plan_id: plan.id, ...terms });
    await world.waitForPipeline();
    await ask('checkEntitlement');
    const [held] = (await send('POST', '/reservations/search', { reservation_status: 'held' })).items;
    await ask('getReservation', { id: held.id });
    await ask('commitReservation', { id: held.id });
    const check = { external_customer_id: 'acme', feature_id: id('feat'), quantity: '5', hold: {} };
    const { reservation } = await send('POST', '/entitlements/check', check);
    await ask('releaseReservation', { id: reservation.id });
    await ask('listReservations', { query: 'reservation_status=committed' });
    await ask('queryReservation');
    await ask('ingestOtlpMetrics');
  }

  async function whatIsImported() {
    await ask('createTask');
    secondLater();
    const [type, file] = Object.entries(
      routes.find(({ operation_id }) => operation_id === 'uploadTask')!.takes_file!,
    )[0]!;
    const headers = { 'content-type': type };
    const path = '/tasks/upload?entity_type=CUSTOMERS&file_type=CSV&file_name=customers.csv';
    const uploaded = await world.api.request('POST', path, { body: file, headers });
    expect(uploaded.status, uploaded.text).to.equal(202);
    answers.set('uploadTask', ids.asShown(uploaded.body) as object as Shown);
    asked.set('uploadTask', path);
    const preview = '/tasks/upload/preview?entity_type=CUSTOMERS&file_type=CSV';
    const tried = await world.api.request('POST', preview, { body: file, headers });
    answers.set('previewTaskUpload', ids.asShown(tried.body) as object as Shown);
    asked.set('previewTaskUpload', preview);
    await ask('createImportMapping');
    await ask('listImportMappings');
    await ask('listImportPresets');
    await ask('getImportMapping', { id: id('impmap') });
    await inBetween(() => ask('updateImportMapping', { id: id('impmap') }));
    await ask('deleteImportMapping', { id: id('impmap') });
    await work(
      (stores, place, attempt) => tryImport(stores, place, { ...attempt, settings: world.api.services.config }),
      uploaded.body as { workflow_id: string },
    );
  }

  /** To a directory, because nobody has a store of these examples. */
  async function whatIsExported() {
    await ask('createConnection');
    await ask('updateConnection', { id: id('conn') });
    await ask('createScheduledTask');
    await ask('updateScheduledTask', { id: id('schedtask') });
    await ask('listScheduledTasks');
    const folder = await send('POST', '/connections', { name: 'Here', provider_type: 'directory' });
    await ask('getConnection', { id: id('conn', 2) });
    const what = { connection_id: folder.id, entity_type: 'credit_usage', interval: 'daily', job_config: {} };
    await send('POST', '/tasks/scheduled', what);
    await ask('getScheduledTask', { id: id('schedtask', 2) });
    await ask('triggerScheduledTaskRun', { id: id('schedtask', 2) });
    const workflow_id = ids.asMade(answers.get('triggerScheduledTaskRun')!.workflow_id);
    const { services, scope } = world.api;
    const how = { attempt: 1, is_last: false, clock: services.clock, timeout_ms: 60_000, settings: services.config };
    const { signal } = new AbortController();
    await tryExport(services, { ...scope, workflow_id }, { ...how, slice: null, signal });
    await ask('getTask', { id: id('task') });
    await ask('listTasks', { query: `scheduled_task_id=${id('schedtask', 2)}` });
    await ask('downloadTaskExport', { id: id('task') });
    await send('POST', `/tasks/scheduled/${id('schedtask', 2)}/run`, {});
    await ask('updateTaskStatus', { id: id('task', 2) });
    await ask('deleteScheduledTask', { id: id('schedtask') });
    await ask('deleteConnection', { id: id('conn') });
    await ask('scheduleUpdateBillingPeriod');
  }

  async function whatIsHeld() {
    await ask('createWallet');
    const own = id('wallet', 2);
    await ask('updateWallet', { id: own });
    await ask('topUpWallet', { id: own });
    await ask('debitWallet', { id: own });
    await ask('listWallets', { query: `wallet_ids=${own}&expand=credits_available_breakdown` });
    await ask('queryWallet');
    await ask('queryWalletTransaction');
    await ask('getWalletBalance', { id: own });
    await ask('getWalletBalanceCached', { id: own });
    await ask('getCustomerWalletsByKey', { query: 'lookup_key=acme' });
    await ask('modifyWallet', { id: own });
    await ask('terminateWallet', { id: id('wallet') });
  }

  async function payWhatIsOwed() {
    const asked = { subscription_id: id('subs'), invoice_status: ['FINALIZED'] };
    const { items } = await send('POST', '/invoices/search', asked);
    for (const { id: invoice_id, amount_remaining, amount_due: amount } of items) {
      if (new Decimal(amount_remaining).lte(0)) continue;
      await send('PUT', `/invoices/${invoice_id}/payment`, { payment_status: 'SUCCEEDED', amount });
    }
  }

  async function changePlans() {
    const { id: entity_id } = await send('POST', '/plans', { name: 'Max' });
    const price = { entity_type: 'PLAN', entity_id, type: 'FIXED', billing_model: 'FLAT_FEE', amount: '90' };
    const cadence = { invoice_cadence: 'ADVANCE', billing_period: 'MONTHLY', price_unit_type: 'FIAT', currency: 'usd' };
    await send('POST', '/prices', { ...price, ...cadence });
    await ask('previewSubscriptionChange', { id: id('subs') });
    await ask('previewSubscriptionChangeV2', { id: id('subs') });
    await ask('executeSubscriptionChange', { id: id('subs') });
    await ask('executeSubscriptionChangeV2', { id: id('subs') });
  }

  async function whatEnds() {
    const { customer_id, plan_id, currency, billing_period } = answers.get('createSubscription')!;
    const second = { customer_id, plan_id, currency, billing_period, subscription_status: 'draft' };
    await send('POST', '/subscriptions', second);
    await ask('activateSubscription', { id: id('subs', 2) });
    await ask('addSubscriptionAddon');
    await ask('getSubscriptionAddonAssociations', { id: id('subs') });
    await ask('removeSubscriptionAddon');
    await ask('createSubscriptionLineItem', { id: id('subs', 2) });
    await ask('updateSubscriptionLineItem', { id: answers.get('createSubscriptionLineItem')!.id });
    await ask('deleteSubscriptionLineItem', { id: answers.get('updateSubscriptionLineItem')!.id });
    await ask('previewSubscriptionCancellation', { id: id('subs') });
    await ask('cancelSubscription', { id: id('subs') });
    await ask('listSubscriptionSchedulesOfAll', { query: 'pending_only=true' });
    await ask('listAllSubscriptionSchedules', { query: `subscription_id=${id('subs')}` });
    await ask('listSubscriptionSchedules', { id: id('subs') });
    await ask('getScheduleOfSubscription', { schedule_id: id('sched') });
    await ask('getSubscriptionSchedule', { id: id('sched') });
    await ask('cancelSubscriptionSchedule', { schedule_id: id('sched') });
    await send('POST', `/subscriptions/${id('subs')}/cancel`, { cancellation_type: 'end_of_period' });
    await ask('cancelScheduleOfSubscription');
    await ask('disableMeter', { id: id('meter', 2) });
    await ask('deleteMeter', { id: id('meter', 2) });
    await ask('deletePrice', { id: id('price', 2) });
    await ask('syncPlanPrices', { id: id('plan') });
    await syncPrices(answers.get('syncPlanPrices')!);
    await ask('syncPlanPricesV2', { id: id('plan') });
    await ask('deleteEntitlement', { id: id('ent') });
    await send('POST', '/addons', { name: 'Trial support', lookup_key: 'trial_support' });
    await ask('deleteAddon', { id: id('addon', 2) });
  }

  /** Another tenant, and what else would have made the story longer. */
  async function whoElse() {
    // At a day of its own, so that the chapters before it may grow.
    world.at('2026-03-01T00:00:00Z');
    await ask('signUp');
    await ask('login');
    await ask('updateSetting', { key: 'invoice_config' });
    await ask('getSetting', { key: 'invoice_config' });
    await ask('listSettings');
    await ask('deleteSetting', { key: 'invoice_config' });
    await ask('cloneEnvironment', { id: id('env') });
    await ask('listAuditLogs', { query: `entity_id=${id('user')}&tenant_wide=true&limit=1` });
    await ask('getAuditLog', { id: id('audit') });
    await signInBrowsers();
  }

  async function signInBrowsers() {
    await ask('getSignInOptions');
    const other = openBrowser(world.api);
    browser = openBrowser(world.api);
    await ask('createSession');
    await ask('getCurrentSession');
    browser = other;
    await send('POST', '/auth/session', requestExample(routes.find((one) => one.operation_id === 'createSession')!));
    await ask('listSessions');
    await ask('endSession', { id: id('sess') });
    await ask('endCurrentSession');
    browser = undefined;
  }

  async function whatIsDoneAgain() {
    world.at('2026-03-02T00:00:00Z');
    const training = { display_name: 'Training', amount: '30', quantity: '1' };
    const amounts = { currency: 'usd', amount_due: '30', total: '30', subtotal: '30', line_items: [training] };
    const request = { customer_id: id('cust'), ...amounts, invoice_status: 'FINALIZED' };
    const invoice = await send('POST', '/invoices', request);
    await ask('previewCreditNote');
    await ask('createCreditNote');
    await ask('processCreditNote', { id: id('cn') });
    await ask('listCreditNotes', { query: `invoice_id=${invoice.id}` });
    await ask('voidCreditNote', { id: id('cn') });
    await ask('getCreditNote', { id: id('cn') });
    const openings = { subscription_id: id('subs', 2), billing_reason: 'SUBSCRIPTION_CREATE' };
    const [opening] = (await send('POST', '/invoices/search', openings)).items;
    await ask('recalculateInvoice', { id: opening.id });
    const again = answers.get('recalculateInvoice')!.id;
    await ask('recalculateInvoiceV2', { id: again });
    await ask('triggerInvoiceCommsWebhook', { id: again });
    await ask('triggerInvoiceWebhook', { id: again, query: 'event_name=invoice.communication.triggered' });
    await ask('finalizeInvoiceLater', { invoice_id: again });
  }

  /** In an environment of its own. */
  async function whatTimeItIs() {
    const wanted = { name: 'Clock', type: 'private_key', environment_id: ids.asMade(id('env', 2)) };
    const made = await world.api.request('POST', '/secrets/api/keys', { body: wanted });
    key = made.body.api_key;
    await ask('createTestClock');
    await ask('getTestClock', { id: id('clock') });
    await ask('listTestClocks');
    await ask('queryTestClock');
    await ask('advanceTestClock', { id: id('clock') });
    await ask('stopTestClock', { id: id('clock') });
    const [clock] = (await send('GET', '/test-clocks')).items;
    const scope = { ...world.api.scope, environment_id: wanted.environment_id };
    const { config: settings } = world.api.services;
    await inBetween(async () => {
      await work((stores, place, attempt) => tryAdvance(stores, place, { ...attempt, settings }), clock, scope);
      while ((await dispatchBatch(world.api.services, { has_targets: true, now: world.now })).dispatched > 0);
      await ask('deleteTestClock', { id: id('clock') });
    });
  }

  async function whatElseIsSold() {
    await ask('createPriceUnit');
    await ask('getPriceUnit', { id: id('price_unit') });
    await ask('getPriceUnitByCode', { code: 'crd' });
    await ask('updatePriceUnit', { id: id('price_unit') });
    await ask('listPriceUnits', { query: 'sort=code' });
    await ask('queryPriceUnit');
    await ask('deletePriceUnit', { id: id('price_unit') });
    await ask('createGroup');
    await ask('getGroup', { id: id('group') });
    await ask('queryGroup');
    await ask('createCoupon');
    await ask('getCoupon', { id: id('coupon') });
    await ask('getCouponByCode', { code: 'LAUNCH20' });
    await ask('updateCoupon', { id: id('coupon') });
    await ask('listCoupons', { query: 'coupon_codes=LAUNCH20' });
    await ask('queryCoupon');
    await addCouponAssociation();
    await ask('listCouponAssociations', { query: `subscription_ids=${id('subs')}` });
    await ask('getCouponAssociation', { id: id('coupon_assoc') });
    await ask('deleteCoupon', { id: id('coupon') });
    await ask('createTaxRate');
    await ask('updateTaxRate', { id: id('taxrate') });
    await ask('getTaxRate', { id: id('taxrate') });
    await ask('listTaxRates', { query: 'taxrate_codes=vat_de' });
    await ask('createTaxAssociation');
    await ask('getTaxAssociation', { id: id('ta') });
    await ask('updateTaxAssociation', { id: id('ta') });
    await ask('listTaxAssociations', { query: 'external_customer_id=acme' });
    await ask('deleteTaxAssociation', { id: id('ta') });
    await ask('createCostsheet');
    const ofCalls = {
      entity_type: 'COSTSHEET',
      entity_id: id('cost'),
      meter_id: id('meter'),
      invoice_cadence: 'ARREAR',
    };
    const unitCost = {
      type: 'USAGE',
      billing_model: 'FLAT_FEE',
      amount: '0.002',
      currency: 'usd',
      price_unit_type: 'FIAT',
    };
    await send('POST', '/prices', { ...ofCalls, ...unitCost, billing_period: 'MONTHLY' });
    await ask('updateCostsheet', { id: id('cost') });
    await ask('getCostsheet', { id: id('cost') });
    await ask('getActiveCostsheet');
    await ask('queryCostsheet');
    await ask('getDetailedCostAnalyticsV2');
    await ask('getDetailedCostAnalytics');
    await ask('deleteCostsheet', { id: id('cost') });
    await ask('createCreditGrant');
    await ask('updateCreditGrant', { id: id('cg') });
    await ask('getCreditGrant', { id: id('cg') });
    await ask('getPlanCreditGrants', { id: id('plan') });
    await ask('deleteCreditGrant', { id: id('cg') });
  }

  /** What a subscription does that redeems a coupon. */
  async function addCouponAssociation() {
    const names = ids.asMade({ coupon_id: id('coupon'), subscription_id: id('subs') });
    const start_date = world.now.toISOString();
    const record = { id: newId('coupon_association', world.now.getTime()), ...names, start_date };
    const by = createdBy({ user_id: ids.asMade(id('user')), now: world.now });
    const { scope, services } = world.api;
    await CouponAssociationModel.add(scope, { ...record, ...by }, { database: services.postgres });
  }

  async function whatIsTold() {
    await ask('listWebhookEventTypes');
    await ask('createWebhookEndpoint');
    await ask('updateWebhookEndpoint', { id: id('whep') });
    await ask('getWebhookEndpoint', { id: id('whep') });
    await ask('listWebhookEndpoints');
    await ask('rotateWebhookSecret', { id: id('whep') });
    await ask('testWebhookEndpoint', { id: id('whep') });
    await ask('listWebhookDeliveries', { query: `endpoint_ids=${id('whep')}` });
    await ask('queryWebhookDelivery');
    await ask('getWebhookDelivery', { id: id('whd') });
    await ask('listSystemEvents', { query: 'event_names=subscription.cancelled' });
    await ask('querySystemEvent');
    await ask('getSystemEvent', { id: id('sys_event') });
    await ask('retryWebhook', { id: id('sys_event') });
    await ask('retryOutboundWebhook');
    await ask('getWebhookDashboard');
    await ask('deleteWebhookEndpoint', { id: id('whep') });
  }

  /** Sends the example of the operation, and keeps the answer. */
  async function ask(operation_id: string, place: { query?: string } & Record<string, string> = {}) {
    expect(answers, 'each operation is asked once').to.not.include.keys(operation_id);
    const route = routes.find((one) => one.operation_id === operation_id)!;
    const { query, ...params } = place;
    if (!PREVIEWS.includes(operation_id)) secondLater();
    const path = route.path.replace(/:(\w+)/g, (_, name: string) => params[name]!);
    if (hasCondition(route)) await askWithOldTag(route, path);
    const answer = await send(route.method.toUpperCase(), query ? `${path}?${query}` : path, requestExample(route), [
      route.success,
    ]);
    if (route.file_type === undefined || route.answer) answers.set(operation_id, answer);
    else files.set(operation_id, answer);
    asked.set(operation_id, query ? `${path}?${query}` : path);
  }

  /** A record that changed since the caller has read it is not changed: each of these requests would do what the story tells. */
  async function askWithOldTag(route: Route, path: string) {
    const example = requestExample(route);
    const body = example === undefined ? {} : { body: ids.asMade(example) };
    const options = { ...(key === undefined ? {} : { key }), ...body, headers: { 'if-match': '"old"' } };
    const answer = await world.api.request<{ code?: string }>(route.method.toUpperCase(), ids.asMade(path), options);
    conditions.set(`${route.method} ${route.path}`, `${answer.status} ${answer.body?.code}`);
  }

  /** Of what the story has made, and what it ends with. */
  async function whatIsRead() {
    key = undefined;
    world.at('2026-03-10T00:00:00Z');
    const invoice = id('inv', 2);
    const january = 'start_time=2026-01-01T00:00:00Z&end_time=2026-02-01T00:00:00Z';
    await ask('exportUsage', { query: january });
    await inBetween(() => ask('streamEvents', { query: 'event_name=api_call' }));
    await ask('exportRecords', { entity_type: 'events', query: january });
    const path = `/invoices/${invoice}/proof/events` as const;
    const lines = await fetch(`${world.api.url}/v1${ids.asMade(path)}`, { headers: { 'x-api-key': world.api.key } });
    expect(lines.status).to.equal(200);
    files.set('getInvoiceProofEvents', ids.asShown(await lines.text()));
    asked.set('getInvoiceProofEvents', path);
    await ask('getTaskReport', { id: answers.get('uploadTask')!.id });
    await ask('getTaskRefusedRows', { id: answers.get('uploadTask')!.id });
    files.set('getInvoicePdf', await send('GET', `/invoices/${invoice}/pdf`));
    files.set('getCreditNotePdf', await send('GET', `/creditnotes/${id('cn')}/pdf`));
    await openAddress('getDocument', `/invoices/${invoice}/pdf?url=true`);
    await openAddress('getExportFile', `/tasks/${id('task')}/download`);
    await ask('getReceivables');
    await ask('getCreditNotePdf', { id: id('cn'), query: 'url=true' });
  }

  /** The address is another each time. */
  async function openAddress<Path extends string>(operation_id: Path, path: string) {
    const told = await world.api.request('GET', ids.asMade(path));
    const [url] = Object.values(told.body as Record<string, string>);
    const token = url!.split('/').at(-1)!;
    await ask(operation_id, { token });
    asked.set(operation_id, asked.get(operation_id)!.replace(token, SHOWN_TOKEN));
  }

  async function whatIsExchanged() {
    world.at('2026-03-10T12:00:00Z');
    const account = { stripe: { secret_key: 'sk_test_fake', webhook_secret: SECRET } };
    const stripe = { name: 'Stripe', provider_type: 'stripe', encrypted_secret_data: account };
    const connection = await send('POST', '/connections', stripe);
    await ask('queryConnection');
    await ask('testConnection', { id: connection.id });
    await ask('getIntegrationConfig');
    await ask('linkIntegrationMapping');
    await ask('listIntegrationMappings', { query: `entity_type=customer&entity_id=${id('cust')}` });
    await ask('syncIntegration');
    await ask('unlinkIntegrationMapping');
    await ask('createEntityIntegrationMapping');
    await ask('deleteEntityIntegrationMapping', { id: id('imap', 2) });
    await ask('startCardSetup', { id: id('cust') });
    await receiveFromStripe();
    await ask('listInboundWebhooks', { query: 'event_state=received' });
    await ask('retryInboundWebhook', { id: id('pevt') });
    await ask('createOrUpdateIntegration', { provider: 's3' });
    await ask('getIntegration', { provider: 's3' });
    await ask('listLinkedIntegrations');
    await ask('deleteIntegration', { id: answers.get('createOrUpdateIntegration')!.id });
  }

  /** The state is another each time. */
  async function whatIsGranted() {
    books.app = { client_id: 'the client id of the app', client_secret: 'the client secret of the app' };
    await ask('initiateOAuth');
    const begun = answers.get('initiateOAuth')!;
    const { state, ...granted } = books.consent(begun.oauth_url);
    const example = requestExample(routes.find((one) => one.operation_id === 'completeOAuth')!) as object;
    const path = '/oauth/complete';
    answers.set('completeOAuth', (await send('POST', path, { ...example, ...granted, state })) as Shown);
    asked.set('completeOAuth', path);
    await ask('listConnections');
    const page = begun.oauth_url.replace(books.url.origin, 'https://appcenter.intuit.com').replace(state, '…');
    answers.set('initiateOAuth', { ...begun, oauth_url: page });
    await receiveFromQuickBooks();
    await receiveFromRazorpay();
    await receiveFromZohoBooks();
    await receiveFromPaddle();
    await receiveFromXero();
    await receiveFromHubSpot();
    await receiveFromGateways();
    await receiveFromChargebee();
    await receiveFromWhop();
  }

  async function receiveFromStripe() {
    const body = JSON.stringify(requestExample(routes.find((one) => one.operation_id === 'handleStripeWebhook')!));
    const signature = signStripeBody(body, [SECRET], world.now.getTime() / 1_000);
    await receive('stripe', body, { 'stripe-signature': signature });
  }

  async function receiveFromQuickBooks() {
    const event = { id: 'event_1', type: 'qbo.invoice.updated.v1', intuitentityid: '1', intuitaccountid: 'another' };
    const body = JSON.stringify([event]);
    await receive('quickbooks', body, {
      'intuit-signature': signIntuitBody(body, 'the verifier token of the webhook'),
    });
  }

  async function receiveFromRazorpay() {
    const account = { razorpay: { key_id: 'rzp_test_fake', secret_key: 'secret_fake', webhook_secret: SECRET } };
    await send('POST', '/connections', { name: 'R', provider_type: 'razorpay', encrypted_secret_data: account });
    const body = JSON.stringify({ entity: 'event', account_id: 'acc_fake', event: 'other', contains: [], payload: {} });
    const signature = { 'x-razorpay-signature': signRazorpayBody(body, SECRET), 'x-razorpay-event-id': 'event_1' };
    await receive('razorpay', body, signature);
  }

  async function receiveFromZohoBooks() {
    const { access_token, secrets } = zoho;
    const account = { zoho_books: { ...secrets, access_token } };
    await send('POST', '/connections', { name: 'Z', provider_type: 'zoho_books', encrypted_secret_data: account });
    const body = JSON.stringify({ contact: { contact_id: '460000000026049' } });
    const signature = signZohoWebhook({ body }, secrets.webhook_secret);
    await receive('zoho_books', body, { 'x-zoho-webhook-signature': signature });
  }

  /** The connection is archived at once, because invoices have no tax of their own while it exists. */
  async function receiveFromPaddle() {
    const account = { paddle: { api_key: paddle.api_key, webhook_secret: SECRET } };
    const connection = { name: 'P', provider_type: 'paddle', encrypted_secret_data: account };
    const { id: connection_id } = await send('POST', '/connections', connection);
    const body = JSON.stringify({ event_id: 'evt_1', event_type: 'product.created', data: {} });
    const time = world.now.getTime() / 1_000;
    await receive('paddle', body, { 'paddle-signature': signPaddleBody(body, [SECRET], time) });
    await send('DELETE', `/connections/${connection_id}`, undefined, [204]);
  }

  async function receiveFromXero() {
    const { secrets, access_token, refresh_token } = xero;
    const account = { xero: { ...secrets, access_token, refresh_token } };
    await send('POST', '/connections', { name: 'X', provider_type: 'xero', encrypted_secret_data: account });
    const body = JSON.stringify({ events: [], firstEventSequence: 0, lastEventSequence: 0, entropy: 'random' });
    await receive('xero', body, { 'x-xero-signature': signXeroBody(body, secrets.webhook_key) });
  }

  async function receiveFromHubSpot() {
    const account = { hubspot: hubspot.secrets };
    await send('POST', '/connections', { name: 'H', provider_type: 'hubspot', encrypted_secret_data: account });
    const body = JSON.stringify([{ eventId: 1, subscriptionType: 'contact.creation', portalId: 4711, objectId: 1 }]);
    const timestamp = String(world.now.getTime());
    const { tenant_id, environment_id } = world.api.scope;
    const url = `${world.api.url}/v1/webhooks/hubspot/${tenant_id}/${environment_id}`;
    const signature = signHubSpotRequest({ method: 'POST', url, body, timestamp }, hubspot.client_secret);
    await receive('hubspot', body, {
      'x-hubspot-signature-v3': signature,
      'x-hubspot-request-timestamp': timestamp,
    });
  }

  async function receiveFromGateways() {
    const connect = async ({ provider_type: name, secrets }: ProviderDouble) =>
      send('POST', '/connections', { name, provider_type: name, encrypted_secret_data: { [name]: secrets } });
    for (const gateway of gateways) await connect(gateway);
    const { webhook_secret } = moyasar.secrets;
    await receive('moyasar', JSON.stringify({ id: 'event_1', type: 'balance_paid', secret_token: webhook_secret }), {});
    const body = JSON.stringify({ id: '7a6ff1c2-0b4e-4d2b-8a67-2f9c5d1e3b40' });
    await receive('nomod', body, { 'x-api-key': nomod.secrets.webhook_secret });
  }

  async function receiveFromChargebee() {
    const hook = { webhook_username: 'farthing', webhook_password: SECRET };
    const account = { chargebee: { site: 'fake-test', api_key: API_KEY, ...hook } };
    await send('POST', '/connections', { name: 'C', provider_type: 'chargebee', encrypted_secret_data: account });
    const body = JSON.stringify({ id: 'ev_1', event_type: 'customer_changed', content: {} });
    await receive('chargebee', body, { authorization: encodeBasic('farthing', SECRET) });
  }

  async function receiveFromWhop() {
    const connection = { name: 'W', provider_type: 'whop', encrypted_secret_data: { whop: whop.secrets } };
    await send('POST', '/connections', connection);
    const body = JSON.stringify(whop.buildWebhook('withdrawal.created'));
    await receive('whop', body, signWhopBody(body, whop.secrets.webhook_secret, { now: world.now }));
  }

  async function receive(provider: string, body: string, headers: Record<string, string>) {
    const { tenant_id, environment_id } = world.api.scope;
    const path = `/webhooks/${provider}/${tenant_id}/${environment_id}`;
    const answer = await world.api.request<Shown>('POST', path, { body, key: null, headers });
    expect(answer.status, answer.text).to.equal(200);
    const name = provider.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
    const operation_id = `handle${name}Webhook`;
    answers.set(operation_id, ids.asShown(answer.body));
    asked.set(operation_id, ids.asShown(path));
  }

  async function whatGoes() {
    world.at('2026-03-11T00:00:00Z');
    const gone = await send('POST', '/customers', { external_id: 'gone', name: 'Gone' });
    await ask('deleteCustomer', { id: gone.id });
    await ask('deleteGroup', { id: id('group') });
    await ask('deleteTaxRate', { id: id('taxrate') });
    await ask('deleteApiKey', { id: answers.get('createApiKey')!.secret.id });
    await ask('deleteUser', { id: id('user', 2) });
    await ask('listUncountedEvents', { query: 'reason=dead_letter' });
    const late = { event_id: 'call-9', event_name: 'api_call', external_customer_id: 'acme' };
    await send('POST', '/events', { ...late, timestamp: '2026-01-31T11:00:00Z', properties: { tokens: 12 } });
    await world.waitForPipeline();
    await ask('listLateEvents');
  }

  /** Leaves the clock where it was, so that the times of later answers stay. */
  async function inBetween(deed: () => Promise<unknown>) {
    const at = world.now.toISOString();
    await deed();
    world.at(at);
  }

  function secondLater() {
    world.at(new Date(world.now.getTime() + 1000).toISOString());
  }

  async function send(method: string, path: string, body?: unknown, successes = [200, 201, 202]) {
    const as = key === undefined ? {} : { key };
    const request = body === undefined ? as : { ...as, body: ids.asMade(body) };
    const answer = await (browser === undefined
      ? world.api.request<unknown>(method, ids.asMade(path), request)
      : browser.request<unknown>(method, ids.asMade(path), request));
    expect(answer.status, `${method} ${path}: ${answer.text}`).to.be.oneOf(successes);
    const { body: answered } = answer;
    if (typeof answered !== 'string') return ids.asShown(withFixedParts(answered, world.now));
    return answered.startsWith('%PDF') ? `${answered.split('\n')[0]}\n…` : ids.asShown(answered);
  }

  type Run = { workflow_id: string };
  const compute = (asked: Run) => work(tryComputation, asked);
  const syncPrices = (asked: Run) => work(trySync, asked);

  /** What the scheduler does with the job that was asked for. */
  async function work(perform: typeof tryComputation | typeof trySync, asked: Run, scope = world.api.scope) {
    secondLater();
    const run = { ...scope, ...ids.asMade(asked) };
    const attempt = {
      attempt: 1,
      is_last: false,
      clock: () => world.now,
      signal: AbortSignal.timeout(60_000),
      timeout_ms: 60_000,
    };
    expect(await perform(world.api.services, run, attempt)).to.equal('completed');
  }
});

/** What the stores stamp by their own clock, what is shown of a key, and places in the log may be others each time. */
function withFixedParts(answer: unknown, now: Date) {
  const text = JSON.stringify(answer)
    .replace(/"(live_at|applied_at)":"[^"]+"/g, `"$1":"${now.toISOString().replace('.000', '')}"`)
    .replace(/"secret":"whsec_[^"]+"/g, '"secret":"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"')
    .replace(/"secret_hint":"[^"]+"/g, '"secret_hint":"whsec_Mf***LaSw"')
    .replace(/"display_id":"[^"]+"/g, '"display_id":"sk_01***1X"')
    .replace(/"token":"[^"]+"/g, '"token":"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.…"')
    .replace(
      /"presigned_url":"[^"]+"/g,
      '"presigned_url":"https://billing.example.com/v1/documents/eyJhbGciOiJIUzI1NiIs.…"',
    )
    .replace(
      /"download_url":"[^"]+"/g,
      '"download_url":"https://billing.example.com/v1/exports/files/eyJhbGciOiJIUzI1NiIs.…"',
    )
    // A control message may stand in the log twice, and moves what comes behind it.
    .replace(/("high_water":\{"0":)"\d+"/g, '$1"9"')
    .replace(/"id":"0-\d+-(\d+)"/g, '"id":"0-6-$1"');
  return JSON.parse(text);
}
