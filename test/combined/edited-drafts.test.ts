/** What somebody edits on a draft, what becomes of it when it is final, and of what comes after it. */
import { expect } from 'chai';
import type { Invoice, InvoiceLine } from '../support/answers.ts';
import { check, provenBy } from '../support/verifier.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

type Fields = Record<string, unknown>;

describe('edited drafts', () => {
  let world: World;
  let names = 0;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await world.meter('calls');
    await world.plan('Pro', [usage('calls', '0.1'), fixed('50', { invoice_cadence: 'ADVANCE' })]);
    const coupon = (coupon_code: string, fields: Fields) =>
      world.post('/coupons', { name: coupon_code, coupon_code, cadence: 'forever', type: 'percentage', ...fields });
    await coupon('TENTH', { percentage_off: '10' });
    await coupon('HALF', { percentage_off: '50', max_redemptions: 1 });
    await world.post('/taxes/rates', { name: 'VAT', code: 'vat', percentage_value: '20' });
  });
  after(() => world.stop());

  const customer = () => `customer ${++names}`;
  const invoiceOf = async (name: string) => {
    const { items } = await world.get(`/invoices?subscription_id=${world.id(`subscription ${name}`)}`);
    items.sort((a, b) => b.billing_sequence! - a.billing_sequence!);
    return world.get(`/invoices/${items[0]!.id}?expand=coupon_applications`);
  };
  const edit = (id: string, body: Fields) => world.api.request('POST', `/invoices/${id}/compute?sync=true`, { body });
  const edited = async (id: string, body: Fields) => {
    const answer = await edit(id, body);
    expect(answer.status, answer.text).to.equal(200);
    return (answer.body as { invoice: Invoice }).invoice;
  };
  const stated = (
    { subscription_line_item_id, period_start, period_end, amount, quantity }: InvoiceLine,
    other = {},
  ) => ({
    subscription_line_item_id,
    period_start,
    period_end,
    amount,
    quantity,
    ...other,
  });
  const money = ({ subtotal, total_discount, total_tax, total }: Invoice) => [
    subtotal,
    total_discount,
    total_tax,
    total,
  ];
  const lines = ({ line_items }: Invoice) => line_items.map((line) => [line.display_name, line.quantity, line.amount]);
  const refused = async (id: string, body: Fields) => {
    const answer = await edit(id, body);
    return [answer.status, answer.body.details?.field ?? answer.body.code];
  };

  /** A draft of January: 100 calls for 10, and 50 for February. */
  async function draft(name: string, terms: Fields = {}, days: [string, string] = ['2026-01-01', '2026-02-01']) {
    await world.on(days[0], () => world.subscribe(name, 'Pro', terms));
    await world.finalize();
    await world.use(name, 'calls', 100);
    await world.waitForPipeline();
    await world.on(days[1]);
    return invoiceOf(name);
  }

  // The latest dates come first: what goes on is billed by every later date of another test.
  it('are refused where they do not add up, name what is not there, or change what gives back or is final', async () => {
    const name = customer();
    const { id, line_items } = await draft(name, {}, ['2026-11-01', '2026-12-01']);
    const [calls] = line_items;
    const other = { period_start: '2025-01-01T00:00:00Z' };
    expect(await refused(id, { line_items: [stated(calls!)], total: '11' })).to.deep.equal([400, 'total']);
    expect(await refused(id, { total: '5' })).to.deep.equal([400, 'total']);
    expect(await refused(id, { line_items: [stated(calls!, { amount: '-1' })] })).to.deep.equal([
      400,
      'line_items[0].amount',
    ]);
    expect(await refused(id, { line_items: [stated(calls!, { amount: '1.001' })] })).to.deep.equal([
      400,
      'line_items[0].amount',
    ]);
    expect(await refused(id, { line_items: [stated(calls!, other)] })).to.deep.equal([
      400,
      'line_items[0].subscription_line_item_id',
    ]);
    expect(await refused(id, { line_items: [stated(calls!), stated(calls!)] })).to.deep.equal([
      400,
      'line_items[1].subscription_line_item_id',
    ]);
    expect(await refused(id, { due_date: '2020-01-01T00:00:00Z' })).to.deep.equal([400, 'due_date']);
    expect(await refused(id, { invoice_coupons: [{ coupon_id: 'none' }] })).to.deep.equal([400, 'invoice_coupons[0]']);
    expect(await invoiceOf(name)).to.deep.include({ is_manually_edited: false, total: '60' });
    await world.finalize();
    expect(await refused(id, { line_items: [stated(calls!)] })).to.deep.equal([400, 'invalid_operation']);
  });

  it('of nothing are skipped, and a skipped one that charges something is a draft', async () => {
    const name = customer();
    const { id, line_items } = await draft(name, {}, ['2026-10-01', '2026-11-01']);
    const none = await edited(id, { line_items: [] });
    expect([none.invoice_status, none.line_items.length, none.total]).to.deep.equal(['SKIPPED', 2, '0']);
    const some = await edited(id, { line_items: [stated(line_items[0]!)], prepared_tax_rates: await rates() });
    expect([some.invoice_status, some.total]).to.deep.equal(['DRAFT', '10']);
    await world.post(`/invoices/${id}/finalize`, {});
    expect(money(await invoiceOf(name))).to.deep.equal(['10', '0', '2', '12']);
  });

  it('redeem coupons, give them back with the next edit, and are as computed again once recalculated', async () => {
    const name = customer();
    const before = await draft(name, {}, ['2026-08-01', '2026-09-01']);
    const half = await world.get('/coupons/code/HALF');
    const redeemed = async () => (await world.get('/coupons/code/HALF')).total_redemptions;
    const [calls, seat] = before.line_items;
    const with_coupon = await edited(before.id, { invoice_coupons: [{ coupon_id: half.id }] });
    expect([money(with_coupon), await redeemed()]).to.deep.equal([['60', '30', '0', '30'], 1]);
    // Kept where an edit states none, also for other lines.
    const kept = await edited(before.id, { line_items: [stated(calls!, { amount: '0' }), stated(seat!)] });
    expect([money(kept), await redeemed()]).to.deep.equal([['50', '25', '0', '25'], 1]);
    const moved = await edited(before.id, { line_item_coupons: [{ coupon_id: half.id, line_item_id: '0' }] });
    expect([money(moved), await redeemed()]).to.deep.equal([['50', '0', '0', '50'], 0]);
    await edited(before.id, { invoice_coupons: [{ coupon_id: half.id }] });
    const again = await world.post(`/invoices/${before.id}/recalculate-v2`, {});
    expect([money(again), again.is_manually_edited, await redeemed()]).to.deep.equal([
      ['60', '0', '0', '60'],
      false,
      0,
    ]);
    expect(lines(again)).to.deep.equal(lines(before));
  });

  it('of what was charged in advance give back their share of what was agreed on', async () => {
    const name = customer();
    const { id, line_items } = await draft(name, {}, ['2026-06-01', '2026-07-01']);
    const [calls, seat] = line_items;
    await edited(id, { line_items: [stated(calls!), stated(seat!, { amount: '31' })] });
    await world.finalize();
    await world.pay(name);
    await world.on('2026-07-11', () =>
      world.post(`/subscriptions/${world.id(`subscription ${name}`)}/cancel`, {
        cancellation_type: 'immediate',
        proration_behavior: 'create_prorations',
      }),
    );
    // 21 of the 31 days that were agreed on at 31.
    const [wallet] = await world.get(`/customers/${world.id(`customer ${name}`)}/wallets`);
    expect(wallet?.balance).to.equal('21');
  });

  it('are not charged again by the next invoice, which bills what came late and gives back no more than was billed', async () => {
    const [late, less] = [customer(), customer()];
    await world.on('2026-03-01', ...[late, less].map((name) => () => world.subscribe(name, 'Pro')));
    await world.send(
      [late, less].map((name) => world.event(name, 'calls', { n: 100, at: '2026-03-05T00:00:00Z', event_id: name })),
    );
    await world.waitForPipeline();
    await world.on('2026-04-01');
    for (const name of [late, less]) {
      const { id, line_items } = await invoiceOf(name);
      const [calls, seat] = line_items;
      await edited(id, { line_items: [stated(calls!, { amount: '4' }), stated(seat!)] });
    }
    await world.finalize();
    await world.send([world.event(late, 'calls', { n: 50, at: '2026-03-06T00:00:00Z', event_id: `${late} late` })]);
    await world.replace(less, world.event(less, 'calls', { n: 10, at: '2026-03-05T00:00:00Z' }));
    await world.waitForPipeline();
    await world.on('2026-05-01');
    const corrections = async (name: string) =>
      (await invoiceOf(name)).line_items
        .filter((line) => line.parent_line_item_id)
        .map(({ amount, quantity }) => [quantity, amount]);
    expect(await corrections(late)).to.deep.equal([['50', '5']]);
    // It was computed as 10 and costs 1 now, and 4 were billed.
    expect(await corrections(less)).to.deep.equal([['-90', '-4']]);
    await world.finalize();
    await world.on('2026-06-01');
    expect([await corrections(late), await corrections(less)]).to.deep.equal([[], []]);
  });

  it('say what was computed, are discounted and taxed as any, and stay when they are computed and final', async () => {
    const name = customer();
    const before = await draft(name, {
      coupons: ['TENTH'],
      tax_rate_overrides: [{ tax_rate_code: 'vat', currency: 'usd' }],
    });
    const [calls, seat] = before.line_items;
    expect([lines(before), before.is_manually_edited]).to.deep.equal([
      [
        ['calls', '100', '10'],
        ['Pro', '1', '50'],
      ].map(([, ...rest], index) => [before.line_items[index]!.display_name, ...rest]),
      false,
    ]);
    const after = await edited(before.id, {
      line_items: [
        stated(seat!, { amount: '40', display_name: 'Pro, as agreed' }),
        { display_name: 'Setup', amount: '20', quantity: '1' },
      ],
      subtotal: '60',
      description: 'As agreed on the phone',
    });
    expect(after).to.include({ is_manually_edited: true, description: 'As agreed on the phone' });
    expect(lines(after)).to.deep.equal([
      ['Pro, as agreed', '1', '40'],
      ['Setup', '1', '20'],
      [calls!.display_name, '0', '0'],
    ]);
    expect(after.line_items.map((line) => line.computed_from?.edited ?? null)).to.deep.equal([
      { amount: '50', quantity: '1' },
      null,
      { amount: '10', quantity: '100' },
    ]);
    expect(money(after)).to.deep.equal(['60', '6', '0', '54']);
    const { items: audit } = await world.get(`/audit-logs?entity_id=${before.id}`);
    const [told] = audit.filter(({ after: record }) => record!.is_manually_edited);
    expect([told!.action, told!.before!.subtotal, told!.after!.subtotal]).to.deep.equal(['updated', '60', '60']);
    expect(told!.user_id).to.equal(after.updated_by).and.not.equal('');
    // Nothing computes it but a recalculation.
    await world.post(`/invoices/${before.id}/compute?sync=true`, {});
    await world.finalize();
    const final = await invoiceOf(name);
    expect([final.id, final.invoice_status, money(final)]).to.deep.equal([
      before.id,
      'FINALIZED',
      ['60', '6', '10.8', '64.8'],
    ]);
    expect(lines(final)).to.deep.equal(lines(after));
    const verdict = await check(await provenBy(world.api, final.id));
    expect(verdict.differences).to.deep.equal([]);
    expect(verdict.stated.map(({ what }) => what)).to.include.members([
      '40 for 1, as it was edited by hand: computed were 50 for 1',
      '0 for 0, as it was edited by hand: computed were 10 for 100',
    ]);
  });

  const rates = async () => (await world.get('/taxes/rates')).filter(({ code }) => code === 'vat');
});
