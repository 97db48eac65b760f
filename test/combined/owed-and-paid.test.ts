/**
 * A law of money (docs/rules/credit-notes.md, "Adjustments of changes"): after every step of a random history of changes, payments and
 * a cancellation, what is owed, plus what was paid, less what is in the wallet, is what the invoices charge in all; and the wallet never holds
 * more than was paid. After the cancellation that is the worth of what was served.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import { roundMoney } from '../../core/foundation/money.ts';
import { samples } from '../support/samples.ts';
import { fixed, startWorld, type World } from '../support/world.ts';

const PRICE = '31.37';
const PERIOD_MS = 31 * 86_400_000;
const BEGIN = Date.UTC(2026, 0, 1);

const step = fc.record({
  /** Minutes since the step before. */
  after: fc.integer({ min: 0, max: 8_000 }),
  /** Changed to; unchanged where it is so already. */
  quantity: fc.integer({ min: 1, max: 4 }),
  /** Percent that is paid of the open invoice with this number. */
  pays: fc.constantFrom(0, 0, 33, 100),
  nth: fc.nat(5),
});
const history = fc.record({
  steps: fc.array(step, { minLength: 1, maxLength: 4 }),
  ends_after: fc.integer({ min: 0, max: 5_000 }),
  is_taxed: fc.boolean(),
});

describe('law: what is owed, paid and in the wallet adds up', () => {
  let world: World;
  before(async () => {
    world = await startWorld();
    await world.plan('Seats', [fixed(PRICE, { invoice_cadence: 'ADVANCE', display_name: 'seat' })]);
    await world.post('/taxes/rates', { name: 'VAT', code: 'vat', percentage_value: '19' });
  });
  after(() => world.stop());

  const path = <Verb extends string>(customer: string, verb: Verb) =>
    `/subscriptions/${world.id(`subscription ${customer}`)}/${verb}` as const;
  const sum = (values: readonly string[]) => sumDecimals(values.map((value) => new Decimal(value)));

  /** Debt and payments less the wallet come to the lines of all invoices, with their tax. Answers the sum of these lines. */
  async function checkLaw(customer: string, paid: Decimal): Promise<Decimal> {
    const invoices = await world.invoices(customer);
    const live = invoices.filter(({ invoice_status }) => invoice_status !== 'VOIDED');
    const lines = live.flatMap(({ line_items }) => line_items);
    const charged = sum(lines.map(({ amount }) => amount)).plus(sum(lines.map(({ tax_amount }) => tax_amount)));
    const owed = sum(live.map(({ amount_remaining }) => amount_remaining));
    const wallets = await world.get(`/customers/${world.id(`customer ${customer}`)}/wallets`);
    const inWallet = sum(wallets.map(({ balance }) => balance));
    const said = `owed ${owed}, paid ${paid}, wallet ${inWallet}: ${(await world.statements(customer)).join('\n')}`;
    expect(owed.plus(paid).minus(inWallet).toFixed(), said).to.equal(charged.toFixed());
    expect(inWallet.lte(paid), said).to.equal(true);
    expect(inWallet.isZero() || owed.isZero(), said).to.equal(true);
    return charged;
  }

  async function setQuantity(customer: string, quantity: number): Promise<void> {
    const { line_items } = await world.subscription(customer);
    const line = line_items.find(({ end_date }) => end_date === null);
    const quantity_change_params = { line_items: [{ id: line!.id, quantity: String(quantity) }] };
    await world.post(path(customer, 'modify/execute'), { type: 'quantity_change', quantity_change_params });
  }

  async function payOne(customer: string, { pays, nth }: { pays: number; nth: number }): Promise<Decimal> {
    const open = (await world.invoices(customer)).filter(
      ({ invoice_status, amount_remaining }) => invoice_status === 'FINALIZED' && new Decimal(amount_remaining).gt(0),
    );
    if (pays === 0 || open.length === 0) return new Decimal(0);
    const { id: destination_id, currency, amount_remaining } = open[nth % open.length]!;
    const amount = roundMoney(new Decimal(amount_remaining).times(pays).dividedBy(100), currency);
    if (amount.isZero()) return amount;
    const received = { destination_type: 'INVOICE', destination_id, payment_method_type: 'OFFLINE', currency };
    await world.post('/payments', { ...received, amount: amount.toFixed(), metadata: { at: String(world.now) } });
    return amount;
  }

  /** Seats of a time cost the period's price until its end less that until its beginning. */
  function worth(quantity: number, from: number, to: number): Decimal {
    const until = (at: number) =>
      roundMoney(
        new Decimal(PRICE)
          .times(quantity)
          .times(at - BEGIN)
          .dividedBy(PERIOD_MS),
        'usd',
      );
    return until(to).minus(until(from));
  }

  it('after every step of random histories', async () => {
    let names = 0;
    await fc.assert(
      fc.asyncProperty(history, async ({ steps, ends_after, is_taxed }) => {
        const customer = `customer ${++names}`;
        world.at(new Date(BEGIN).toISOString());
        await world.customer(customer);
        const taxed = { tax_rate_code: 'vat', entity_type: 'customer', entity_id: world.id(`customer ${customer}`) };
        if (is_taxed) await world.post('/taxes/associations', taxed);
        await world.subscribe(customer, 'Seats');
        let [now, since, quantity, paid, served] = [BEGIN, BEGIN, 1, new Decimal(0), new Decimal(0)];
        for (const one of steps) {
          now += one.after * 60_000;
          world.at(new Date(now).toISOString());
          paid = paid.plus(await payOne(customer, one));
          await checkLaw(customer, paid);
          if (one.quantity === quantity) continue;
          await setQuantity(customer, one.quantity);
          served = served.plus(worth(quantity, since, now));
          [quantity, since] = [one.quantity, now];
          await checkLaw(customer, paid);
        }
        now += ends_after * 60_000;
        world.at(new Date(now).toISOString());
        await world.cancel(customer, { cancellation_type: 'immediate', proration_behavior: 'create_prorations' });
        const charged = await checkLaw(customer, paid);
        served = served.plus(worth(quantity, since, now));
        if (!is_taxed) expect(charged.toFixed()).to.equal(served.toFixed());
      }),
      { numRuns: samples(8), endOnFailure: true },
    );
  }).timeout(900_000);
});
