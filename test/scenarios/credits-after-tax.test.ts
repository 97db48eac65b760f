/** Credits that come from invoices pay after tax, and what is given back for a line is split as the line was paid (docs/rules/wallets.md). */
import { expect } from 'chai';
import { auditCredits } from '../../actions/operations/audit/credits.ts';
import type { Invoice, Wallet } from '../support/answers.ts';
import { prepaid } from '../support/prepaid.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

describe('scenario: credits after tax', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await world.post('/taxes/rates', { name: 'VAT', code: 'vat', percentage_value: '20' });
    await world.meter('calls');
    await world.plan('Seats', [fixed('100', { invoice_cadence: 'ADVANCE', display_name: 'seat' })]);
    await world.plan('Both', [
      fixed('100', { invoice_cadence: 'ADVANCE', display_name: 'seat' }),
      usage('calls', '1', { display_name: 'calls' }),
    ]);
    await world.plan('Calls', [usage('calls', '1', { display_name: 'calls' })]);
    await world.plan('More', [fixed('200', { invoice_cadence: 'ADVANCE', display_name: 'more' })]);
  });
  beforeEach(() => world.at('2026-01-01T00:00:00Z'));
  after(async () => {
    expect(await auditOfCredits()).to.deep.equal([]);
    await world.stop();
  });

  async function auditOfCredits(): Promise<string[]> {
    const found: string[] = [];
    await auditCredits(world.api.services, ({ what }) => void found.push(what));
    return found;
  }

  const { ok, topUp, purseOf, oneOff } = prepaid(() => world);
  const taxed = async (name: string): Promise<{ customer_id: string }> => {
    await world.customer(name);
    const customer_id = world.id(`customer ${name}`);
    const of = { entity_type: 'customer', entity_id: customer_id };
    await world.post('/taxes/associations', { ...of, tax_rate_code: 'vat', start_date: '2020-01-01T00:00:00Z' });
    return { customer_id };
  };
  const pay = (invoice: Invoice) =>
    world.post('/payments', {
      destination_type: 'INVOICE',
      destination_id: invoice.id,
      payment_method_type: 'OFFLINE',
      amount: invoice.amount_remaining,
      currency: invoice.currency,
    });
  const note = (invoice: Invoice, amount: string, memo = '') =>
    ok('POST', '/creditnotes', {
      invoice_id: invoice.id,
      memo,
      reason: 'BILLING_ERROR',
      line_items: [{ invoice_line_item_id: invoice.line_items[0]!.id, amount }],
    });
  const toPlan = (name: string) => ({
    target_plan_id: world.id(`plan ${name}`),
    billing_cadence: 'RECURRING',
    billing_cycle: 'anniversary',
    billing_period: 'MONTHLY',
    billing_period_count: 1,
    proration_behavior: 'create_prorations',
  });
  const again = ({ id }: Invoice) => world.get(`/invoices/${id}`);
  /** Answers the credits in the lots of the customer's wallets, before tax and after it. */
  async function inWallet(customer_id: string): Promise<[number, number]> {
    const wallets = await world.get(`/customers/${customer_id}/wallets`);
    const sums: [number, number] = [0, 0];
    for (const { id } of wallets) {
      const { items } = await world.get(`/wallets/${id}/transactions?type=credit&limit=100`);
      for (const one of items) sums[one.pays_after_tax ? 1 : 0] += Number(one.credits_available);
    }
    return sums.map((sum) => Number(sum.toFixed(6))) as [number, number];
  }
  /** A paid invoice of 100, of which 40 credits paid a part: 20 % of 60 is taxed, and 72 are paid in money. */
  async function paidWithCredits(name: string) {
    const { customer_id } = await taxed(name);
    const wallet = await purseOf(name);
    await topUp(wallet.id, '40');
    const invoice = await oneOff({ customer_id }, '100');
    expect(invoice).to.include({ total_prepaid_credits_applied: '40', total_tax: '12', amount_remaining: '72' });
    await pay(invoice);
    return { customer_id, invoice };
  }

  it('a credit note over all of 100 + 20 pays the next 100 + 20', async () => {
    const { customer_id } = await taxed('whole');
    const invoice = await oneOff({ customer_id }, '100');
    await pay(invoice);
    await note(invoice, '100');
    expect(await inWallet(customer_id)).to.deep.equal([0, 120]);
    const next = await oneOff({ customer_id }, '100');
    expect(next).to.include({
      total_prepaid_credits_applied: '0',
      total_tax: '20',
      total: '120',
      amount_due: '120',
      total_credits_applied_after_tax: '120',
      amount_paid: '120',
      amount_remaining: '0',
      payment_status: 'SUCCEEDED',
    });
    expect(await inWallet(customer_id)).to.deep.equal([0, 0]);
  });

  it('half of a line of which credits paid 40: 20 return to the lots, 36 pay after tax, and the next 100 cost 60', async () => {
    const { customer_id, invoice } = await paidWithCredits('half');
    const half = await note(invoice, '50');
    expect(half).to.include({
      subtotal: '50',
      total_tax: '6',
      total_amount: '56',
      total_prepaid_credits_returned: '20',
    });
    expect(half.line_items[0]).to.include({ amount: '50', tax_amount: '6', prepaid_credits_returned: '20' });
    expect(half.invoice).to.include({ refunded_amount: '56', prepaid_credits_returned: '20' });
    expect(await inWallet(customer_id)).to.deep.equal([20, 36]);
    const next = await oneOff({ customer_id }, '100');
    expect(next).to.include({
      total_prepaid_credits_applied: '20',
      total_tax: '16',
      total: '96',
      total_credits_applied_after_tax: '36',
      amount_remaining: '60',
    });
    expect(await inWallet(customer_id)).to.deep.equal([0, 0]);
  });

  it('the other half takes what is left, and a void gives each kind back', async () => {
    const { customer_id, invoice } = await paidWithCredits('halves');
    await note(invoice, '50', 'first');
    await note(invoice, '50', 'second');
    expect(await inWallet(customer_id)).to.deep.equal([40, 72]);
    expect((await again(invoice)).payment_status).to.equal('REFUNDED');
    const next = await oneOff({ customer_id }, '100');
    expect(next).to.include({ total_prepaid_credits_applied: '40', total_credits_applied_after_tax: '72' });
    expect(await inWallet(customer_id)).to.deep.equal([0, 0]);
    await ok('POST', `/invoices/${next.id}/void`);
    expect(await inWallet(customer_id)).to.deep.equal([40, 72]);
  });

  it('a note on what is not paid returns the credits and lowers what is owed by the rest', async () => {
    const { customer_id } = await taxed('unpaid');
    await topUp((await purseOf('unpaid')).id, '40');
    const invoice = await oneOff({ customer_id }, '100');
    const half = await note(invoice, '50');
    expect(half).to.include({
      credit_note_type: 'ADJUSTMENT',
      total_amount: '56',
      total_prepaid_credits_returned: '20',
    });
    const after = { adjustment_amount: '36', amount_due: '36', amount_remaining: '36', payment_status: 'PENDING' };
    expect(await again(invoice)).to.include(after);
    expect(await inWallet(customer_id)).to.deep.equal([20, 0]);
    const refused = await world.api.request('POST', `/creditnotes/${half.id}/void`, { body: {} });
    expect(refused.status).to.equal(400);
    expect(refused.body.message).to.include('an adjustment that returned prepaid credits cannot be voided');
    await pay(await again(invoice));
    await note(invoice, '50', 'the rest');
    expect(await inWallet(customer_id)).to.deep.equal([40, 36]);
  });

  it('an adjustment of all of it leaves nothing to be paid', async () => {
    const { customer_id } = await taxed('adjusted');
    await topUp((await purseOf('adjusted')).id, '40');
    const invoice = await oneOff({ customer_id }, '100');
    await note(invoice, '100');
    expect(await again(invoice)).to.include({
      amount_remaining: '0',
      payment_status: 'SUCCEEDED',
      adjustment_amount: '72',
    });
    expect(await inWallet(customer_id)).to.deep.equal([40, 0]);
  });

  it('a refund of the payment gives back the money, and a note afterwards credits alone', async () => {
    const { customer_id, invoice } = await paidWithCredits('refunded');
    const [payment] = (await world.get(`/payments?destination_id=${invoice.id}`)).items;
    await world.post(`/payments/${payment!.id}/refund`, {});
    expect(await again(invoice)).to.include({ refunded_amount: '72', prepaid_credits_returned: '0' });
    // A refund names no line, so the note carries its tax: 30 + 3.60, of which no money is left.
    const rest = await note(invoice, '30');
    expect(rest).to.include({ total_amount: '33.6', total_prepaid_credits_returned: '33.6' });
    expect(await inWallet(customer_id)).to.deep.equal([33.6, 0]);
  });

  it('a cancellation in the middle and 50 of usage leave nothing in the wallet, and 10 of usage 48', async () => {
    for (const [name, calls, left] of [
      ['fifty', 50, 0],
      ['ten', 10, 48],
    ] as const) {
      world.at('2026-04-01T00:00:00Z');
      const { customer_id } = await taxed(name);
      await world.subscribe(name, 'Both');
      const [opening] = await world.invoices(name);
      await pay(opening!);
      world.at('2026-04-10T00:00:00Z');
      await world.use(name, 'calls', calls);
      await world.waitForPipeline();
      world.at('2026-04-16T00:00:00Z');
      await world.cancel(name, { cancellation_type: 'immediate', proration_behavior: 'create_prorations' });
      for (const one of await world.invoices(name))
        if (one.invoice_status === 'DRAFT') await ok('POST', `/invoices/${one.id}/finalize`);
      expect(await inWallet(customer_id), name).to.deep.equal([0, left]);
      for (const one of await world.invoices(name)) expect(one.amount_remaining, name).to.equal('0');
    }
  });

  it('unused time of what credits had paid a part of returns that part to the lots', async () => {
    world.at('2026-04-01T00:00:00Z');
    const { customer_id } = await taxed('seated');
    await topUp((await purseOf('seated')).id, '40');
    await world.subscribe('seated', 'Seats');
    const [opening] = await world.invoices('seated');
    expect(opening).to.include({ total_prepaid_credits_applied: '40', total_tax: '12', amount_remaining: '72' });
    await pay(opening!);
    world.at('2026-04-16T00:00:00Z');
    await world.cancel('seated', { cancellation_type: 'immediate', proration_behavior: 'create_prorations' });
    expect(await inWallet(customer_id)).to.deep.equal([20, 36]);
    const next = await oneOff({ customer_id }, '100');
    expect(next).to.include({ total: '96', amount_remaining: '60' });
  });

  it('what is left over of a change is split as what it gives back was paid', async () => {
    world.at('2026-04-01T00:00:00Z');
    const { customer_id } = await taxed('changing');
    await topUp((await purseOf('changing')).id, '40');
    await world.plan('Tenner', [fixed('20', { invoice_cadence: 'ADVANCE', display_name: 'tenner' })]);
    const { id } = await world.subscribe('changing', 'Seats');
    const [opening] = await world.invoices('changing');
    await pay(opening!);
    world.at('2026-04-16T00:00:00Z');
    await ok('POST', `/subscriptions/${id}/change/execute`, toPlan('Tenner'));
    // 50 come back, 20 of them to lots; 10 are charged, of which the same share, 4, is paid by these: 6 + 1.20 are netted with 30 + 6.
    expect(await inWallet(customer_id)).to.deep.equal([16, 28.8]);
    const netted = (await world.invoices('changing')).at(-1);
    expect(netted).to.include({ total_prepaid_credits_applied: '-16', total_tax: '-4.8', total: '0' });
  });

  it('a dearer plan nets all that comes back, and lots that are there pay before tax', async () => {
    world.at('2026-04-01T00:00:00Z');
    const { customer_id } = await taxed('growing');
    const { id: wallet_id } = await purseOf('growing');
    await topUp(wallet_id, '40');
    const { id } = await world.subscribe('growing', 'Seats');
    const [opening] = await world.invoices('growing');
    await pay(opening!);
    world.at('2026-04-16T00:00:00Z');
    await topUp(wallet_id, '10');
    const preview = await ok('POST', `/subscriptions/${id}/change/preview`, toPlan('More'));
    await ok('POST', `/subscriptions/${id}/change/execute`, toPlan('More'));
    const netted = (await world.invoices('growing')).at(-1);
    // 100 − 50: 20 of credits come back and pay, 10 more are there; (100 − 30) × 1.2 − 36 = 48.
    expect(netted).to.include({
      total_prepaid_credits_applied: '10',
      total_tax: '8',
      total: '48',
      amount_remaining: '48',
    });
    expect(JSON.stringify(preview)).to.include('"48"');
    expect(await inWallet(customer_id)).to.deep.equal([0, 0]);
  });

  it('usage that is corrected gives back as it was paid', async () => {
    world.at('2026-01-01T00:00:00Z');
    const { customer_id } = await taxed('corrected');
    await topUp((await purseOf('corrected')).id, '40');
    await world.subscribe('corrected', 'Calls');
    await world.send([world.event('corrected', 'calls', { n: 100, at: '2026-01-10T00:00:00Z', event_id: 'hundred' })]);
    await world.waitForPipeline();
    await world.on('2026-02-01');
    await world.finalize();
    const [first] = await world.invoices('corrected');
    expect(first).to.include({ total_prepaid_credits_applied: '40', total_tax: '12', amount_remaining: '72' });
    await pay(first!);
    await world.replace('hundred', world.event('corrected', 'calls', { n: 50, at: '2026-01-10T00:00:00Z' }));
    await world.use('corrected', 'calls', 100, { at: '2026-02-10T00:00:00Z' });
    await world.waitForPipeline();
    const preview = await world.preview('corrected');
    await world.on('2026-03-01');
    await world.finalize();
    const next = (await world.invoices('corrected')).at(-1);
    // 100 less 50: the 20 credits of these pay of the 100; 80 × 1.2 − 36.
    const said = { total_prepaid_credits_applied: '0', total_tax: '10', total: '60', amount_remaining: '60' };
    expect(next).to.include(said);
    expect(preview).to.include(said);
    expect(await inWallet(customer_id)).to.deep.equal([0, 0]);
  });

  /** Uses 50 in January, paid by the credits of a wallet, and takes all of it back in February. */
  async function correctedToNothing(name: string, config?: object) {
    world.at('2026-01-01T00:00:00Z');
    await world.customer(name);
    const [wallet] = [await ok('POST', '/wallets', { external_customer_id: name, currency: 'usd', config })];
    await world.subscribe(name, 'Both');
    await pay((await world.invoices(name))[0]!);
    await topUp(wallet.id, '50');
    await world.send([world.event(name, 'calls', { n: 50, at: '2026-01-10T00:00:00Z', event_id: `${name} calls` })]);
    await world.waitForPipeline();
    await world.on('2026-02-01');
    await world.finalize();
    const january = (await world.invoices(name)).at(-1);
    expect(january).to.include({ total_prepaid_credits_applied: '50', amount_remaining: '100' });
    await pay(january!);
    await ok('POST', `/events/${encodeURIComponent(`${name} calls`)}/void`, { reason: 'never was' });
    await world.waitForPipeline();
    const next = async () => {
      await world.waitForPipeline();
      const preview = await world.preview(name);
      await world.on('2026-03-01');
      await world.finalize();
      const made = (await world.invoices(name)).at(-1);
      for (const field of ['total_prepaid_credits_applied', 'total', 'amount_remaining'] as const)
        expect(preview[field], `${field} of the preview`).to.equal(made![field]);
      return made;
    };
    return { wallet, next };
  }
  const balanceOf = async ({ id }: Wallet) => {
    const { real_time_balance } = await world.get(`/wallets/${id}/balance/real-time`);
    return Number(real_time_balance);
  };

  it('credits of a wallet for usage that come back pay no seat', async () => {
    const { wallet, next } = await correctedToNothing('promised');
    expect(await balanceOf(wallet)).to.equal(0);
    expect(await next()).to.include({ total_prepaid_credits_applied: '-50', total: '100', amount_remaining: '100' });
    expect(await balanceOf(wallet)).to.equal(50);
    expect(await inWallet(world.id('customer promised'))).to.deep.equal([50, 0]);
  });

  it('they pay usage of the next invoice, and the balance in real time counts on it', async () => {
    const { wallet, next } = await correctedToNothing('used again');
    await topUp(wallet.id, '10');
    await world.use('used again', 'calls', 30, { at: '2026-02-10T00:00:00Z' });
    await world.waitForPipeline();
    expect(await balanceOf(wallet)).to.equal(10);
    expect(await next()).to.include({ total_prepaid_credits_applied: '-20', total: '100', amount_remaining: '100' });
    expect(await balanceOf(wallet)).to.equal(30);
  });

  it('those of a wallet for all prices pay the seat', async () => {
    const { wallet, next } = await correctedToNothing('for all', { allowed_price_types: ['ALL'] });
    expect(await next()).to.include({ total_prepaid_credits_applied: '0', total: '50', amount_remaining: '50' });
    expect(await balanceOf(wallet)).to.equal(-50);
  });

  it('a wallet for usage pays the usage with its tax, as the preview says', async () => {
    world.at('2026-01-01T00:00:00Z');
    const { customer_id } = await taxed('used');
    await purseOf('used', { config: { allowed_price_types: ['USAGE'] } });
    const before = await oneOff({ customer_id }, '100');
    await pay(before);
    await note(before, '100');
    await world.subscribe('used', 'Both');
    await world.use('used', 'calls', 50, { at: '2026-01-10T00:00:00Z' });
    await world.waitForPipeline();
    world.at('2026-01-31T00:00:00Z');
    const preview = await world.preview('used');
    await world.on('2026-02-01');
    await world.finalize();
    const final = (await world.invoices('used')).at(-1);
    const said = { total: '180', total_credits_applied_after_tax: '60', amount_paid: '60', amount_remaining: '120' };
    expect(preview).to.include(said);
    expect(final).to.include(said);
    expect(await inWallet(customer_id)).to.deep.equal([0, 60]);
  });

  it('invoices that become final at one moment never use a credit twice, and a repeated request uses none', async () => {
    const { customer_id } = await taxed('racing');
    const before = await oneOff({ customer_id }, '100');
    await pay(before);
    await note(before, '100');
    const amounts = { amount_due: '40', total: '40', subtotal: '40' };
    const drafts: Invoice[] = [];
    for (let n = 0; n < 5; n++)
      drafts.push(await ok('POST', '/invoices', { customer_id, currency: 'usd', ...amounts }));
    const finalize = ({ id }: Invoice) => world.api.request('POST', `/invoices/${id}/finalize`, { body: {} });
    const answers = await Promise.all([...drafts, ...drafts].map(finalize));
    expect(answers.filter(({ status }) => status < 300).length, 'each becomes final once').to.equal(5);
    const finals = await Promise.all(drafts.map(again));
    const used = finals.map((one) => Number(one.total_credits_applied_after_tax));
    expect(used.sort((a, b) => a - b)).to.deep.equal([0, 0, 24, 48, 48]);
    for (const one of finals)
      expect(Number(one.amount_remaining)).to.equal(48 - Number(one.total_credits_applied_after_tax));
    expect(await inWallet(customer_id)).to.deep.equal([0, 0]);
  });

  it('a credit stays with its kind: one that a person puts in with the reason of a note pays before tax', async () => {
    const { customer_id } = await taxed('by hand');
    await topUp((await purseOf('by hand')).id, '30', { transaction_reason: 'CREDIT_NOTE' });
    expect(await inWallet(customer_id)).to.deep.equal([30, 0]);
    const invoice = await oneOff({ customer_id }, '100');
    expect(invoice).to.include({ total_prepaid_credits_applied: '30', total_tax: '14', total: '84' });
  });

  it('a wallet that counts at another rate gives each kind its own, to the minor unit', async () => {
    const { customer_id } = await taxed('thirds');
    const wallet = await purseOf('thirds', { conversion_rate: '3' });
    await topUp(wallet.id, '10');
    const invoice = await oneOff({ customer_id }, '100');
    expect(invoice).to.include({ total_prepaid_credits_applied: '30', total_tax: '14', amount_remaining: '84' });
    await pay(invoice);
    await note(invoice, '33.33');
    // 30 × 33.33 ÷ 100 = 10.00; 23.33 and 4.67 of tax are 28.00.
    const next = await oneOff({ customer_id }, '100');
    expect(next).to.include({
      total_prepaid_credits_applied: '10',
      total_tax: '18',
      total_credits_applied_after_tax: '28',
      amount_remaining: '80',
    });
    expect((await world.get(`/wallets/${wallet.id}`)).balance).to.equal('0');
  });

  it('what is held of a wallet stays, of both kinds', async () => {
    const { customer_id } = await taxed('holding');
    const before = await oneOff({ customer_id }, '100');
    await pay(before);
    await note(before, '100');
    const { id: wallet_id } = (await world.get(`/customers/${customer_id}/wallets`))[0]!;
    await topUp(wallet_id, '10');
    const held = await ok('POST', '/entitlements/check', { customer_id, wallet_id, credits: '100', hold: {} });
    expect(held.allowed).to.equal(true);
    const next = await oneOff({ customer_id }, '100');
    // The hold leaves 30 of the 10 before tax and 120 after it: 10 and 20; (100 − 10) × 1.2 − 20.
    expect(next).to.include({
      total_prepaid_credits_applied: '10',
      total_credits_applied_after_tax: '20',
      amount_remaining: '88',
    });
  });

  it('a payment by hand is never less than what credits have paid', async () => {
    const { customer_id } = await taxed('by credits');
    const before = await oneOff({ customer_id }, '50');
    await pay(before);
    await note(before, '50');
    const next = await oneOff({ customer_id }, '100');
    expect(next).to.include({ amount_paid: '60', amount_remaining: '60', payment_status: 'PENDING' });
    const say = (body: object) => world.api.request('PUT', `/invoices/${next.id}/payment`, { body });
    const less = await say({ payment_status: 'FAILED', amount: '59' });
    expect([less.status, less.body.details!.field]).to.deep.equal([400, 'amount']);
    expect((await say({ payment_status: 'SUCCEEDED' })).status).to.equal(200);
    expect(await again(next)).to.include({ amount_paid: '120', amount_remaining: '0' });
    await ok('POST', `/invoices/${next.id}/void`);
    expect(await inWallet(customer_id)).to.deep.equal([0, 120]);
  });
});
