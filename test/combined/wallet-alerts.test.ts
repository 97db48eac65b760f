/** Alerts on balances: of credits with every movement, of what is left in real time when usage lands (docs/rules/alerts.md). */
import { expect } from 'chai';
import { checkAlerts } from '../../actions/alerts/check-alerts.ts';
import { checkWallets } from '../../actions/alerts/wallet-alerts.ts';
import { debitWallet } from '../../actions/credits/wallets/debit-wallet.ts';
import { topUpWallet } from '../../actions/lifecycle/wallets/top-up.ts';
import { debitShape, topUpShape } from '../../core/credits/wallet/request.ts';
import { createWork } from '../../scheduler/main.ts';
import { WalletModel } from '../../storage/models/credits/wallet.ts';
import { ALERT_TASK } from '../../storage/progress/alert-arrivals.ts';
import type { Feature, Invoice, Wallet } from '../support/answers.ts';
import type { TestAnswer } from '../support/api.ts';
import { expectGolden, withoutIds } from '../support/golden.ts';
import { until } from '../support/until.ts';
import { startWorld, usage, type World } from '../support/world.ts';

const below = (levels: Record<string, string>) => ({
  alert_enabled: true,
  ...Object.fromEntries(Object.entries(levels).map(([level, threshold]) => [level, { threshold, condition: 'below' }])),
});

const NAMES = [
  'feature.wallet_balance.alert',
  ...['credit', 'ongoing'].flatMap((of) => ['dropped', 'recovered'].map((how) => `wallet.${of}_balance.${how}`)),
];

