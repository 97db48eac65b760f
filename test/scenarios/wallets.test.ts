/** Prepaid credits lower invoices when they become final; what is given back goes to the lots from which it came (docs/rules/wallets.md). */
import { expect } from 'chai';
import { expireCredits } from '../../actions/credits/wallets/expire-credits.ts';
import { auditCredits } from '../../actions/operations/audit/credits.ts';
import { prepaid, startPrepaidWorld } from '../support/prepaid.ts';
import { startWorld, type World } from '../support/world.ts';

describe('scenario: prepaid credits', () => {
  let world: World;
  before(async () => {
    world = await startPrepaidWorld();
  });
  after(() => world.stop());

  const { ok, topUp, january, finalOf, purseOf, oneOff } = prepaid(() => world);
  const left = async (id: string): Promise<Record<string, string>> => {
    const { items } = await world.get(`/wallets/${id}/transactions?type=credit&limit=100`);
    return Object.fromEntries(items.map((one) => [one.id, one.credits_available]));
  };

  it('pay usage, as the preview says; void gives each lot its own back; billed again they pay again', async () => {
    let soon = '';
    let never = '';
    const wallet = await january('acme', async (id) => {
      never = await topUp(id, '60');
      soon = await topUp(id, '40', { expiry_date_utc: '2026-02-10T00:00:00Z' });
      await topUp(id, '1000', { expiry_date_utc: '2026-01-20T00:00:00Z' });
    });
    world.at('2026-01-31T00:00:00Z');
    const preview = await ok('POST', '/invoices/preview', { subscription_id: world.id('subscription acme') });
    const balance = await world.get(`/wallets/${wallet.id}/balance/real-time`);
    expect(balance).to.include({ balance: '1100', real_time_balance: '980', current_period_usage: '120' });
    await world.on('2026-02-01');
    const final = await finalOf('acme');
    for (const invoice of [preview, final]) {
      expect(invoice).to.include({
        subtotal: '170',
        total_prepaid_credits_applied: '100',
        total: '70',
        amount_due: '70',
      });
      const applied = invoice.line_items.map((line) => [line.display_name, line.prepaid_credits_applied]);
      expect(Object.fromEntries(applied)).to.deep.equal({ calls: '100', base: '0' });
    }
    expect(await left(wallet.id)).to.include({ [soon]: '0', [never]: '0' });
    const { items } = await world.get(`/wallets/${wallet.id}/transactions?transaction_reason=CREDIT_ADJUSTMENT`);
    expect(items).to.have.length(1);
    expect(items[0]).to.include({ amount: '100', reference_type: 'INVOICE', reference_id: final.id });
    expect(items[0]!.metadata!.consumed_credit_tx_ids).to.equal(`${soon},${never}`);

    await ok('POST', `/invoices/${final.id}/void`);
    expect(await left(wallet.id)).to.include({ [soon]: '40', [never]: '60' });
    const again = await ok('POST', `/invoices/${final.id}/recalculate?finalize=true`);
    expect(again).to.include({ total_prepaid_credits_applied: '100', total: '70' });
    expect(await left(wallet.id)).to.include({ [soon]: '0', [never]: '0' });
  });

  it('what a void has given back pays when the period is billed again, until the next period begins', async () => {
    let lot = '';
    const wallet = await january('voided', async (id) => {
      lot = await topUp(id, '40', { expiry_date_utc: '2026-02-01T02:30:00Z' });
    });
    await world.on('2026-02-01');
    const final = await finalOf('voided');
    expect(final.total_prepaid_credits_applied).to.equal('40');
    world.at('2026-02-01T03:00:00Z');
    await ok('POST', `/invoices/${final.id}/void`);
    const expire = () => expireCredits(world.api.services, { now: world.now });
    await world.on('2026-02-20', expire);
    expect(await left(wallet.id)).to.include({ [lot]: '40' });
    const again = await ok('POST', `/invoices/${final.id}/recalculate?finalize=true`);
    expect(again).to.include({ total: final.total, total_prepaid_credits_applied: '40' });

    await ok('POST', `/invoices/${again.id}/void`);
    await world.on('2026-03-01', expire);
    expect(await left(wallet.id)).to.include({ [lot]: '0' });
    const { items } = await world.get(`/wallets/${wallet.id}/transactions?transaction_reason=CREDIT_EXPIRED`);
    expect(items.map((one) => one.credit_amount)).to.deep.equal(['40']);
  });

  it('credits that expire with the period wait for its invoice, also while that is a draft, and what it leaves of them expires', async () => {
    let lot = '';
    const wallet = await january('expiring', async (id) => {
      lot = await topUp(id, '200', { expiry_date_utc: '2026-02-01T00:00:00Z' });
      await topUp(id, '7', { expiry_date_utc: '2026-01-31T23:59:59Z' });
    });
    const expire = () => expireCredits(world.api.services, { now: world.now });
    const realTime = () => world.get(`/wallets/${wallet.id}/balance/real-time`);
    world.at('2026-02-01T00:05:00Z');
    await expire();
    // What expired within the period pays nothing of it.
    expect(Object.values(await left(wallet.id)).sort()).to.deep.equal(['0', '200']);
    await world.bill();
    await expire();
    expect((await left(wallet.id))[lot]).to.equal('200');
    // The draft will be paid: what it charges for usage is spent already.
    expect(await realTime()).to.include({
      balance: '200',
      unpaid_invoices_amount: '120',
      current_period_usage: '0',
      real_time_balance: '80',
    });
    const final = await finalOf('expiring');
    expect(final.total_prepaid_credits_applied).to.equal('120');
    expect((await left(wallet.id))[lot]).to.equal('80');
    await expire();
    expect((await left(wallet.id))[lot]).to.equal('0');
    const { items } = await world.get(`/wallets/${wallet.id}/transactions?transaction_reason=CREDIT_EXPIRED`);
    expect(items.map((one) => one.credit_amount)).to.have.members(['7', '80']);
  });

  it('a wallet for all prices pays all of it: nothing remains, and a refund goes back to its lots', async () => {
    let lot = '';
    const config = { allowed_price_types: ['ALL'] };
    const wallet = await january('all', async (id) => void (lot = await topUp(id, '200')), {
      config,
      conversion_rate: '2',
    });
    await world.on('2026-02-01');
    const final = await finalOf('all');
    expect(final).to.include({ total_prepaid_credits_applied: '170', total: '0', payment_status: 'SUCCEEDED' });
    expect(await left(wallet.id)).to.deep.equal({ [lot]: '115' });
    const line = final.line_items.find(({ display_name }) => display_name === 'base');
    const line_items = [{ invoice_line_item_id: line!.id, amount: '20' }];
    await ok('POST', '/creditnotes', { invoice_id: final.id, reason: 'SERVICE_ISSUE', line_items });
    expect((await left(wallet.id))[lot]).to.equal('125');
    await ok('POST', `/invoices/${final.id}/void`);
    expect(await left(wallet.id)).to.include({ [lot]: '200' });
    expect((await world.get(`/wallets/${wallet.id}`)).balance).to.equal('400');
  });

  it('what was paid beside credits goes into the wallet as a credit of its own', async () => {
    let lot = '';
    const wallet = await january('both', async (id) => void (lot = await topUp(id, '30')));
    await world.on('2026-02-01');
    const final = await finalOf('both');
    expect(final.amount_due).to.equal('140');
    await ok('PUT', `/invoices/${final.id}/payment`, { payment_status: 'SUCCEEDED' });
    await ok('POST', `/invoices/${final.id}/void`);
    const after = await left(wallet.id);
    expect(after[lot]).to.equal('30');
    expect(Object.values(after).sort()).to.deep.equal(['0', '140', '30']);
    expect((await world.get(`/wallets/${wallet.id}`)).balance).to.equal('170');
  });

  const debit = (id: string, credits: string, idempotency_key: string, fields: object = {}) =>
    world.api.request('POST', `/wallets/${id}/debit`, {
      body: { credits, transaction_reason: 'MANUAL_BALANCE_DEBIT', idempotency_key, ...fields },
    });

  it('a key that means something else refuses the debit that says it, and none of those beside it', async () => {
    const wallet = await purseOf('many');
    await topUp(wallet.id, '1000', { idempotency_key: 'taken' });
    const keys = Array.from({ length: 20 }, (_, index) => (index === 10 ? 'taken' : `many-${index}`));
    const answers = await Promise.all(keys.map((key) => debit(wallet.id, '1', key)));
    expect(keys.filter((_, index) => answers[index]!.status !== 200)).to.deep.equal(['taken']);
    expect(answers[10]!.status).to.equal(409);
    expect((await world.get(`/wallets/${wallet.id}`)).balance).to.equal('981');
  });

  it('credits that come back pay first what is owed, and go back once', async () => {
    const wallet = await purseOf('owing');
    const lot = await topUp(wallet.id, '10');
    const invoice = await oneOff(wallet, '10');
    expect(invoice.total_prepaid_credits_applied).to.equal('10');
    expect((await debit(wallet.id, '6', 'owing', { allow_negative: true })).status).to.equal(200);
    await ok('POST', `/invoices/${invoice.id}/void`);
    expect(await left(wallet.id)).to.include({ [lot]: '4' });
    expect(await world.get(`/wallets/${wallet.id}`)).to.include({ balance: '4', credits_owed: '0' });
    expect((await oneOff(wallet, '10')).total_prepaid_credits_applied).to.equal('4');
    const differences: unknown[] = [];
    await auditCredits(world.api.services, (finding) => differences.push(finding));
    expect(differences).to.deep.equal([]);
  });

  it('what was bought with an invoice is compared with the alert of its wallet when it comes', async () => {
    const alert_settings = { alert_enabled: true, critical: { threshold: '10' } };
    const wallet = await purseOf('alarmed', { alert_settings });
    await topUp(wallet.id, '50');
    expect((await debit(wallet.id, '45', 'alarmed')).status).to.equal(200);
    expect((await world.get(`/wallets/${wallet.id}`)).alert_state).to.equal('in_alarm');
    const bought = await ok('POST', `/wallets/${wallet.id}/top-up`, {
      credits_to_add: '100',
      transaction_reason: 'PURCHASED_CREDIT_INVOICED',
    });
    await ok('PUT', `/invoices/${bought.invoice_id}/payment`, { payment_status: 'SUCCEEDED', amount: '100' });
    expect(await world.get(`/wallets/${wallet.id}`)).to.include({ balance: '105', alert_state: 'ok' });
  });

  it('a debit that was done is answered so after the wallet was closed', async () => {
    const wallet = await purseOf('closing', { initial_credits_to_load: '10' });
    const first = await debit(wallet.id, '4', 'closing');
    await ok('POST', `/wallets/${wallet.id}/terminate`);
    const again = await debit(wallet.id, '4', 'closing');
    expect([again.status, again.body.wallet_transaction.id]).to.deep.equal([200, first.body.wallet_transaction.id]);
    expect((await debit(wallet.id, '4', 'another')).status).to.equal(400);
  });
});

