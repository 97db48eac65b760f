/**
 * Credits that are bought with an invoice (docs/rules/wallets.md, "Top-ups"): they come for its money, and that does not go back while they
 * are there; through whichever door somebody asks for it.
 */
import { expect } from 'chai';
import { expireCredits } from '../../actions/credits/wallets/expire-credits.ts';
import type { Invoice, Payment } from '../support/answers.ts';
import { startWorld, type World } from '../support/world.ts';

type Bought = { wallet_id: string; invoice: Invoice };

describe('scenario: credits that are bought with an invoice', () => {
  let world: World;
  let names = 0;
  before(async () => {
    world = await startWorld();
  });
  after(() => world.stop());

  async function bought(credits_to_add = '100', fields: object = {}) {
    const name = `buyer ${++names}`;
    await world.customer(name);
    const wallet = await world.post('/wallets', { external_customer_id: name, currency: 'usd' });
    const body = {
      credits_to_add,
      transaction_reason: 'PURCHASED_CREDIT_INVOICED',
      bonus_credits_to_add: '5',
      ...fields,
    };
    const { invoice_id } = await world.post(`/wallets/${wallet.id}/top-up`, { ...body, idempotency_key: name });
    return { wallet_id: wallet.id, invoice: await world.get(`/invoices/${invoice_id}`) };
  }
  const pay = ({ invoice }: Bought, amount: string, key = '') =>
    world.post('/payments', {
      destination_type: 'INVOICE',
      destination_id: invoice.id,
      payment_method_type: 'OFFLINE',
      amount,
      currency: 'usd',
      metadata: { key },
    });
  const ask = <Path extends string>(path: Path, body: object = {}) => world.api.request('POST', path, { body });
  const noted = ({ invoice }: Bought, amount: string, fields: object = {}) =>
    ask('/creditnotes', {
      invoice_id: invoice.id,
      reason: 'BILLING_ERROR',
      line_items: [{ invoice_line_item_id: invoice.line_items[0]!.id, amount }],
      ...fields,
    });
  const credits = async ({ wallet_id }: Bought) => (await world.get(`/wallets/${wallet_id}`)).credit_balance;
  const state = async ({ invoice }: Bought) => {
    const { payment_status, amount_paid, amount_remaining } = await world.get(`/invoices/${invoice.id}`);
    return [payment_status, amount_paid, amount_remaining];
  };

  it('whose credits have come gives its money back through no door', async () => {
    const one = await bought();
    const payment = await pay(one, '100');
    expect(await credits(one)).to.equal('105');
    const doors = [
      ask(`/payments/${payment.id}/refund`),
      ask(`/payments/${payment.id}/refund`, { amount: '1' }),
      noted(one, '1'),
      noted(one, '1', { process_credit_note: false }),
      ask(`/invoices/${one.invoice.id}/void`),
      world.api.request('PUT', `/payments/${payment.id}`, { body: { payment_status: 'VOIDED' } }),
    ];
    for (const answer of await Promise.all(doors))
      expect([answer.status, answer.body.message], answer.text).to.deep.equal([
        400,
        'the credits that this invoice is for are in a wallet already: its money cannot go there, too',
      ]);
    expect(await state(one)).to.deep.equal(['SUCCEEDED', '100', '0']);
    expect(await credits(one)).to.equal('105');
  });

  it('a payment that was recorded by mistake is voided where the rest has bought them', async () => {
    const one = await bought();
    const mistake = await pay(one, '30', 'by mistake');
    const whole = await pay(one, '100', 'whole');
    const voided = ({ id }: Payment) =>
      world.api.request('PUT', `/payments/${id}`, { body: { payment_status: 'VOIDED' } });
    expect((await voided(whole)).status).to.equal(400);
    expect((await voided(mistake)).status).to.equal(200);
    expect([await state(one), await credits(one)]).to.deep.equal([['SUCCEEDED', '100', '0'], '105']);
  });

  it('that are paid when their expiry has passed last as long from then', async () => {
    const fields = { expiry_date_utc: '2026-02-01T00:00:00Z', bonus_credits_expiry_date_utc: '2026-03-01T00:00:00Z' };
    world.at('2026-01-01T00:00:00Z');
    const one = await bought('100', fields);
    world.at('2026-02-05T00:00:00Z');
    await pay(one, '100');
    await expireCredits(world.api.services, { now: world.now });
    expect(await credits(one)).to.equal('105');
    const moved = await world.get(`/wallets/${one.wallet_id}/transactions`);
    const expiries = moved.items.map(({ credit_amount, expiry_date }) => [credit_amount, expiry_date]);
    expect(Object.fromEntries(expiries)).to.deep.equal({
      100: '2026-03-08T00:00:00Z',
      5: '2026-03-01T00:00:00Z',
    });
  });

  it('what was paid too much goes back, and no more', async () => {
    const one = await bought();
    await pay(one, '60', 'first');
    const second = await pay(one, '70', 'second');
    const more = await ask(`/payments/${second.id}/refund`, { amount: '31' });
    expect([more.status, more.body.details?.field]).to.deep.equal([400, 'amount']);
    expect((await ask(`/payments/${second.id}/refund`)).status).to.equal(200);
    expect(await state(one)).to.deep.equal(['SUCCEEDED', '100', '0']);
    expect((await ask(`/payments/${second.id}/refund`, { amount: '1' })).status).to.equal(400);
    expect(await credits(one)).to.equal('105');
  });

  it('what was paid of a part goes back while the credits have not come', async () => {
    const one = await bought();
    const part = await pay(one, '40');
    expect((await ask(`/payments/${part.id}/refund`)).status).to.equal(200);
    expect([await state(one), await credits(one)]).to.deep.equal([['PENDING', '0', '100'], '0']);
  });

  it('that is not paid has no credit notes, of all or a part: nobody gets credits for what was taken off', async () => {
    const one = await bought();
    await pay(one, '10');
    for (const answer of [await noted(one, '90'), await noted(one, '1', { process_credit_note: false })])
      expect([answer.status, answer.body.message]).to.deep.equal([
        400,
        'an invoice for credits has no credit notes: void it, and they do not come',
      ]);
    expect([await state(one), await credits(one)]).to.deep.equal([['PENDING', '10', '90'], '0']);
    await world.post(`/invoices/${one.invoice.id}/void`, {});
    expect(await credits(one), 'what was paid of it').to.equal('10');
    const moved = await world.get(`/wallets/${one.wallet_id}/transactions`);
    const reasons = moved.items.map((each) => [each.transaction_reason, each.transaction_status]);
    expect(reasons).to.have.deep.members([
      ['PURCHASED_CREDIT_INVOICED', 'failed'],
      ['PURCHASED_CREDIT_BONUS', 'failed'],
      ['INVOICE_VOID_REFUND', 'completed'],
    ]);
  });
});