describe('scenario: alerts on balances', () => {
  let world: World;
  let wallet: Wallet;
  let feature: Feature;

  before(async () => {
    world = await startWorld();
    const meter = await world.meter('calls');
    feature = await world.post('/features', {
      name: 'Calls',
      type: 'metered',
      meter_id: meter.id,
      alert_settings: { alert_enabled: true, critical: { threshold: '25' } },
    });
    await world.post('/features', {
      name: 'Of others',
      type: 'metered',
      meter: { name: 'others', event_name: 'others', aggregation: { type: 'COUNT' }, reset_usage: 'BILLING_PERIOD' },
      alert_settings: { alert_enabled: true, critical: { threshold: '1000' } },
    });
    await world.plan('Calls', [usage('calls', '1', { display_name: 'calls' })]);
    await world.on('2026-01-01');
    const { customer_id } = await world.subscribe('acme', 'Calls');
    wallet = await world.post('/wallets', {
      customer_id,
      currency: 'usd',
      initial_credits_to_load: '100',
      alert_settings: below({ critical: '10', warning: '50' }),
    });
  });
  after(() => world.stop());

  async function log(fields: object = {}): Promise<string[]> {
    const body = { customer_id: wallet.customer_id, sort: 'id', order: 'asc', ...fields };
    const { items } = await world.post('/alerts/search', body);
    return items.map(
      ({ alert_type, alert_status, alert_info }) => `${alert_type} ${alert_status} ${Number(alert_info.value_at_time)}`,
    );
  }

  async function told(prefix: string) {
    const { items } = await world.get('/webhooks/events?limit=1000&order=asc&sort=id');
    return items.filter(({ event_name }) => event_name.startsWith(prefix)).map(({ payload }) => payload);
  }

  const put = (credits_to_add: string) =>
    world.post(`/wallets/${wallet.id}/top-up`, { credits_to_add, transaction_reason: 'FREE_CREDIT_GRANT' });
  const take = (credits: string) =>
    world.post(`/wallets/${wallet.id}/debit`, {
      credits,
      transaction_reason: 'MANUAL_BALANCE_DEBIT',
      idempotency_key: `take ${credits}`,
    });

  /** What the job does, twice at once, as two schedulers do. */
  async function look(date: string): Promise<number> {
    world.at(date);
    await world.waitForPipeline();
    const both = await Promise.all([1, 2].map(() => checkAlerts(world.api.services, { now: world.now })));
    for (const { failed } of both) if (failed.length > 0) throw failed[0]!.error;
    return both.reduce((sum, { alerted }) => sum + alerted, 0);
  }

  it('its credits are compared with every movement, and each change is told once', async () => {
    expect(await log()).to.deep.equal([]);
    await take('49.99');
    expect(await log()).to.deep.equal([]);
    await take('0.01');
    expect(await log()).to.deep.equal(['low_credit_balance warning 50']);
    await take('0.5');
    await take('1');
    expect(await log()).to.have.length(1);
    const [dropped] = await told('wallet.credit_balance');
    expect(dropped).to.deep.include({ event_type: 'wallet.credit_balance.dropped' });
    expect(dropped!.wallet).to.include({ id: wallet.id, alert_state: 'warning' });
    expect(dropped!.alert).to.deep.include({
      state: 'warning',
      alert_type: 'low_credit_balance',
      credit_balance: '50',
    });
    expect((await world.get(`/wallets/${wallet.id}`)).alert_state).to.equal('warning');
  });

  it('what is left in real time is compared when usage lands, with the features that the customer pays for', async () => {
    expect(await look('2026-01-02')).to.equal(1);
    expect((await log()).slice(1)).to.deep.equal(['low_ongoing_balance warning 48.5']);
    const { postgres } = world.api.services;
    // Credits that move ask for a look, too: that one is done, or this would wait for nothing.
    await postgres.raw('delete from graphile_worker._private_jobs');
    await world.use('acme', 'calls', 24);
    const asked = () => postgres('graphile_worker.jobs').where('key', `alerts:${wallet.customer_id}`).select('key');
    await until('it is asked for', async () => (await asked()).length > 0);
    expect(await look('2026-01-03')).to.equal(1);
    expect((await log()).slice(2)).to.deep.equal(['feature_wallet_balance in_alarm 24.5']);
    const [alert] = await told('feature.wallet_balance.alert');
    expect(alert).to.deep.include({
      alert_type: 'feature_wallet_balance',
      alert_status: 'in_alarm',
      feature_id: feature.id,
      wallet_id: wallet.id,
      customer_id: wallet.customer_id,
      credit_balance: '24.5',
    });
    await world.use('acme', 'calls', 15);
    expect(await look('2026-01-04')).to.equal(1);
    expect((await log()).slice(3)).to.deep.equal(['low_ongoing_balance in_alarm 9.5']);
    expect(await look('2026-01-04')).to.equal(0);
    expect((await world.get(`/wallets/${wallet.id}`)).alert_state).to.equal('in_alarm');
  });

  it('credits that come clear both, each where it is compared', async () => {
    await put('60');
    expect((await log()).slice(4)).to.deep.equal(['low_credit_balance ok 108.5']);
    expect((await told('wallet.credit_balance')).map(({ event_type }) => event_type)).to.deep.equal([
      'wallet.credit_balance.dropped',
      'wallet.credit_balance.recovered',
    ]);
    expect((await world.get(`/wallets/${wallet.id}`)).alert_state).to.equal('in_alarm');
    expect(await look('2026-01-05')).to.equal(2);
    expect((await log()).slice(5)).to.have.members(['low_ongoing_balance ok 69.5', 'feature_wallet_balance ok 69.5']);
    expect((await world.get(`/wallets/${wallet.id}`)).alert_state).to.equal('ok');
    const { items } = await world.post('/alerts/search', {
      alert_type: 'feature_wallet_balance',
      expand: 'wallet,feature',
    });
    expect(items[0]!.wallet!.id).to.equal(wallet.id);
    expect(items[0]!.feature!.id).to.equal(feature.id);
  });

  it('levels that are changed are compared at once, and those of the environment are for wallets without', async () => {
    const change = async (alert_settings: object | null) => {
      const answer = await world.api.request('PUT', `/wallets/${wallet.id}`, { body: { alert_settings } });
      expect(answer.status, answer.text).to.equal(200);
      return answer.body;
    };
    const before = (await log()).length;
    expect((await change(below({ critical: '200' }))).alert_state).to.equal('in_alarm');
    expect((await log()).slice(before)).to.deep.equal(['low_credit_balance in_alarm 108.5']);
    expect((await change({ ...below({ critical: '200' }), alert_enabled: false })).alert_state).to.equal('ok');
    expect((await change(null)).alert_state).to.equal('ok');
    await world.api.request('PUT', '/settings/wallet_balance_alert_config', {
      body: { value: below({ critical: '108.5' }) },
    });
    await put('0.1');
    expect((await log()).slice(before + 1)).to.deep.equal([]);
    await take('0.1');
    expect((await log()).slice(before + 1)).to.deep.equal(['low_credit_balance in_alarm 108.5']);
  });

  it('parallel movements tell each change once', async () => {
    const before = (await log({ alert_type: 'low_credit_balance' })).length;
    await put('1000');
    await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        world.post(`/wallets/${wallet.id}/debit`, {
          credits: '50',
          transaction_reason: 'MANUAL_BALANCE_DEBIT',
          idempotency_key: `parallel ${index}`,
        }),
      ),
    );
    expect((await log({ alert_type: 'low_credit_balance' })).slice(before)).to.deep.equal([
      'low_credit_balance ok 1108.5',
      'low_credit_balance in_alarm 108.5',
    ]);
  });
  /** With 100 credits, and an alert below 10. */
  async function walletOf(external_id: string) {
    const { id: customer_id } = await world.post('/customers', { external_id });
    const alert_settings = below({ critical: '10' });
    return world.post('/wallets', { customer_id, currency: 'usd', alert_settings, initial_credits_to_load: '100' });
  }

  it('a look that waited for who changes the levels goes by the new ones', async () => {
    const { id, customer_id } = await walletOf('waits');
    const { services, scope } = world.api;
    let looked: Promise<number> | undefined;
    await services.postgres.transaction(async (transaction) => {
      const wallet = await WalletModel.fetch(scope, id, { database: transaction, lock: true });
      looked = checkWallets(services, scope, { customer_id, now: world.now });
      await until('it waits', async () => {
        const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%wallets%' and datname = current_database()`;
        return (await services.postgres.raw(waiting)).rows.length > 0;
      });
      const by = { user_id: '', now: world.now };
      await WalletModel.change(wallet, { alert_settings: below({ critical: '200' }) } as never, {
        by,
        database: transaction,
      });
    });
    const of_features = await world.post('/alerts/search', { customer_id, alert_type: 'feature_wallet_balance' });
    expect((await looked)! - of_features.items.length).to.equal(1);
    const { items } = await world.post('/alerts/search', { customer_id, alert_type: 'low_ongoing_balance' });
    expect(items.map((one) => one.alert_status)).to.deep.equal(['in_alarm']);
  });

  for (const [what, settle] of [
    [
      'paid',
      ({ id }) => world.api.request('PUT', `/invoices/${id}/payment`, { body: { payment_status: 'SUCCEEDED' } }),
    ],
    ['voided', ({ id }) => world.api.request('POST', `/invoices/${id}/void`, { body: {} })],
    [
      'credited by a note',
      ({ id: invoice_id, line_items: [line] }) => {
        const line_items = [{ invoice_line_item_id: line!.id, amount: '95' }];
        return world.api.request('POST', '/creditnotes', { body: { invoice_id, reason: 'BILLING_ERROR', line_items } });
      },
    ],
  ] as [string, (invoice: Invoice) => Promise<TestAnswer<unknown>>][])
    it(`an invoice that is ${what} asks for a look at what is left`, async () => {
      const { id: customer_id } = await world.post('/customers', { external_id: `owes ${what}` });
      const amounts = { subtotal: '95', total: '95', amount_due: '95' };
      const line_items = [{ display_name: 'once', amount: '95', quantity: '1' }];
      const invoice_type = 'ONE_OFF';
      const invoice = await world.post('/invoices', {
        customer_id,
        currency: 'usd',
        invoice_type,
        ...amounts,
        line_items,
      });
      await world.post(`/invoices/${invoice.id}/finalize`, {});
      const { id } = await world.post('/wallets', {
        customer_id,
        currency: 'usd',
        initial_credits_to_load: '100',
        alert_settings: below({ critical: '10' }),
        config: { allowed_price_types: ['ALL'] },
      });
      const { services, scope } = world.api;
      await checkWallets(services, scope, { customer_id, now: world.now });
      expect((await world.get(`/wallets/${id}`)).alert_state).to.equal('in_alarm');
      await services.postgres.raw('delete from graphile_worker._private_jobs');
      const settled = await settle(await world.get(`/invoices/${invoice.id}`));
      expect(settled.status, settled.text).to.be.within(200, 201);
      const keys = await services.postgres('graphile_worker.jobs').where('task_identifier', ALERT_TASK).select('key');
      expect(keys.map(({ key }) => key)).to.include(`alerts-invoice:${invoice.id}`);
      const [work] = createWork(services, () => world.now).filter(({ name }) => name === ALERT_TASK);
      const job = await services.postgres('graphile_worker._private_jobs').where('key', `alerts-invoice:${invoice.id}`);
      const turn = { attempt: 1, is_last: true, signal: AbortSignal.timeout(60_000) } as never;
      await work!.run(job[0].payload, turn);
      expect((await world.get(`/wallets/${id}`)).alert_state).to.equal('ok');
    });

  const at = (seconds: number) => ({ user_id: '', now: new Date(world.now.getTime() + seconds * 1000) });
  const taken = (key: string, credits: string) =>
    debitShape.parse({ credits, transaction_reason: 'MANUAL_BALANCE_DEBIT', idempotency_key: key });

  it('who asked before another, and moved behind it, is told behind it', async () => {
    const { id, customer_id } = await walletOf('held up');
    const { services, scope } = world.api;
    await debitWallet(services, scope, { id, request: taken('first', '95'), author: at(2) });
    const free = topUpShape.parse({ credits_to_add: '50', transaction_reason: 'FREE_CREDIT_GRANT' });
    await topUpWallet(services, scope, { id, request: free, author: at(1) });
    await debitWallet(services, scope, { id, request: taken('last', '51'), author: at(0) });
    for (const sort of ['created_at', 'id']) {
      const entries = await world.post('/alerts/search', { customer_id, sort, order: 'asc' });
      const told = entries.items.map((one) => `${one.alert_status} ${Number(one.alert_info.value_at_time)}`);
      expect(told, sort).to.deep.equal(['in_alarm 5', 'ok 55', 'in_alarm 4']);
    }
    const { items } = await world.get(`/wallets/${id}/transactions?sort=created_at&order=asc`);
    expect(items.map((one) => one.credit_balance_after)).to.deep.equal(['100', '5', '55', '4']);
  });

  it('however many are held up, none is told later than behind what they waited for; what another clock did is told when it was done', async () => {
    const { id } = await walletOf('held up together');
    const { services, scope } = world.api;
    const debit = (key: string, seconds: number) =>
      debitWallet(services, scope, { id, request: taken(key, '1'), author: at(seconds) });
    await debit('ahead', 2);
    await Promise.all(Array.from({ length: 30 }, (_, n) => debit(`behind ${n}`, n % 2)));
    const after = world.now.getTime() + 2000;
    const rows = await services.postgres('wallet_transactions').where({ wallet_id: id, type: 'debit' });
    const instants = rows.map(({ created_at }) => new Date(created_at).getTime());
    expect(Math.min(...instants)).to.equal(after);
    // One millisecond for each time that the wallet was held, whatever was debited then.
    expect(Math.max(...instants)).to.be.within(after + 1, after + 15);
    await debit('another clock', -3600);
    const last = await services.postgres('wallet_transactions').where({ idempotency_key: 'another clock' }).first();
    expect(new Date(last.created_at)).to.deep.equal(at(-3600).now);
  });

  for (const name of NAMES)
    it(`${name} has a body that stays`, async () => {
      const [body] = await told(name);
      expectGolden(`webhooks/${name}.json`, withoutIds(body));
    });
});

