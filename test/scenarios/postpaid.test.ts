/**
 * Postpaid wallets pay by themselves (docs/rules/payments.md, "Collected by itself"): what they can pay is left to them, the rest is
 * charged first, and credits of who cannot pay the rest are kept where an invoice is paid as a whole.
 */
import { expect } from 'chai';
import { Decimal } from '../../core/foundation/decimal.ts';
import type { Invoice, ListedInvoice, Subscription } from '../support/answers.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

const START = '2031-01-01T00:00:00Z';

describe('scenario: postpaid wallets pay by themselves', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: START, test_clock: true });
    const { scope, services } = world.api;
    await services.postgres('environments').where({ id: scope.environment_id }).update({ type: 'development' });
    await world.api.request('PUT', '/settings/payment_config', { body: { value: { default_gateway: 'sandbox' } } });
    await world.meter('calls');
    await world.plan('Pro', [fixed('31', { invoice_cadence: 'ADVANCE' }), usage('calls', '1')]);
  });
  after(() => world.stop());

  async function funded(name: string, credits: string, card: string | null, fields: object = {}): Promise<void> {
    await world.customer(name);
    const wallet = { wallet_type: 'POST_PAID', initial_credits_to_load: credits, ...fields };
    await world.post('/wallets', { external_customer_id: name, currency: 'usd', ...wallet });
    if (card !== null)
      await world.post(`/payments/customers/${world.id(`customer ${name}`)}/methods`, {
        gateway_payment_method_id: `pm_sandbox_${card}`,
      });
  }
  const creditsOf = async (name: string): Promise<string> =>
    (await world.get(`/customers/${world.id(`customer ${name}`)}/wallets`))[0]!.credit_balance;
  const paymentsOf = async (
    invoice: ListedInvoice | NonNullable<Subscription['latest_invoice']>,
  ): Promise<[string, string, string][]> => {
    const { items } = await world.get(`/payments?destination_id=${invoice.id}&order=asc&sort=id`);
    return items.map((one) => [one.payment_method_type, one.amount, one.payment_status]);
  };
  const attempt = (invoice: Invoice | NonNullable<Subscription['latest_invoice']>) =>
    world.api.request('POST', `/invoices/${invoice.id}/payment/attempt`);
  const create = (name: string, fields: { payment_behavior: string }) =>
    world.api.request('POST', '/subscriptions', {
      body: {
        external_customer_id: name,
        plan_id: world.id('plan Pro'),
        currency: 'usd',
        billing_period: 'MONTHLY',
        ...fields,
      },
    });

  const ALL_BY_CREDITS = [['CREDITS', '31', 'SUCCEEDED']];
  const PART = [['CREDITS', '20', 'SUCCEEDED']];
  const BOTH = [
    ['CARD', '11', 'SUCCEEDED'],
    ['CREDITS', '20', 'SUCCEEDED'],
  ];
  const PART_AND_TRIES = [
    ['CARD', '11', 'PENDING'],
    ['CREDITS', '20', 'SUCCEEDED'],
  ];
  type Case = [
    behavior: string,
    credits: string,
    card: string | null,
    state: string | null,
    left: string,
    payments: string[][],
  ];
  const CASES: Case[] = [
    ['default_active', '100', null, 'active', '69', ALL_BY_CREDITS],
    ['allow_incomplete', '100', null, 'active', '69', ALL_BY_CREDITS],
    ['error_if_incomplete', '100', null, 'active', '69', ALL_BY_CREDITS],
    ['default_active', '31', 'declined', 'active', '0', ALL_BY_CREDITS],
    ['error_if_incomplete', '31', 'declined', 'active', '0', ALL_BY_CREDITS],
    ['default_active', '20', null, 'active', '0', PART],
    ['allow_incomplete', '20', null, 'incomplete', '0', PART],
    ['error_if_incomplete', '20', null, null, '20', []],
    ['default_active', '20', 'card', 'active', '0', BOTH],
    ['allow_incomplete', '20', 'card', 'active', '0', BOTH],
    ['error_if_incomplete', '20', 'card', 'active', '0', BOTH],
    ['default_active', '20', 'declined', 'active', '0', PART_AND_TRIES],
    ['allow_incomplete', '20', 'declined', 'incomplete', '0', PART_AND_TRIES],
    ['error_if_incomplete', '20', 'declined', null, '20', [['CARD', '11', 'FAILED']]],
  ];

  // The clock moves first: each advance bills every subscription that is there.
  it('renewals, too, by the clock; an attempt by hand charges the same', async () => {
    for (const name of ['by itself', 'by hand']) await funded(name, '100', null);
    await world.subscribe('by itself', 'Pro');
    const sent = { collection_method: 'send_invoice', payment_behavior: 'default_active' };
    await world.subscribe('by hand', 'Pro', sent);
    await world.advance('2031-02-02');
    const [mine, others] = [await world.invoices('by itself'), await world.invoices('by hand')];
    expect(mine.map(({ payment_status }) => payment_status)).to.deep.equal(['SUCCEEDED', 'SUCCEEDED']);
    expect(await creditsOf('by hand')).to.equal('100');
    for (const one of others) expect((await attempt(one)).status).to.equal(200);
    expect([await creditsOf('by itself'), await creditsOf('by hand')]).to.deep.equal(['38', '38']);
    const each = async (invoices: Invoice[]) => Promise.all(invoices.map(paymentsOf));
    expect(await each(mine)).to.deep.equal(await each(others));
  });

  it('what a card pays late is met by the wallet when it is there', async () => {
    await funded('late', '20', 'pays_late');
    const { latest_invoice } = await world.subscribe('late', 'Pro', { payment_behavior: 'allow_incomplete' });
    expect(await creditsOf('late')).to.equal('20');
    const [before] = await world.invoices('late');
    expect([before!.payment_status, before!.amount_paid]).to.deep.equal(['PROCESSING', '0']);
    await world.advance('2031-02-07');
    expect(await creditsOf('late')).to.equal('0');
    expect((await world.subscription('late')).subscription_status).to.equal('active');
    expect(await paymentsOf(latest_invoice!)).to.deep.equal(BOTH);
  });

  it('a wallet for usage pays that, once, and the card pays the rest', async () => {
    await funded('usage', '100', 'card', { config: { allowed_price_types: ['USAGE'] } });
    const { latest_invoice } = await world.subscribe('usage', 'Pro');
    expect(await paymentsOf(latest_invoice!)).to.deep.equal([['CARD', '31', 'SUCCEEDED']]);
    await world.use('usage', 'calls', 7);
    await world.advance('2031-03-09');
    const [, second] = await world.invoices('usage');
    expect(await paymentsOf(second!)).to.deep.equal([
      ['CARD', '31', 'SUCCEEDED'],
      ['CREDITS', '7', 'SUCCEEDED'],
    ]);
    expect(await creditsOf('usage')).to.equal('93');
  });

  for (const [payment_behavior, credits, card, state, left, payments] of CASES)
    it(`${payment_behavior}, ${credits} credits, ${card ?? 'no'} card: ${state ?? 'refused'}`, async () => {
      const name = `${payment_behavior} ${credits} ${card}`;
      await funded(name, credits, card);
      const made = await create(name, { payment_behavior });
      const { items } = await world.get(`/invoices?customer_id=${world.id(`customer ${name}`)}`);
      expect(await creditsOf(name)).to.equal(left);
      if (state === null) expect(made.status, made.text).to.equal(400);
      else {
        expect(made.body.subscription_status, made.text).to.equal(state);
        const paid =
          state === 'incomplete' || credits === '20' ? new Decimal(31).minus(items[0]!.amount_remaining) : 31;
        expect(items[0]!.amount_paid).to.equal(paid.toString());
      }
      if (items.length > 0) expect(await paymentsOf(items[0]!)).to.deep.equal(payments);
    });

  it('many who ask at one moment take once', async () => {
    await funded('many', '100', null);
    const sent = { collection_method: 'send_invoice', payment_behavior: 'default_active' };
    const { latest_invoice } = await world.subscribe('many', 'Pro', sent);
    const answers = await Promise.all(Array.from({ length: 6 }, () => attempt(latest_invoice!)));
    expect(answers.filter(({ status }) => status === 200).length).to.be.greaterThan(0);
    expect(await creditsOf('many')).to.equal('69');
    const paid = (await paymentsOf(latest_invoice!)).filter(([, , status]) => status === 'SUCCEEDED');
    expect(paid).to.deep.equal(ALL_BY_CREDITS);
  });

  it('what it has paid comes back to it by a refund of the payment alone; a credit note and a void give prepaid credits', async () => {
    const walletsOf = async (name: string) => {
      const wallets = await world.get(`/customers/${world.id(`customer ${name}`)}/wallets`);
      return wallets.map(({ wallet_type, credit_balance }) => `${wallet_type} ${credit_balance}`).sort();
    };
    const paidBy = async (name: string) => {
      await funded(name, '50', null);
      const { latest_invoice } = await world.subscribe(name, 'Pro');
      expect([latest_invoice!.payment_status, await creditsOf(name)]).to.deep.equal(['SUCCEEDED', '19']);
      return latest_invoice;
    };
    const noted = await paidBy('noted');
    const line_items = [{ invoice_line_item_id: noted!.line_items![0]!.id, amount: '20' }];
    await world.post('/creditnotes', { invoice_id: noted!.id, reason: 'BILLING_ERROR', line_items });
    expect(await walletsOf('noted')).to.deep.equal(['POST_PAID 19', 'PRE_PAID 20']);
    const voided = await paidBy('voided');
    expect((await world.api.request('POST', `/invoices/${voided!.id}/void`)).status).to.equal(200);
    expect(await walletsOf('voided')).to.deep.equal(['POST_PAID 19', 'PRE_PAID 31']);
    const refunded = await paidBy('refunded');
    const { items } = await world.get(`/payments?destination_id=${refunded!.id}`);
    await world.post(`/payments/${items[0]!.id}/refund`, { amount: '20' });
    expect(await walletsOf('refunded')).to.deep.equal(['POST_PAID 39']);
  });
});
