/** No caller can take a key of what is done by itself (docs/rules/wallets.md, "The ledger"; docs/rules/invoices.md, "Charged once"). */
import { expect } from 'chai';
import { endDueReservations } from '../../actions/reservations/end-due.ts';
import type { ErrorAnswer, Wallet } from '../support/answers.ts';
import type { TestAnswer } from '../support/api.ts';
import { startWorld, usage, type World } from '../support/world.ts';

type Fields = Record<string, unknown>;

const ULID = '01JZ8K3M5N7P9Q1R3S5T7V9W3X';

describe('scenario: keys that were taken first', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-02-02T00:00:00Z' });
  });
  after(() => world.stop());

  const walletOf = async (customer: string) => {
    await world.customer(customer);
    const config = { allowed_price_types: ['ALL'] };
    const terms = { external_customer_id: customer, currency: 'usd', initial_credits_to_load: '20', config };
    return world.post('/wallets', terms);
  };
  const balanceOf = async ({ id }: Wallet) => (await world.get(`/wallets/${id}`)).credit_balance;
  const topUp = ({ id }: Wallet, fields: Fields) =>
    world.api.request('POST', `/wallets/${id}/top-up`, {
      body: { credits_to_add: '1', transaction_reason: 'FREE_CREDIT_GRANT', ...fields },
    });
  const debit = ({ id }: Wallet, fields: Fields) =>
    world.api.request('POST', `/wallets/${id}/debit`, {
      body: { credits: '1', transaction_reason: 'MANUAL_BALANCE_DEBIT', ...fields },
    });
  const invoice = (customer: string, amount: string, fields: Fields = {}) =>
    world.post('/invoices', {
      customer_id: world.id(`customer ${customer}`),
      currency: 'usd',
      amount_due: amount,
      total: amount,
      subtotal: amount,
      line_items: [{ amount, quantity: '1', price_type: 'FIXED' }],
      ...fields,
    });
  const holding = (customer: string, hold: Fields) =>
    world.post('/entitlements/check', { external_customer_id: customer, credits: '5', hold });

  /** Of the kind and the ids: as they are, and as they were once. The first is refused to whoever states it. */
  async function takeFirst(
    take: (fields: Fields) => Promise<TestAnswer<Partial<ErrorAnswer>>>,
    key: string,
  ): Promise<void> {
    const refused = await take({ idempotency_key: `farthing/${key}` });
    expect([refused.status, refused.body.details?.field], refused.text).to.deep.equal([400, 'idempotency_key']);
    const taken = await take({ idempotency_key: key });
    expect(taken.status, taken.text).to.equal(200);
  }

  it('a reservation is committed, whoever stated its key', async () => {
    const wallet = await walletOf('committed');
    const { reservation } = await holding('committed', { ttl_seconds: 600 });
    await takeFirst((fields) => topUp(wallet, fields), `reservation/${reservation!.id}`);
    const committed = await world.post(`/reservations/${reservation!.id}/commit`, {});
    expect(committed.reservation_status).to.equal('committed');
    expect(await balanceOf(wallet)).to.equal('16');
  });

  it('a reservation is charged when it expires, and its wallet can be closed', async () => {
    const wallet = await walletOf('charged');
    const { reservation } = await holding('charged', { ttl_seconds: 60, on_expiry: 'charge' });
    await takeFirst((fields) => debit(wallet, fields), `reservation/${reservation!.id}`);
    world.at('2026-02-03T00:00:00Z');
    const { failed, uncharged } = await endDueReservations(world.api.services, { now: world.now });
    expect([failed, uncharged]).to.deep.equal([[], []]);
    expect(await balanceOf(wallet)).to.equal('14');
    await world.post(`/wallets/${wallet.id}/terminate`, {});
  });

  it('an invoice becomes final, and takes its credits', async () => {
    const wallet = await walletOf('final');
    const draft = await invoice('final', '5');
    await takeFirst((fields) => debit(wallet, fields), `invoice/${draft.id}/${wallet.id}`);
    await world.post(`/invoices/${draft.id}/finalize`, {});
    expect(await balanceOf(wallet)).to.equal('14');
  });

  it('a credit note gives back what it says', async () => {
    const wallet = await walletOf('noted');
    const { id, line_items } = await invoice('noted', '7', { invoice_status: 'FINALIZED' });
    expect(await balanceOf(wallet)).to.equal('13');
    const note = await world.post('/creditnotes', {
      invoice_id: id,
      reason: 'BILLING_ERROR',
      process_credit_note: false,
      line_items: [{ invoice_line_item_id: line_items[0]!.id, amount: '7' }],
    });
    const asNote = (fields: Fields) => topUp(wallet, { transaction_reason: 'CREDIT_NOTE', ...fields });
    await takeFirst(asNote, `credit_note/${note.id}`);
    await world.post(`/creditnotes/${note.id}/finalize`, {});
    expect(await balanceOf(wallet)).to.equal('21');
  });

  it('a payment that took its credits under a key of before is given back to where they came from', async () => {
    await world.customer('before');
    const terms = { external_customer_id: 'before', currency: 'usd', initial_credits_to_load: '20' };
    const wallet = await world.post('/wallets', { ...terms, wallet_type: 'POST_PAID' });
    const { id } = await invoice('before', '7', { invoice_status: 'FINALIZED' });
    const paying = { destination_type: 'INVOICE', destination_id: id, payment_method_type: 'CREDITS' };
    const payment = await world.post('/payments', { ...paying, amount: '7', currency: 'usd' });
    const changed = await world.api.services
      .postgres('wallet_transactions')
      .where({ idempotency_key: `farthing/payment/${payment.id}` })
      .update({ idempotency_key: `payment/${payment.id}` });
    expect(changed).to.equal(1);
    await world.post(`/payments/${payment.id}/refund`, {});
    expect(await balanceOf(wallet)).to.equal('20');
  });

  it('a bonus comes with what was bought, and a long key is as good as a short one', async () => {
    const wallet = await walletOf('bonus');
    const bought = { transaction_reason: 'PURCHASED_CREDIT_DIRECT', bonus_credits_to_add: '3' };
    expect((await topUp(wallet, { idempotency_key: 'order/bonus' })).status).to.equal(200);
    expect((await topUp(wallet, { idempotency_key: 'order', ...bought })).status).to.equal(200);
    expect(await balanceOf(wallet)).to.equal('25');
    const invoiced = { transaction_reason: 'PURCHASED_CREDIT_INVOICED' };
    const long = (last: string) => ({ idempotency_key: `${'k'.repeat(254)}${last}`, ...invoiced });
    const answers = [await topUp(wallet, long('1')), await topUp(wallet, long('2'))];
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 200]);
  });

  it('the invoice of a period is made, and no other is taken for a purchase', async () => {
    await world.meter('calls');
    await world.plan('Use', [usage('calls', '1')]);
    const { id } = await world.subscribe('billed', 'Use', { start_date: '2026-02-02T00:00:00Z' });
    const period = `${id}/2026-02-02T00:00/2026-03-02T00:00/SUBSCRIPTION_CYCLE`;
    for (const idempotency_key of [period, `topup/wallet_${ULID}/order`]) {
      const { status, body } = await world.api.request('POST', '/invoices', {
        body: {
          customer_id: world.id('customer billed'),
          currency: 'usd',
          amount_due: '1',
          total: '1',
          subtotal: '1',
          idempotency_key,
        },
      });
      expect([status, body.details?.field]).to.deep.equal([400, 'idempotency_key']);
    }
    await world.use('billed', 'calls', 4, { at: '2026-02-05T00:00:00Z' });
    await world.on('2026-03-02');
    const [made] = await world.invoices('billed');
    expect([made!.idempotency_key, made!.total]).to.deep.equal([period, '4']);
  });

  it('nor are keys of notes and refunds that have none of their own', async () => {
    const content = `content/${'0123456789abcdef'.repeat(2)}`;
    const faults: [string, Fields][] = [
      ['/creditnotes', { invoice_id: 'inv_1', reason: 'BILLING_ERROR', idempotency_key: content }],
      [`/payments/pay_${ULID}/refund`, { idempotency_key: `surplus/pay_${ULID}` }],
    ];
    for (const [path, body] of faults) {
      const answer = await world.api.request('POST', path, { body });
      expect([answer.status, answer.body.details?.field], path).to.deep.equal([400, 'idempotency_key']);
    }
  });
});