describe('scenario: the levels of an environment', () => {
  it('are gone by within seconds, by all wallets that have none of their own, when they are set, changed or switched off', async () => {
    const world = await startWorld();
    try {
      const { services } = world.api;
      const wallets = await Promise.all(
        Array.from({ length: 6 }, async (_, n) => {
          const { id: customer_id } = await world.post('/customers', { external_id: `customer ${n}` });
          return world.post('/wallets', { customer_id, currency: 'usd', initial_credits_to_load: '5' });
        }),
      );
      const last = wallets.toSorted((a, b) => (a.id < b.id ? -1 : 1)).at(-1)!;
      // With 95 empty copies, whose ids come first, there are more wallets than one job checks.
      for (const [table, id, own] of [
        ['customers', last.customer_id, `'id', 'cust_00' || n, 'external_id', 'copy ' || n`],
        [
          'wallets',
          last.id,
          `'id', 'wallet_00' || n, 'customer_id', 'cust_00' || n, 'balance', 0, 'credit_balance', 0`,
        ],
      ])
        await services.postgres.raw(
          `insert into ${table} select (jsonb_populate_record(${table}, jsonb_build_object(${own}))).*
             from ${table}, generate_series(1, 95) n where id = ?`,
          [id!],
        );
      const [work] = createWork(services, () => world.now).filter(({ name }) => name === ALERT_TASK);
      const set = async (body: object | null) => {
        await services.postgres.raw('delete from graphile_worker._private_jobs');
        const method = body === null ? 'DELETE' : 'PUT';
        const sent = body === null ? {} : { body: { value: body } };
        const answer = await world.api.request(method, '/settings/wallet_balance_alert_config', sent);
        expect(answer.status, answer.text).to.equal(200);
        for (;;) {
          const [job] = await services.postgres('graphile_worker._private_jobs').select('id', 'payload').limit(1);
          if (!job) break;
          await services.postgres('graphile_worker._private_jobs').where({ id: job.id }).delete();
          await work!.run(job.payload, { attempt: 1, is_last: true, signal: AbortSignal.timeout(60_000) } as never);
        }
        const states = await services.postgres('wallets').where('wallet_status', 'active').distinct('alert_state');
        const { items } = await world.post('/alerts/search', {
          customer_id: last.customer_id,
          sort: 'id',
          order: 'asc',
        });
        const log = items.map(({ alert_type, alert_status }) => `${alert_type} ${alert_status}`);
        return { states: states.map(({ alert_state }) => alert_state), log };
      };
      const told = ['low_credit_balance in_alarm', 'low_ongoing_balance in_alarm'];
      expect(await set(below({ critical: '10' }))).to.deep.equal({ states: ['in_alarm'], log: told });
      // The other changes check six wallets: one job is enough to see their effect.
      const few = wallets.map(({ id }) => id);
      await services.postgres('wallets').whereNotIn('id', few).update({ wallet_status: 'closed' });
      const warned = [...told, 'low_credit_balance warning', 'low_ongoing_balance warning'];
      expect(await set(below({ critical: '1', warning: '10' }))).to.deep.equal({ states: ['warning'], log: warned });
      expect(await set(null)).to.deep.equal({ states: ['ok'], log: warned });
    } finally {
      await world.stop();
    }
  });
});

