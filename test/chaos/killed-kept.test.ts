/**
 * kill -9 of the whole service while balances, usage and what is left of grants are kept up and asked for: after the restart they are what was acknowledged,
 * gathered anew as well as kept, and the same as the doors say that keep nothing.
 */
import { expect } from 'chai';
import type { Customer, Feature, Subscription, Wallet } from '../support/answers.ts';
import { type ServiceProcess, startServiceProcess, temporaryDirectory } from '../support/service.ts';
import { until } from '../support/until.ts';

const KILLS = 2;
const WRITERS = 4;
/** So much is acknowledged between two kills. */
const DEEDS = 120;
const METERS = ['tokens', 'calls', 'bits'] as const;

describe('chaos: kept answers and kill -9', function () {
  this.timeout(180_000);
  const directory = temporaryDirectory();
  const settings = { DATA_DIR: directory.path, BOOTSTRAP_API_KEY: 'sk_test_chaos', SLICE_WAIT_MS: '20' };
  let service: ServiceProcess;
  let customer: Customer;
  let wallet: Wallet;
  let subscription: Subscription;
  const features: Record<string, Feature> = {};
  const used: Record<string, number> = { tokens: 0, calls: 0, bits: 0 };
  let credits = 1_000_000;
  let done = 0;
  let read = 0;

  const post = async <Path extends string>(path: Path, body: object) => {
    const answer = await service.request('POST', path, { body });
    expect(answer.status, answer.text).to.be.within(200, 299);
    return answer.body;
  };
  /** Until it is acknowledged, by whoever runs then: one id or key is one deed. */
  const surely = async <Path extends string>(path: Path, body: object) => {
    await until(path, async () => {
      const answer = await service.request('POST', path, { body }).catch(() => null);
      return answer !== null && answer.status < 300;
    });
    done++;
  };
  const deed = async (n: number) => {
    if (n % 5 === 0) {
      const key = { idempotency_key: `key ${n}` };
      const isTopUp = n % 10 === 0;
      const body = isTopUp
        ? { ...key, credits_to_add: '7', transaction_reason: 'FREE_CREDIT_GRANT' }
        : { ...key, credits: '3', transaction_reason: 'MANUAL_BALANCE_DEBIT' };
      await surely(`/wallets/${wallet.id}/${isTopUp ? 'top-up' : 'debit'}`, body);
      credits += isTopUp ? 7 : -3;
      return;
    }
    const event_name = METERS[n % 3]!;
    const event = { event_id: `e${n}`, event_name, external_customer_id: 'acme', timestamp: new Date().toISOString() };
    await surely('/events', { ...event, properties: { n: (n % 9) + 1 } });
    used[event_name]! += (n % 9) + 1;
  };
  const balance = async () =>
    Number((await service.request('GET', `/wallets/${wallet.id}/balance/real-time`)).body.real_time_credit_balance);
  const usageOf = async (name: string) => {
    const { body } = await service.request('GET', '/customers/usage?customer_lookup_key=acme');
    const found = body.features.find(({ feature }) => feature.id === features[name]!.id);
    return Number(found!.current_usage);
  };
  const checked = async (name: string) => {
    const about = { external_customer_id: 'acme', feature_id: features[name]!.id, quantity: '0' };
    return Number((await post('/entitlements/check', about)).used);
  };
  const told = async () => [await balance(), await usageOf('calls'), await usageOf('bits')];

  before(async () => {
    service = await startServiceProcess(settings);
    customer = await post('/customers', { external_id: 'acme' });
    const plan = await post('/plans', { name: 'Pro', lookup_key: 'pro' });
    for (const name of METERS) {
      const meter = { name, event_name: name, aggregation: { type: 'SUM', field: 'n' }, reset_usage: 'BILLING_PERIOD' };
      const { id: meter_id } = await post('/meters', meter);
      features[name] = await post('/features', { name, type: 'metered', meter_id });
      const price = {
        entity_type: 'PLAN',
        entity_id: plan.id,
        type: 'USAGE',
        meter_id,
        currency: 'usd',
        amount: '0.5',
      };
      const terms = { billing_model: 'FLAT_FEE', billing_period: 'MONTHLY', billing_period_count: 1 };
      await post('/prices', { ...price, ...terms, billing_cadence: 'RECURRING', invoice_cadence: 'ARREAR' });
    }
    const free = { plan_id: plan.id, feature_type: 'metered' };
    await post('/entitlements', { ...free, feature_id: features.calls!.id, usage_limit: 1_000_000 });
    const grants = { grant_measure: 'quantity', grant_quota: '1000000', grant_duration_unit: 'subscription_period' };
    await post('/entitlements', { ...free, ...grants, feature_id: features.bits!.id });
    const start_date = new Date(Date.now() - 60_000).toISOString();
    const terms = { plan_id: plan.id, currency: 'usd', billing_period: 'MONTHLY', billing_period_count: 1, start_date };
    subscription = await post('/subscriptions', { ...terms, customer_id: customer.id });
    const purse = { customer_id: customer.id, currency: 'usd', initial_credits_to_load: String(credits) };
    wallet = await post('/wallets', purse);
  });
  after(async () => {
    await service?.stop();
    directory.remove();
  });

  it('are what was acknowledged, gathered anew and kept', async () => {
    let next = 1;
    let isOver = false;
    const writer = async () => {
      while (!isOver) await deed(next++);
    };
    const reader = async () => {
      while (!isOver) {
        const answers = await Promise.all([told(), checked('bits')]).catch(() => null);
        if (answers) read++;
      }
    };
    const all = [...Array.from({ length: WRITERS }, writer), reader(), reader()];
    for (let kill = 1; kill <= KILLS; kill++) {
      await until('enough was done', async () => done >= kill * DEEDS, 60_000);
      process.kill(service.pid, 'SIGKILL');
      await service.ended;
      service = await startServiceProcess(settings);
    }
    await until('some was done since', async () => done >= (KILLS + 1) * DEEDS, 60_000);
    isOver = true;
    await Promise.all(all);
    expect(read, 'answers were asked for meanwhile').to.be.greaterThan(KILLS);
    const expected = [credits - used.tokens! / 2, used.calls, used.bits];
    await until(
      'all of it is counted',
      async () => (await checked('bits')) === used.bits && (await balance()) === expected[0],
    );
    // As they were kept up, and as they are kept.
    for (const when of ['kept up', 'kept']) expect(await told(), when).to.deep.equal(expected);
    const asked = { subscription_id: subscription.id };
    const { charges } = await post('/subscriptions/usage', asked);
    const cost = charges.reduce((sum: number, { amount }) => sum + Number(amount), 0);
    expect(credits - cost, 'nothing of it is kept').to.equal(expected[0]);
    // One that has just begun knows nothing.
    process.kill(service.pid, 'SIGKILL');
    await service.ended;
    service = await startServiceProcess(settings);
    for (const when of ['gathered anew', 'kept again']) expect(await told(), when).to.deep.equal(expected);
    expect(await checked('bits')).to.equal(used.bits);
    console.log(`      ${done} deeds, ${KILLS + 1} kills, ${read} times asked meanwhile`);
  });
});
