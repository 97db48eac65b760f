/**
 * What a migration makes of rows that were there before it: the files up to one, rows as the version of then wrote them, then the rest.
 * What comes out is audited as an installation of now is.
 */
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { auditCredits } from '../../actions/operations/audit/credits.ts';
import { auditInvoices } from '../../actions/operations/audit/invoices.ts';
import { migratePostgres } from '../../sql/migrate.ts';
import { type FreshDatabase, freshDatabase } from '../support/stores.ts';

const FILES = join(import.meta.dirname, '../../sql/postgres');
const SCOPE = { tenant_id: 'tenant_a', environment_id: 'env_a' };
const AT = '2026-03-01T00:00:00.000Z';

describe('rows from before a migration', () => {
  let database: FreshDatabase;
  let folder: string;
  beforeEach(async () => {
    database = await freshDatabase();
    folder = mkdtempSync(join(tmpdir(), 'farthing-old-'));
    await database.postgres.raw('drop schema public cascade; create schema public');
  });
  afterEach(async () => {
    await database.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** The schema as it was before the file with this number. */
  async function before(number: string): Promise<void> {
    for (const name of readdirSync(FILES).filter((one) => one < number))
      copyFileSync(join(FILES, name), join(folder, name));
    await migratePostgres(database.postgres, { folder });
  }
  const put = (table: string, row: object) => database.postgres(table).insert({ ...SCOPE, created_at: AT, ...row });
  async function audited(): Promise<string[]> {
    const found: string[] = [];
    await auditCredits(database, ({ kind, what }) => found.push(`${kind} ${what}`));
    await auditInvoices(database, ({ kind, what }) => found.push(`${kind} ${what}`));
    return found;
  }

  const invoice = (id: string, fields: object = {}) =>
    put('invoices', {
      ...{ id, customer_id: 'cust_1', invoice_type: 'ONE_OFF', invoice_status: 'FINALIZED', payment_status: 'PENDING' },
      ...{ billing_reason: 'MANUAL', currency: 'usd', finalized_at: AT, invoice_number: id },
      ...{ subtotal: 100, total: 100, amount_due: 100, amount_remaining: 100 },
      ...fields,
    });
  const line = (invoice_id: string, position: number, fields: object = {}) =>
    put('invoice_line_items', {
      ...{ id: `${invoice_id}_${position}`, invoice_id, position, customer_id: 'cust_1', quantity: 1, amount: 100 },
      ...{ currency: 'usd' },
      ...fields,
    });

  it('0135: what wallets held is posted, and no wallet that holds something else is taken over', async () => {
    await before('0135');
    const wallet = (id: string, fields: object) =>
      put('wallets', { id, customer_id: id, currency: 'usd', conversion_rate: '0.5', ...fields });
    const credit = (id: string, wallet_id: string, fields: object) =>
      put('wallet_transactions', {
        ...{ id, wallet_id, customer_id: wallet_id, type: 'credit', currency: 'usd', idempotency_key: id },
        ...{ reference_type: 'EXTERNAL', reference_id: id, credit_balance_before: 0, credit_balance_after: 0 },
        ...fields,
      });
    await wallet('wallet_1', { balance: '7.500', credit_balance: '15.00' });
    const lots = [
      ['wtxn_1', '10', 'PURCHASED_CREDIT_DIRECT'],
      ['wtxn_2', '4', 'FREE_CREDIT_GRANT'],
      ['wtxn_3', '1', 'CREDIT_NOTE'],
    ] as const;
    for (const [id, credit_amount, transaction_reason] of lots)
      await credit(id, 'wallet_1', {
        amount: '1',
        credit_amount,
        credits_available: credit_amount,
        transaction_reason,
      });
    await wallet('wallet_2', { balance: '4.5', credit_balance: '9' });
    const { postgres } = database;
    const refused = await migratePostgres(postgres).catch((error: Error) => error.message);
    expect(refused).to.match(/do not hold what was put into them.*wallet_2/s);
    await postgres('wallets').where({ id: 'wallet_2' }).update({ balance: 0, credit_balance: 0 });
    await migratePostgres(postgres);
    const postings = await postgres('ledger_postings').orderBy(['transaction_id', 'position']);
    expect(postings.map(({ account, credits }) => `${account} ${credits}`)).to.deep.equal([
      'lot 10',
      'purchased -10',
      'lot 4',
      'granted -4',
      'lot 1',
      'refunded -1',
    ]);
    expect(await postgres('wallets').where({ id: 'wallet_1' }).first('balance', 'credit_balance')).to.deep.equal({
      balance: '7.5',
      credit_balance: '15',
    });
    expect(await audited()).to.deep.equal([]);
  });

  it('0147: what lines are, and what they are less, is taken from the words of their reasons', async () => {
    await before('0147');
    await invoice('inv_1', { subtotal: 700, total: 700, amount_due: 700, amount_remaining: 700 });
    const REASONS = [
      null,
      'late_events: 5 more events',
      'true_up: 70.5 of 100 were used',
      'threshold_surplus: 20 more was invoiced before the period was over than its usage costs',
      'corrected_events: events were voided, less 12.5 that other invoices say of it',
      'overage: above the commitment, less 50 that was invoiced before the period was over',
      'written by hand: less than before',
    ];
    for (const [position, reason] of REASONS.entries()) await line('inv_1', position, { computed_from: { reason } });
    await migratePostgres(database.postgres);
    const rows = await database.postgres('invoice_line_items').orderBy('position').select('computed_from');
    const told = rows.map(({ computed_from: { kind, of_term, less } }) => ({ kind, of_term, less }));
    const nothing = { kind: undefined, of_term: undefined, less: undefined };
    expect(told).to.deep.equal([
      nothing,
      { ...nothing, kind: 'late_events' },
      { ...nothing, kind: 'true_up', of_term: { used: '70.5', committed: '100' } },
      { ...nothing, kind: 'threshold_surplus' },
      {
        ...nothing,
        kind: 'corrected_events',
        less: { amount: '12.5', quantity: null, invoiced: 'by_other_invoices' },
      },
      { ...nothing, kind: 'overage', less: { amount: '50', quantity: null, invoiced: 'before_period_end' } },
      nothing,
    ]);
    expect(await audited()).to.deep.equal([]);
  });

  it('0180: of what was paid, what payments do not explain was said by hand; what they say too much is told', async () => {
    await before('0180');
    const payment = (id: string, destination_id: string, amount: number, fields: object = {}) =>
      put('payments', {
        ...{ id, destination_id, amount, customer_id: 'cust_1', idempotency_key: id, payment_method_type: 'OFFLINE' },
        ...{ currency: 'usd', payment_status: 'SUCCEEDED', ...fields },
      });
    const refund = (id: string, payment_id: string, amount: number, idempotency_key = id) =>
      put('payment_refunds', { id, payment_id, amount, idempotency_key, refund_status: 'succeeded' });
    const paid = (amount_paid: number, fields: object = {}) => ({
      amount_paid,
      amount_remaining: 100 - amount_paid,
      ...fields,
    });
    await invoice('hand', paid(30));
    await invoice('both', paid(100));
    await payment('pay_1', 'both', 60);
    await invoice('part', paid(20));
    await payment('pay_2', 'part', 50, { refunded_amount: 30, payment_status: 'PARTIALLY_REFUNDED' });
    await refund('refund_1', 'pay_2', 30);
    await invoice('whole', paid(100, { refunded_amount: 25, payment_status: 'PARTIALLY_REFUNDED' }));
    await payment('pay_3', 'whole', 120, { refunded_amount: 45, payment_status: 'PARTIALLY_REFUNDED' });
    await refund('refund_2', 'pay_3', 20, 'surplus/pay_3');
    await refund('refund_3', 'pay_3', 25);
    await invoice('lost', paid(10));
    await payment('pay_4', 'lost', 40);
    for (const id of ['hand', 'both', 'part', 'whole', 'lost']) await line(id, 0);
    await migratePostgres(database.postgres);
    const rows = await database.postgres('invoices').select('id', 'paid_by_hand');
    expect(Object.fromEntries(rows.map(({ id, paid_by_hand }) => [id, paid_by_hand]))).to.deep.equal({
      hand: '30',
      both: '40',
      part: '0',
      whole: '0',
      lost: '0',
    });
    expect(await audited()).to.deep.equal(['invoice_paid_differs lost says 10, and 40 came in by its payments']);
  });

  it('0360: lots that came from invoices pay after tax, and notes returned prepaid credits first', async () => {
    await before('0360');
    await put('wallets', { id: 'wallet_1', customer_id: 'cust_1', currency: 'usd', wallet_status: 'closed' });
    await put('wallets', { id: 'wallet_2', customer_id: 'cust_1', currency: 'usd', wallet_type: 'POST_PAID' });
    const credit = (id: string, transaction_reason: string, fields: object = {}) =>
      put('wallet_transactions', {
        ...{ id, wallet_id: 'wallet_1', customer_id: 'cust_1', type: 'credit', currency: 'usd', idempotency_key: id },
        ...{ amount: 0, credit_amount: 0, credit_balance_before: 0, credit_balance_after: 0, transaction_reason },
        ...{ reference_type: 'INVOICE', reference_id: 'noted', ...fields },
      });
    await credit('note', 'CREDIT_NOTE');
    await credit('void', 'INVOICE_VOID_REFUND');
    await credit('refund', 'CREDIT_NOTE', { reference_type: 'PAYMENT' });
    await credit('by_hand', 'CREDIT_NOTE', { reference_type: 'EXTERNAL' });
    await credit('bought', 'PURCHASED_CREDIT_INVOICED');
    await credit('put_back', 'CREDIT_NOTE', { parent_transaction_id: 'bought' });
    const moved = { wallet_id: 'wallet_2', reference_type: 'EXTERNAL' };
    await credit('note_moved', 'CREDIT_NOTE', { ...moved, parent_transaction_id: 'note' });
    await credit('by_hand_moved', 'CREDIT_NOTE', { ...moved, parent_transaction_id: 'by_hand' });

    const credited = {
      total_prepaid_credits_applied: 40,
      total: 60,
      amount_due: 60,
      amount_paid: 60,
      amount_remaining: 0,
    };
    const given = (refunded_amount: number) => ({
      ...credited,
      paid_by_hand: 60,
      refunded_amount,
      payment_status: 'PARTIALLY_REFUNDED',
    });
    await invoice('noted', given(70));
    await line('noted', 0, { prepaid_credits_applied: 40 });
    await invoice('voided', { ...given(100), payment_status: 'REFUNDED', invoice_status: 'VOIDED' });
    await line('voided', 0, { prepaid_credits_applied: 40 });
    for (const [id, amount, finalized_at] of [
      ['first', 30, '2026-03-02T00:00:00Z'],
      ['second', 40, '2026-03-03T00:00:00Z'],
    ] as const) {
      const fields = { invoice_id: 'noted', customer_id: 'cust_1', credit_note_number: id, currency: 'usd' };
      const kind = { credit_note_status: 'FINALIZED', credit_note_type: 'REFUND', reason: 'BILLING_ERROR' };
      await put('credit_notes', { id, ...fields, ...kind, finalized_at, subtotal: amount, total_amount: amount });
      const of = { credit_note_id: id, invoice_line_item_id: 'noted_0', currency: 'usd', position: 0 };
      await put('credit_note_line_items', { id: `line_${id}`, ...of, amount });
    }
    await migratePostgres(database.postgres);
    const rows = await database.postgres('wallet_transactions').where({ pays_after_tax: true }).orderBy('id');
    expect(rows.map(({ id }) => id)).to.deep.equal(['note', 'note_moved', 'refund', 'void']);
    const notes = await database.postgres('credit_notes').orderBy('id');
    expect(notes.map((one) => one.total_prepaid_credits_returned)).to.deep.equal(['30', '10']);
    const lines = await database.postgres('credit_note_line_items').orderBy('id');
    expect(lines.map((one) => one.prepaid_credits_returned)).to.deep.equal(['30', '10']);
    const invoices = await database.postgres('invoices').orderBy('id');
    expect(invoices.map((one) => one.prepaid_credits_returned)).to.deep.equal(['40', '40']);
    expect(await audited()).to.deep.equal([]);
  });

  it('0300: refunds of what no provider took are made, and those of a provider still to be asked for', async () => {
    await before('0300');
    await invoice('inv');
    const payment = (id: string, fields: object) =>
      put('payments', {
        ...{
          id,
          destination_type: 'INVOICE',
          destination_id: 'inv',
          customer_id: 'cust_1',
          amount: 10,
          currency: 'usd',
        },
        ...{ payment_method_type: 'CARD', payment_status: 'PARTIALLY_REFUNDED', idempotency_key: id },
        ...fields,
      });
    await payment('by hand', { payment_method_type: 'OFFLINE' });
    await payment('said', { payment_gateway: 'sandbox' });
    await payment('charged', { payment_gateway: 'sandbox', gateway_payment_id: 'ch_1' });
    for (const payment_id of ['by hand', 'said', 'charged'])
      await put('payment_refunds', {
        ...{ id: `of ${payment_id}`, payment_id, amount: 5, refund_status: 'pending', idempotency_key: 'one' },
      });
    await migratePostgres(database.postgres);
    const rows = await database.postgres('payment_refunds').select('payment_id', 'refund_status');
    expect(Object.fromEntries(rows.map(({ payment_id, refund_status }) => [payment_id, refund_status]))).to.deep.equal({
      'by hand': 'succeeded',
      said: 'succeeded',
      charged: 'pending',
    });
  });

  it('0440: money that did not pass through Stripe has no gateway, and its refunds are made', async () => {
    await before('0440');
    await put('connections', { id: 'conn_1', name: 'Stripe', provider_type: 'stripe', has_account: true });
    const ids = ['pr_1', 'inpay_1', 'pi_1', 'ch_1', 'py_1'];
    for (const gateway_payment_id of ids) {
      const id = `pay_${gateway_payment_id}`;
      const paid = { amount_paid: 100, amount_remaining: 0, payment_status: 'PARTIALLY_REFUNDED', refunded_amount: 5 };
      await invoice(`inv_${gateway_payment_id}`, paid);
      await line(`inv_${gateway_payment_id}`, 0);
      await put('payments', {
        ...{ id, gateway_payment_id, idempotency_key: id, customer_id: 'cust_1', amount: 100, currency: 'usd' },
        ...{ destination_type: 'INVOICE', destination_id: `inv_${gateway_payment_id}`, connection_id: 'conn_1' },
        ...{ payment_method_type: 'OFFLINE', payment_gateway: 'stripe', payment_status: 'PARTIALLY_REFUNDED' },
        refunded_amount: 5,
      });
      const refund = { amount: 5, refund_status: 'pending', idempotency_key: 'one' };
      await put('payment_refunds', { ...refund, id: `refund ${id}`, payment_id: id });
    }
    await migratePostgres(database.postgres);
    const rows = await database
      .postgres('payments')
      .join('payment_refunds', 'payment_refunds.payment_id', 'payments.id')
      .select('gateway_payment_id', 'payment_gateway', 'refund_status');
    const found = rows.map((row) => [row.gateway_payment_id, `${row.payment_gateway} ${row.refund_status}`]);
    expect(Object.fromEntries(found)).to.deep.equal({
      ...{ pr_1: 'null succeeded', inpay_1: 'null succeeded' },
      ...{ pi_1: 'stripe pending', ch_1: 'stripe pending', py_1: 'stripe pending' },
    });
    expect(await audited()).to.deep.equal([]);
  });

  it('0220: a final invoice of who is exempt now was that then, and drafts are nothing', async () => {
    await before('0220');
    const customer = (id: string, tax_exempt: string) =>
      put('customers', { id, external_id: id, name: id, timezone: 'UTC', tax_exempt });
    for (const one of ['none', 'exempt', 'reverse']) await customer(one, one);
    const finalized_at = '2026-02-01T00:00:00Z';
    for (const one of ['none', 'exempt', 'reverse']) await invoice(`of ${one}`, { customer_id: one, finalized_at });
    await invoice('draft', { customer_id: 'reverse', invoice_status: 'DRAFT', finalized_at: null });
    await migratePostgres(database.postgres);
    const rows = await database.postgres('invoices').select('id', 'tax_exempt');
    expect(Object.fromEntries(rows.map(({ id, tax_exempt }) => [id, tax_exempt]))).to.deep.equal({
      draft: null,
      'of exempt': 'exempt',
      'of none': null,
      'of reverse': 'reverse',
    });
  });

  it('0441: a connection that is being archived has that state, whatever its reason', async () => {
    await before('0441');
    const connection = (id: string, attention_reason: string | null) =>
      put('connections', {
        ...{ id, name: id, provider_type: id, has_account: true, attention_reason },
        connection_state: attention_reason === null ? 'active' : 'needs_attention',
      });
    await connection('interrupted', 'it is being archived');
    await connection('stopped', 'the key was revoked');
    await connection('used', null);
    await migratePostgres(database.postgres);
    const states = await database.postgres('connections').orderBy('id').select('id', 'connection_state');
    expect(states).to.deep.equal([
      { id: 'interrupted', connection_state: 'being_archived' },
      { id: 'stopped', connection_state: 'needs_attention' },
      { id: 'used', connection_state: 'active' },
    ]);
  });
});
