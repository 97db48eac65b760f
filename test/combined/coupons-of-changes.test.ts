/** Coupons behind a change: a fixed one takes again what comes back of itself, one of a line goes on with the line. */
import { expect } from 'chai';
import { trySync } from '../../actions/lifecycle/subscriptions/sync-plan.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

type Fields = Record<string, unknown>;

describe('coupons behind a change', () => {
  let world: World;
  let seats: string;
  let calls: string;
  beforeEach(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await world.meter('calls');
    const plan = await world.plan('Seats', [fixed('31', { invoice_cadence: 'ADVANCE' }), usage('calls', '1')]);
    const { items } = await world.get(`/prices?entity_ids=${plan.id ?? world.id('plan Seats')}`);
    seats = items.find(({ type }) => type === 'FIXED')!.id;
    calls = items.find(({ type }) => type === 'USAGE')!.id;
    const coupon = (coupon_code: string, fields: Fields) =>
      world.post('/coupons', { name: coupon_code, coupon_code, cadence: 'forever', ...fields });
    await coupon('F7', { type: 'fixed', amount_off: '7', currency: 'usd' });
    await coupon('P15', { type: 'percentage', percentage_off: '15' });
    await coupon('HALF', { type: 'percentage', percentage_off: '50' });
  });
  afterEach(() => world.stop());

  const invoicesOf = async (customer: string) => {
    const all = await world.invoices(customer);
    return all.sort((a, b) => a.billing_sequence! - b.billing_sequence!);
  };
  const linesOf = async (customer: string) =>
    (await world.api.services.postgres('subscription_line_items')).filter(
      (line) => line.subscription_id === world.id(`subscription ${customer}`) && line.end_date === null,
    );
  const lineOf = async (customer: string, type: string) =>
    (await linesOf(customer)).find(({ price_type }) => price_type === type).id;
  const quantity = async (customer: string, value: string, at: string) => {
    world.at(at);
    const id = await lineOf(customer, 'FIXED');
    const asked = { type: 'quantity_change', quantity_change_params: { line_items: [{ id, quantity: value }] } };
    return world.post(`/subscriptions/${world.id(`subscription ${customer}`)}/modify/execute`, asked);
  };
  const three = () => ({ override_line_items: [{ price_id: seats, quantity: '3' }] });

  for (const [codes, opening, change] of [
    [['F7', 'P15'], '19.9', '35.7'],
    [['P15', 'F7'], '20.95', '35.7'],
  ] as const)
    it(`${codes.join(' and ')}: what comes back of the fixed one is taken again, and no more`, async () => {
      const customer = codes.join(' ');
      await world.subscribe(customer, 'Seats', { coupons: codes, ...three() });
      await quantity(customer, '5', '2026-01-11T00:00:00Z');
      const [first, second] = await invoicesOf(customer);
      expect([first!.total_discount, second!.subtotal]).to.deep.equal([opening, '42']);
      // 63 of 93 come back, and 105 are charged: with 4.74 of the 7, and 15 % of what is left.
      const discount = codes[0] === 'F7' ? ['-13.48', '19.78'] : ['-14.19', '20.49'];
      const told = second!.line_items.map((line) => line.invoice_level_discount);
      expect(told.sort()).to.deep.equal(discount);
      expect(second!.total).to.equal(codes[0] === 'F7' ? change : '35.7');
      await quantity(customer, '5.5', '2026-01-21T00:00:00Z');
      const third = (await invoicesOf(customer)).at(-1);
      // 55 of 105 come back with 2.48 of the 4.74.
      const fixed_part = codes[0] === 'F7' ? '2.48 + 15 % of 58.02' : '15 % of 60.5 + 2.48';
      const taken = third!.line_items.find(({ amount }) => amount === '60.5')!.invoice_level_discount;
      expect(taken, fixed_part).to.equal(codes[0] === 'F7' ? '11.18' : '11.56');
    });

  it('a coupon of a line works on after changes of its quantity and its price', async () => {
    const line_item_coupons = { [seats]: ['HALF'], [calls]: ['HALF'] };
    await world.subscribe('line', 'Seats', { line_item_coupons, ...three() });
    await quantity('line', '4', '2026-01-11T00:00:00Z');
    const [, change] = await invoicesOf('line');
    expect([change!.subtotal, change!.total_discount, change!.total]).to.deep.equal(['21', '10.5', '10.5']);
    const usage_line = await lineOf('line', 'USAGE');
    const priced = { amount: '2', effective_from: '2026-02-01T00:00:00Z' };
    const put = await world.api.request('PUT', `/subscriptions/lineitems/${usage_line}`, { body: priced });
    expect(put.status, put.text).to.equal(200);
    await world.on('2026-02-01');
    await world.finalize();
    await world.use('line', 'calls', 10);
    await world.on('2026-03-01');
    const invoices = await invoicesOf('line');
    const february = invoices.at(-1);
    expect(february!.line_items.map((line) => [line.amount, line.line_item_discount]).sort()).to.deep.equal([
      ['124', '62'],
      ['20', '10'],
    ]);
  });

  it('a coupon of a line works on after its price was changed for the plan', async () => {
    await world.subscribe('sync', 'Seats', { line_item_coupons: { [seats]: ['HALF'] }, ...three() });
    world.at('2026-01-15T00:00:00Z');
    const dearer = { amount: '40', effective_from: '2026-02-01T00:00:00Z' };
    const changed = await world.api.request('PUT', `/prices/${seats}`, { body: dearer });
    expect(changed.status, changed.text).to.be.within(200, 299);
    const { workflow_id } = await world.post(`/plans/${world.id('plan Seats')}/sync/subscriptions`, {});
    const { services, scope } = world.api;
    const attempt = { attempt: 1, is_last: false, clock: () => world.now, signal: AbortSignal.timeout(60_000) };
    const synced = await trySync(services, { ...scope, workflow_id }, { ...attempt, timeout_ms: 60_000 });
    expect(synced).to.equal('completed');
    await world.on('2026-02-01');
    const last = (await invoicesOf('sync')).at(-1);
    const line = last!.line_items.find(({ price_type }) => price_type === 'FIXED');
    expect(new Set([line!.line_item_discount, line!.amount])).to.deep.equal(new Set(['60', '120']));
  });
});