describe('scenario: alerts on balances by the clock of an environment', () => {
  it('credits that expire, or come, are looked at the midnight after, as usage is', async () => {
    const world = await startWorld({ now: '2026-03-01T00:00:00Z', test_clock: true });
    try {
      await world.meter('calls');
      await world.plan('Calls', [usage('calls', '1', { display_name: 'calls' })]);
      const { customer_id } = await world.subscribe('acme', 'Calls');
      const settings = { alert_settings: below({ critical: '5' }) };
      const { id } = await world.post('/wallets', { customer_id, currency: 'usd', ...settings });
      const fill = (credits_to_add: string, fields: object = {}) =>
        world.post(`/wallets/${id}/top-up`, { credits_to_add, transaction_reason: 'FREE_CREDIT_GRANT', ...fields });
      await fill('100', { expiry_date_utc: '2026-03-15T00:00:00Z' });
      await fill('50');
      await world.send([world.event('acme', 'calls', { n: 48, at: '2026-03-02T00:00:00Z' })]);
      await world.on('2026-03-30');
      const told = async () =>
        (await world.post('/alerts/search', { customer_id, sort: 'id', order: 'asc' })).items
          .filter(({ alert_type }) => alert_type === 'low_ongoing_balance')
          .map(({ alert_status, created_at }) => `${alert_status} ${created_at.slice(0, 10)}`);
      expect(await told()).to.deep.equal(['in_alarm 2026-03-16']);
      await fill('50');
      await world.on('2026-04-01');
      expect((await told()).at(-1)).to.equal('ok 2026-03-31');
    } finally {
      await world.stop();
    }
  });
});
