/** Wallets as a client sees them (docs/rules/wallets.md). */
import { expect } from 'chai';
import { expireCredits } from '../../../actions/credits/wallets/expire-credits.ts';
import type { Wallet } from '../../support/answers.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

describe('/wallets', () => {
  let api: TestApi;
  let count = 0;

  before(async () => {
    api = await startTestApi({ now: '2026-03-15T12:00:00Z' });
  });
  after(() => api.stop());

  const send = <Method extends string, Path extends string>(method: Method, path: Path, body?: object, key = api.key) =>
    api.request(method, path, body === undefined ? { key } : { body, key });
  async function ok<Method extends string, Path extends string>(
    method: Method,
    path: Path,
    body?: object,
    key?: string,
  ) {
    const answer = await send(method, path, body, key);
    expect(answer.status, `${method} ${path}: ${answer.text}`).to.be.within(200, 299);
    return answer.body;
  }
  async function refused<Path extends string>(status: number, path: Path, body: object, method = 'POST') {
    const answer = await send(method, path, body);
    expect(answer.status, answer.text).to.equal(status);
    return answer.body;
  }
  async function walletOf(fields: object = {}) {
    const external_customer_id = `customer ${++count}`;
    await ok('POST', '/customers', { external_id: external_customer_id });
    return ok('POST', '/wallets', { external_customer_id, currency: 'USD', ...fields });
  }
  const topUp = (id: string, fields: object) =>
    ok('POST', `/wallets/${id}/top-up`, { transaction_reason: 'FREE_CREDIT_GRANT', ...fields });
  const debitBody = (credits: string, key: string, fields: object = {}) => ({
    credits,
    transaction_reason: 'MANUAL_BALANCE_DEBIT',
    idempotency_key: key,
    ...fields,
  });
  const transactions = async (id: string, query = '') =>
    (await ok('GET', `/wallets/${id}/transactions?limit=1000&${query}`)).items;

  it('200 made with what it is counted in, and with initial credits', async () => {
    const wallet = await walletOf({ conversion_rate: '0.5', initial_credits_to_load: '100', metadata: { deal: '7' } });
    expect(wallet).to.include({
      currency: 'usd',
      name: 'Prepaid wallet, USD',
      wallet_type: 'PRE_PAID',
      wallet_status: 'active',
      balance: '50',
      credit_balance: '100',
      conversion_rate: '0.5',
      topup_conversion_rate: '0.5',
    });
    expect(wallet.config).to.deep.equal({ allowed_price_types: ['USAGE'] });
    expect(await ok('GET', `/wallets/${wallet.id}`)).to.deep.equal(wallet);
    const [first] = await transactions(wallet.id);
    expect(first).to.include({ type: 'credit', credit_amount: '100', transaction_reason: 'FREE_CREDIT_GRANT' });
  });

  it('what begins with nothing has reached its levels', async () => {
    const alert_settings = { alert_enabled: true, critical: { threshold: '10', condition: 'below' } };
    const wallet = await walletOf({ alert_settings });
    expect(wallet.alert_state).to.equal('in_alarm');
    const { items } = await ok('POST', '/alerts/search', { entity_id: wallet.id });
    expect(items.map((one) => [one.alert_type, one.alert_status])).to.deep.equal([['low_credit_balance', 'in_alarm']]);
  });

  it('a price unit says currency and rate', async () => {
    const unit = { name: 'Tokens', code: 'tok', symbol: 'T', base_currency: 'eur', conversion_rate: '0.01' };
    await ok('POST', '/prices/units', unit);
    for (const fields of [{}, { conversion_rate: '1' }, { conversion_rate: '0.010' }])
      expect(await walletOf({ price_unit: 'TOK', currency: 'EUR', ...fields })).to.include({
        currency: 'eur',
        conversion_rate: '0.01',
        price_unit: 'tok',
      });
  });

  it('400 for what a price unit says otherwise', async () => {
    const unit = { name: 'Beads', code: 'bead', symbol: 'B', base_currency: 'eur', conversion_rate: '0.02' };
    await ok('POST', '/prices/units', unit);
    await ok('POST', '/customers', { external_id: 'by the bead' });
    const make = { external_customer_id: 'by the bead', price_unit: 'bead', currency: 'eur' };
    const faults: [object, string][] = [
      [{ currency: 'usd' }, 'currency'],
      [{ conversion_rate: '3' }, 'conversion_rate'],
    ];
    for (const [fields, field] of faults)
      expect((await refused(400, '/wallets', { ...make, ...fields })).details?.field).to.equal(field);
    expect(await ok('POST', '/wallets', make)).to.include({ currency: 'eur' });
  });

  it('400 for the ids of two customers, 404 for those of nobody', async () => {
    const [one, other] = [await walletOf(), await walletOf()];
    const make = { currency: 'eur', customer_id: one.customer_id };
    const { external_id } = await ok('GET', `/customers/${other.customer_id}`);
    const answer = await refused(400, '/wallets', { ...make, external_customer_id: external_id });
    expect(answer.details?.field).to.equal('external_customer_id');
    const own = await ok('GET', `/customers/${one.customer_id}`);
    expect(await ok('POST', '/wallets', { ...make, external_customer_id: own.external_id })).to.include(make);
    await refused(404, '/wallets', { currency: 'eur', external_customer_id: 'nobody' });
    await refused(404, '/wallets', { currency: 'eur', customer_id: 'cust_nobody' });
  });

  it('an error tells instants as text', async () => {
    const { id } = await walletOf();
    const expiry = {
      credits_to_add: '1',
      transaction_reason: 'FREE_CREDIT_GRANT',
      expiry_date_utc: '2020-01-01T00:00:00Z',
    };
    const { details } = await refused(400, `/wallets/${id}/top-up`, expiry);
    expect(details).to.deep.equal({ field: 'expiry_date_utc', now: '2026-03-15T12:00:00Z' });
  });

  it('listed by whether alerts are on: by its own settings, or by those of the environment', async () => {
    const { key } = await api.otherTenant();
    const make = async (name: string, alert_settings: object | null) => {
      await ok('POST', '/customers', { external_id: name }, key);
      await ok('POST', '/wallets', { external_customer_id: name, currency: 'usd', name, alert_settings }, key);
    };
    const critical = { threshold: '5', condition: 'below' };
    await make('on', { alert_enabled: true, critical });
    await make('off', { alert_enabled: false, critical });
    await make('none', null);
    const named = async (enabled: boolean) => {
      const { items } = await ok('GET', `/wallets?alert_enabled=${enabled}&sort=name&order=asc`, undefined, key);
      const found = await ok(
        'POST',
        '/wallets/search',
        { alert_enabled: enabled, sort: [{ field: 'name', direction: 'asc' }] },
        key,
      );
      expect(found.items).to.deep.equal(items);
      return items.map((wallet) => wallet.name);
    };
    expect([await named(true), await named(false)]).to.deep.equal([['on'], ['none', 'off']]);
    await ok('PUT', '/settings/wallet_balance_alert_config', { value: { alert_enabled: true, critical } }, key);
    expect([await named(true), await named(false)]).to.deep.equal([['none', 'on'], ['off']]);
  });

  it('400 names the field at fault, 404 and 409', async () => {
    await walletOf();
    const external_customer_id = `customer ${count}`;
    const make = { external_customer_id, currency: 'eur' };
    const faults: [object, string][] = [
      [{ currency: 'usd' }, 'customer_id'],
      [{ ...make, currency: 'xxx' }, 'currency'],
      [{ ...make, conversion_rate: '0' }, 'conversion_rate'],
      [{ ...make, initial_credits_to_load: '-1' }, 'initial_credits_to_load'],
      [{ ...make, initial_credits_to_load: '0.1234567890123' }, 'initial_credits_to_load'],
      [{ ...make, initial_credits_expiry_date_utc: '2026-03-15T12:00:00Z' }, 'initial_credits_expiry_date_utc'],
      [{ ...make, initial_credits_to_load_expiry_date: 20260231 }, 'initial_credits_to_load_expiry_date'],
      [{ ...make, auto_topup: { threshold: '-1', amount: '1', invoicing: true } }, 'auto_topup.threshold'],
      [{ ...make, auto_topup: { threshold: '1', amount: '0', invoicing: true } }, 'auto_topup.amount'],
      // An invoice over nothing.
      [{ ...make, auto_topup: { threshold: '1', amount: '0.001', invoicing: true } }, 'auto_topup.amount'],
    ];
    for (const [body, field] of faults)
      expect((await refused(400, '/wallets', body)).details?.field, JSON.stringify(body)).to.equal(field);
    await refused(400, '/wallets', { ...make, auto_topup: { threshold: '1', amount: '1' } });
    expect((await refused(409, '/wallets', { external_customer_id, currency: 'usd' })).code).to.equal('already_exists');
    await refused(404, '/wallets/wallet_none/debit', debitBody('1', 'k'));
  });

  it('two requests at once make one wallet', async () => {
    await ok('POST', '/customers', { external_id: 'at once' });
    const body = { external_customer_id: 'at once', currency: 'usd' };
    const answers = await Promise.all(Array.from({ length: 6 }, () => send('POST', '/wallets', body)));
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, 409, 409, 409, 409, 409]);
  });

  it('a top-up by credits or by an amount; a key that comes again is answered as the first time', async () => {
    const { id } = await walletOf({ conversion_rate: '2', topup_conversion_rate: '4' });
    const body = { amount: '10', transaction_reason: 'PURCHASED_CREDIT_DIRECT', idempotency_key: 'a', priority: 1 };
    const first = await ok('POST', `/wallets/${id}/top-up`, body);
    expect(first.wallet_transaction).to.include({
      credit_amount: '2.5',
      amount: '5',
      priority: 1,
      credits_available: '2.5',
    });
    expect(first.wallet).to.include({ credit_balance: '2.5', balance: '5' });
    await topUp(id, { credits_to_add: '1', amount: '99' });
    await ok('POST', `/wallets/${id}/debit`, debitBody('2', 'behind a'));
    const again = await ok('POST', `/wallets/${id}/top-up`, body);
    expect(again.wallet_transaction).to.deep.equal(first.wallet_transaction);
    expect(again.wallet).to.include({ credit_balance: '2.5', balance: '5' });
    expect((await ok('GET', `/wallets/${id}`)).credit_balance).to.equal('1.5');
  });

  it('with its bonus, and what it paid back of what was owed, too', async () => {
    const { id } = await walletOf();
    await ok('POST', `/wallets/${id}/debit`, { ...debitBody('4', 'owed before b'), allow_negative: true });
    const body = {
      credits_to_add: '10',
      bonus_credits_to_add: '3',
      transaction_reason: 'PURCHASED_CREDIT_DIRECT',
      idempotency_key: 'b',
    };
    const first = await ok('POST', `/wallets/${id}/top-up`, body);
    expect(first.wallet).to.include({ credit_balance: '9' });
    expect(first.wallet_transaction).to.include({ credits_available: '6' });
    await ok('POST', `/wallets/${id}/debit`, debitBody('8', 'behind b'));
    const again = await ok('POST', `/wallets/${id}/top-up`, body);
    expect(again.wallet).to.include({ credit_balance: '9' });
    expect(again.wallet_transaction).to.deep.equal(first.wallet_transaction);
  });

  it('409 a key of another wallet, for another reason or number of credits, of top-ups and debits alike', async () => {
    const { id: other } = await walletOf({ initial_credits_to_load: '50' });
    const { id } = await walletOf({ initial_credits_to_load: '50' });
    const body = { credits_to_add: '10', transaction_reason: 'PURCHASED_CREDIT_DIRECT', idempotency_key: 'c' };
    await ok('POST', `/wallets/${id}/top-up`, body);
    await ok('POST', `/wallets/${id}/debit`, debitBody('5', 'd'));
    for (const [path, asked] of [
      [`/wallets/${other}/top-up`, body],
      [`/wallets/${id}/top-up`, { ...body, transaction_reason: 'FREE_CREDIT_GRANT' }],
      [`/wallets/${id}/top-up`, { ...body, credits_to_add: '999' }],
      [`/wallets/${other}/debit`, debitBody('5', 'd')],
      [`/wallets/${id}/debit`, debitBody('7', 'd')],
    ] as const) {
      const refusal = await refused(409, path, asked);
      expect([refusal.code, refusal.details!.field], JSON.stringify(asked)).to.deep.equal([
        'already_exists',
        'idempotency_key',
      ]);
    }
    const at_once = await Promise.all(
      ['1', '2', '1', '2'].map((n) => send('POST', `/wallets/${id}/debit`, debitBody(n, 'e'))),
    );
    expect(at_once.map(({ status }) => status).sort()).to.deep.equal([200, 200, 409, 409]);
  });

  it('400 a top-up names the field at fault', async () => {
    const { id } = await walletOf();
    const free = { credits_to_add: '1', transaction_reason: 'FREE_CREDIT_GRANT' };
    const faults: [object, string][] = [
      [{ transaction_reason: 'FREE_CREDIT_GRANT' }, 'credits_to_add'],
      [{ ...free, credits_to_add: '0' }, 'credits_to_add'],
      [{ amount: '0.001', transaction_reason: 'FREE_CREDIT_GRANT' }, 'amount'],
      [{ ...free, transaction_reason: 'INVOICE_PAYMENT' }, 'transaction_reason'],
      [{ ...free, expiry_date_utc: '2026-03-15T11:00:00Z' }, 'expiry_date_utc'],
      [{ ...free, priority: -1 }, 'priority'],
      [{ ...free, bonus_credits_to_add: '5' }, 'bonus_credits_to_add'],
      [{ ...free, checkout: { payment_provider: 'stripe' } }, 'checkout'],
    ];
    for (const [body, field] of faults)
      expect((await refused(400, `/wallets/${id}/top-up`, body)).details?.field, JSON.stringify(body)).to.equal(field);
    expect((await ok('GET', `/wallets/${id}`)).credit_balance).to.equal('0');
  });

  it('credits that are bought with an invoice come when it is paid, once', async () => {
    const { id } = await walletOf();
    const body = { credits_to_add: '50', transaction_reason: 'PURCHASED_CREDIT_INVOICED', bonus_credits_to_add: '5' };
    const bought = await ok('POST', `/wallets/${id}/top-up`, { ...body, idempotency_key: 'bought' });
    expect(bought.wallet_transaction).to.include({ transaction_status: 'pending', credits_available: '0' });
    expect(bought.wallet!.credit_balance).to.equal('0');
    const invoice = await ok('GET', `/invoices/${bought.invoice_id}`);
    expect(invoice).to.include({ invoice_status: 'FINALIZED', amount_due: '50', invoice_type: 'ONE_OFF' });
    expect((await refused(400, `/wallets/${id}/terminate`, {})).details!.invoice_id).to.equal(invoice.id);
    const paid = Array.from({ length: 5 }, () =>
      send('PUT', `/invoices/${invoice.id}/payment`, { payment_status: 'SUCCEEDED', amount: '50' }),
    );
    await Promise.all(paid);
    expect((await ok('GET', `/wallets/${id}`)).credit_balance).to.equal('55');
    const [bonus, credits] = (await transactions(id, 'sort=id&order=desc')).map((one) => one);
    expect(credits).to.include({
      id: bought.wallet_transaction!.id,
      transaction_status: 'completed',
      credits_available: '50',
    });
    expect(bonus).to.include({ transaction_reason: 'PURCHASED_CREDIT_BONUS', parent_transaction_id: credits!.id });
    // What it bought is in the wallet: its money does not go there, too.
    expect((await refused(400, `/invoices/${invoice.id}/void`, {})).message).to.contain('in a wallet already');
    const [line] = invoice.line_items;
    const note = {
      invoice_id: invoice.id,
      reason: 'ORDER_CHANGE',
      line_items: [{ invoice_line_item_id: line!.id, amount: '1' }],
    };
    expect((await refused(400, '/creditnotes', note)).message).to.contain('in a wallet already');
  });

  it('of an invoice that is void they do not come; a setting takes it for paid', async () => {
    const { id } = await walletOf();
    const body = { amount: '9.99', transaction_reason: 'PURCHASED_CREDIT_INVOICED' };
    const { invoice_id } = await ok('POST', `/wallets/${id}/top-up`, body);
    await ok('POST', `/invoices/${invoice_id}/void`, {});
    expect((await transactions(id)).map((one) => one.transaction_status)).to.deep.equal(['failed']);
    const setting = (value: object) => ok('PUT', '/settings/invoice_config', { value });
    await setting({ auto_complete_purchased_credit_transaction: true });
    const at_once = await ok('POST', `/wallets/${id}/top-up`, body);
    await setting({ auto_complete_purchased_credit_transaction: null });
    expect(at_once.wallet!.credit_balance).to.equal('9.99');
    expect(await ok('GET', `/invoices/${at_once.invoice_id}`)).to.include({
      payment_status: 'SUCCEEDED',
      amount_paid: '9.99',
    });
  });

  it('a debit says of which credits; one key is one debit, answered for ever as the first time', async () => {
    const { id } = await walletOf();
    const first = (await topUp(id, { credits_to_add: '30', priority: 1 })).wallet_transaction!.id;
    const second = (await topUp(id, { credits_to_add: '70' })).wallet_transaction!.id;
    const debited = await ok('POST', `/wallets/${id}/debit`, debitBody('40', 'd1', { metadata: { job: '17' } }));
    expect(debited).to.include({ id, credit_balance: '60', balance: '60' });
    expect(debited.wallet_transaction.metadata).to.deep.equal({
      job: '17',
      consumed_credit_tx_ids: `${first},${second}`,
      consumed_credits: '30,10',
    });
    await ok('POST', `/wallets/${id}/debit`, debitBody('10', 'd2'));
    const again = await ok('POST', `/wallets/${id}/debit`, debitBody('40', 'd1'));
    expect(again).to.include({ credit_balance: '60', balance: '60' });
    expect(again.wallet_transaction).to.deep.equal(debited.wallet_transaction);
    expect((await ok('GET', `/wallets/${id}`)).credit_balance).to.equal('50');
  });

  it('400 too few credits: nothing changes, unless it may go below 0', async () => {
    const { id } = await walletOf({ initial_credits_to_load: '10' });
    const few = await refused(400, `/wallets/${id}/debit`, debitBody('10.5', 'few'));
    expect(few).to.include({ code: 'invalid_operation' });
    expect(few.details!.credits_available).to.equal('10');
    expect((await refused(400, `/wallets/${id}/debit`, debitBody('0', 'none'))).details!.field).to.equal('credits');
    const owing = await ok('POST', `/wallets/${id}/debit`, debitBody('12', 'few', { allow_negative: true }));
    expect(owing).to.include({ credit_balance: '-2', credits_owed: '2' });
    expect((await topUp(id, { credits_to_add: '5' })).wallet).to.include({ credit_balance: '3', credits_owed: '0' });
  });

  for (const [credits, taken, left] of [
    ['25', 25, '0'],
    ['100', 40, '60'],
  ] as const)
    it(`parallel debits of ${credits} credits never take more than there is, and each key takes once`, async () => {
      const { id } = await walletOf({ initial_credits_to_load: credits });
      const keys = Array.from({ length: 40 }, (_, index) => `p${index} of ${credits}`);
      const answers = await Promise.all(
        [...keys, ...keys].map((key) => send('POST', `/wallets/${id}/debit`, debitBody('1', key))),
      );
      const refusals = answers.filter(({ status }) => status !== 200).map(({ body }) => body.code);
      expect(new Set(refusals)).to.deep.equal(new Set(taken < 40 ? ['invalid_operation'] : []));
      const done = answers.filter(({ status }) => status === 200).map(({ body }) => body.wallet_transaction.id);
      expect(new Set(done).size).to.equal(taken);
      expect((await ok('GET', `/wallets/${id}`)).credit_balance).to.equal(left);
      expect(await transactions(id, 'type=debit')).to.have.length(taken);
    });

  it('closes, writes off what is in it, and takes nothing more', async () => {
    const { id } = await walletOf({ initial_credits_to_load: '10' });
    const closed = await ok('POST', `/wallets/${id}/terminate`);
    expect(closed).to.include({ id, wallet_status: 'closed', credit_balance: '0', message: 'the wallet is closed' });
    const [last] = await transactions(id, 'type=debit');
    expect(last).to.include({ transaction_reason: 'WALLET_TERMINATION', credit_amount: '10' });
    await refused(400, `/wallets/${id}/terminate`, {});
    await refused(400, `/wallets/${id}/debit`, debitBody('1', 'late'));
    await refused(400, `/wallets/${id}/top-up`, { credits_to_add: '1', transaction_reason: 'FREE_CREDIT_GRANT' });
    expect(await ok('GET', `/wallets/${id}/balance/real-time`)).to.include({ real_time_balance: '0', balance: '0' });
    await ok('POST', '/wallets', { external_customer_id: `customer ${count}`, currency: 'usd' });
  });

  it('one that owes is closed with what it owes written off', async () => {
    const { id } = await walletOf();
    await ok('POST', `/wallets/${id}/debit`, { ...debitBody('20', 'owing at its end'), allow_negative: true });
    expect(await ok('GET', `/wallets/${id}`)).to.include({ credit_balance: '-20', credits_owed: '20' });
    const closed = await ok('POST', `/wallets/${id}/terminate`);
    expect(closed).to.include({ wallet_status: 'closed', credit_balance: '0', credits_owed: '0' });
    const [last] = await transactions(id, 'type=credit');
    expect(last).to.include({
      transaction_reason: 'WALLET_TERMINATION',
      credit_amount: '20',
      credit_balance_before: '-20',
      credit_balance_after: '0',
      credits_available: '0',
    });
  });

  it('becomes a postpaid one with the same lots', async () => {
    const { id } = await walletOf({ conversion_rate: '2' });
    await topUp(id, { credits_to_add: '10', priority: 2, expiry_date_utc: '2027-01-01T00:00:00Z' });
    api.setNow('2026-03-15T13:00:00Z');
    await topUp(id, { credits_to_add: '5', transaction_reason: 'PURCHASED_CREDIT_DIRECT' });
    api.setNow('2026-03-15T14:00:00Z');
    await ok('POST', `/wallets/${id}/debit`, debitBody('4', 'before it'));
    const levels = { alert_enabled: true, critical: { threshold: '20', condition: 'below' } };
    const alarmed = await ok('PUT', `/wallets/${id}`, { alert_settings: levels });
    expect(alarmed.alert_state).to.equal('in_alarm');
    const { original_wallet, new_wallet } = await ok('POST', `/wallets/${id}/modify`, {
      modification_type: 'prepaid_to_postpaid',
    });
    expect(original_wallet!.alert_state).to.equal('ok');
    expect([new_wallet!.alert_state, new_wallet!.alert_settings]).to.deep.equal(['in_alarm', alarmed.alert_settings]);
    expect(original_wallet).to.include({ id, wallet_status: 'closed', credit_balance: '0', balance: '0' });
    expect(new_wallet).to.include({
      wallet_type: 'POST_PAID',
      wallet_status: 'active',
      credit_balance: '11',
      balance: '22',
    });
    expect(new_wallet!.metadata).to.deep.equal({ converted_from: id });
    const lots = await transactions(new_wallet!.id, 'sort=credit_amount&order=desc');
    expect(
      lots.map((lot) => [
        lot.credits_available,
        lot.priority,
        lot.expiry_date,
        lot.transaction_reason,
        // The older is used first, as before.
        lot.created_at,
      ]),
    ).to.deep.equal([
      ['6', 2, '2027-01-01T00:00:00Z', 'FREE_CREDIT_GRANT', '2026-03-15T12:00:00Z'],
      ['5', null, null, 'PURCHASED_CREDIT_DIRECT', '2026-03-15T13:00:00Z'],
    ]);
    api.setNow('2026-03-15T12:00:00Z');
    await refused(400, `/wallets/${id}/modify`, { modification_type: 'prepaid_to_postpaid' });
    const external_customer_id = `customer ${count}`;
    const other = await ok('POST', '/wallets', { external_customer_id, currency: 'usd' });
    await refused(409, `/wallets/${other.id}/modify`, { modification_type: 'prepaid_to_postpaid' });
  });

  describe('a postpaid wallet pays', () => {
    let wallet: Wallet;
    const invoiced = (amount: string) =>
      ok('POST', '/invoices', {
        customer_id: wallet.customer_id,
        currency: 'usd',
        amount_due: amount,
        total: amount,
        subtotal: amount,
        invoice_status: 'FINALIZED',
      });
    const paying = (id: string, amount: string, fields: object = {}) => ({
      destination_type: 'INVOICE',
      destination_id: id,
      payment_method_type: 'CREDITS',
      amount,
      currency: 'usd',
      ...fields,
    });
    beforeEach(async () => {
      wallet = await walletOf({ wallet_type: 'POST_PAID', conversion_rate: '2', initial_credits_to_load: '30' });
    });
    const credits = async () => (await ok('GET', `/wallets/${wallet.id}`)).credit_balance;

    it('a part; a refund goes back to its lots, and a void gives prepaid credits', async () => {
      const { id } = await invoiced('100');
      const payment = await ok('POST', '/payments', paying(id, '50', { idempotency_key: `credits ${wallet.id}` }));
      expect(payment).to.include({ payment_status: 'SUCCEEDED', payment_method_id: wallet.id, amount: '50' });
      expect(await credits()).to.equal('5');
      expect(await ok('GET', `/invoices/${id}`)).to.include({ amount_paid: '50', amount_remaining: '50' });
      await ok('POST', '/payments', paying(id, '50', { idempotency_key: `credits ${wallet.id}` }));
      expect(await credits()).to.equal('5');
      expect((await refused(400, '/payments', paying(id, '50'))).details!.payable).to.equal('10');
      await ok('POST', `/payments/${payment.id}/refund`, { amount: '20' });
      expect(await credits()).to.equal('15');
      await ok('POST', `/invoices/${id}/void`);
      expect(await credits()).to.equal('15');
      const all = await ok('GET', `/customers/${wallet.customer_id}/wallets`);
      expect(all.find(({ wallet_type }) => wallet_type === 'PRE_PAID')).to.include({ balance: '30' });
      const [lot, ...others] = (await transactions(wallet.id, 'type=credit&sort=id&order=asc')).map(
        (one) => one.credits_available,
      );
      expect([lot, new Set(others)]).to.deep.equal(['15', new Set(['0'])]);
    });

    it('no more of an invoice than what its prices come to, however often it is asked', async () => {
      await ok('PUT', `/wallets/${wallet.id}`, { config: { allowed_price_types: ['USAGE'] } });
      const line = (price_type: string) => ({ display_name: price_type, amount: '20', quantity: '1', price_type });
      const { id } = await ok('POST', '/invoices', {
        customer_id: wallet.customer_id,
        currency: 'usd',
        amount_due: '40',
        total: '40',
        subtotal: '40',
        invoice_status: 'FINALIZED',
        line_items: [line('USAGE'), line('FIXED')],
      });
      const payment = await ok('POST', '/payments', paying(id, '15', { idempotency_key: `usage ${id}` }));
      expect((await refused(400, '/payments', paying(id, '6'))).details!.payable).to.equal('5');
      await ok('POST', `/payments/${payment.id}/refund`, { amount: '10' });
      expect((await refused(400, '/payments', paying(id, '16'))).details!.payable).to.equal('15');
    });

    it('what two ask for at once is paid once, and credits that went meanwhile pay nothing', async () => {
      const [first, second] = [await invoiced('60'), await invoiced('60')];
      const both = [first, second].map(({ id }) => send('POST', '/payments', paying(id, '60')));
      expect((await Promise.all(both)).map(({ status }) => status).sort()).to.deep.equal([201, 400]);
      expect(await credits()).to.equal('0');
    });

    it('is refused by its field', async () => {
      const prepaid = await ok('POST', '/wallets', { customer_id: wallet.customer_id, currency: 'usd' });
      const { id } = await invoiced('10');
      const faults: [object, string][] = [
        [{ payment_method_id: prepaid.id }, 'payment_method_id'],
        [{ payment_gateway: 'sandbox' }, 'payment_gateway'],
        [{ save_card_and_make_default: true }, 'save_card_and_make_default'],
        [{ amount: '10.01' }, 'amount'],
      ];
      for (const [fields, field] of faults)
        expect((await refused(400, '/payments', paying(id, '10', fields))).details?.field, field).to.equal(field);
      const open = await ok('POST', '/payments', paying(id, '10', { process_payment: false }));
      await refused(400, `/payments/${open.id}`, { payment_status: 'SUCCEEDED' }, 'PUT');
      expect(await ok('POST', `/payments/${open.id}/process`)).to.include({ payment_status: 'SUCCEEDED' });
      await refused(400, `/payments/${open.id}`, { payment_status: 'VOIDED' }, 'PUT');
    });
  });

  it('expired credits are not used, and are taken out once', async () => {
    const { id } = await walletOf();
    await topUp(id, { credits_to_add: '10', expiry_date_utc: '2026-04-01T00:00:00Z' });
    await topUp(id, { credits_to_add: '3' });
    api.setNow('2026-04-01T00:00:00.001Z');
    await refused(400, `/wallets/${id}/debit`, debitBody('4', 'beyond'));
    const run = () => expireCredits(api.services, { now: new Date('2026-04-01T00:00:00.001Z') });
    const both = await Promise.all([run(), run()]);
    expect(both.flatMap(({ failed }) => failed)).to.deep.equal([]);
    expect(both[0]!.expired + both[1]!.expired).to.equal(1);
    expect((await ok('GET', `/wallets/${id}`)).credit_balance).to.equal('3');
    const [expired] = await transactions(id, 'transaction_reason=CREDIT_EXPIRED');
    expect(expired).to.include({ type: 'debit', credit_amount: '10' });
    api.setNow('2026-03-15T12:00:00Z');
  });

  it('is found and changed, and so are its transactions', async () => {
    const { id, customer_id } = await walletOf({ initial_credits_to_load: '8' });
    await topUp(id, { credits_to_add: '2', transaction_reason: 'PURCHASED_CREDIT_DIRECT' });
    const changes = {
      name: 'Main',
      config: { allowed_price_types: ['ALL'] },
      alert_settings: { alert_enabled: true, critical: { threshold: '5', condition: 'below' } },
    };
    const changed = await ok('PUT', `/wallets/${id}`, changes);
    expect(changed).to.deep.include({ name: 'Main', config: { allowed_price_types: ['ALL'] } });
    const found = await ok('POST', '/wallets/search', { wallet_ids: [id], status: 'active', alert_enabled: true });
    expect(found.items.map((one) => one.id)).to.deep.equal([id]);
    expect((await ok('POST', '/wallets/search', { wallet_ids: [id], status: 'closed' })).items).to.deep.equal([]);
    const search = (body: object) =>
      ok('POST', '/wallets/transactions/search?expand=wallet,customer,created_by_user', body);
    const { items } = await search({
      transaction_reason: 'purchased_credit_direct',
      credits_available_gt: 1,
      filters: [{ field: 'wallet_id', operator: 'eq', data_type: 'string', value: { string: id } }],
    });
    expect([items[0]!.wallet!.id, items[0]!.customer!.id]).to.deep.equal([id, customer_id]);
    const [balance] = await ok(
      'GET',
      `/customers/wallets?id=${customer_id}&include_real_time_balance=true&expand=credits_available_breakdown`,
    );
    expect(balance).to.deep.include({
      real_time_balance: '10',
      credits_available_breakdown: { purchased: '2', free: '8' },
    });
    expect((await send('GET', '/customers/wallets')).status).to.equal(400);
  });

  it('401, 403, and 404 for another tenant', async () => {
    const { id } = await walletOf();
    const paths: [string, string, object?][] = [
      ['POST', '/wallets', { customer_id: 'cust_1', currency: 'usd' }],
      ['POST', `/wallets/${id}/debit`, debitBody('1', 'x')],
      ['POST', `/wallets/${id}/top-up`, { credits_to_add: '1', transaction_reason: 'FREE_CREDIT_GRANT' }],
      ['POST', `/wallets/${id}/terminate`, {}],
      ['POST', `/wallets/${id}/modify`, { modification_type: 'prepaid_to_postpaid' }],
      ['PUT', `/wallets/${id}`, { name: 'x' }],
      ['GET', `/wallets/${id}/balance/real-time`],
    ];
    const reader = await api.keyWithRoles(['event_reader'], { user_type: 'service_account' });
    const stranger = await api.otherTenant();
    for (const [method, path, body] of paths) {
      const about = body === undefined ? {} : { body };
      expect((await api.request(method, path, { ...about, key: null })).status, path).to.equal(401);
      expect((await api.request(method, path, { ...about, key: reader })).status, path).to.equal(403);
      const answer = await api.request(method, path, { ...about, key: stranger.key });
      expect(answer.status, `${path}: ${answer.text}`).to.equal(404);
    }
  });
});