describe('scenario: wallets by a clock', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z', test_clock: true });
  });
  after(() => world.stop());

  it('credits expire at their instant, and a wallet fills itself when a day begins', async () => {
    await world.customer('acme');
    const post = async <Path extends string>(path: Path, body: object) =>
      (await world.api.request('POST', path, { body })).body;
    const auto_topup = { threshold: '5', amount: '20', invoicing: false, cooldown: { value: 30, unit: 'day' } };
    const purse = { external_customer_id: 'acme', currency: 'usd', auto_topup };
    const wallet = await post('/wallets', purse);
    const free = { transaction_reason: 'FREE_CREDIT_GRANT', expiry_date_utc: '2026-01-10T06:00:00Z' };
    await post(`/wallets/${wallet.id}/top-up`, { credits_to_add: '8', ...free });
    await world.on('2026-01-20');
    const { items } = await world.get(`/wallets/${wallet.id}/transactions?order=asc&sort=created_at`);
    const told = items.map((one) => [one.created_at, one.transaction_reason, one.credit_balance_after]);
    expect(told).to.deep.equal([
      ['2026-01-01T00:00:00Z', 'FREE_CREDIT_GRANT', '8'],
      ['2026-01-10T06:00:00.001Z', 'CREDIT_EXPIRED', '0'],
      ['2026-01-11T00:00:00Z', 'PURCHASED_CREDIT_DIRECT', '20'],
    ]);
  });
});
