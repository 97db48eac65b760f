/** What coupons take off the invoices of subscriptions, what taxes add, and what is given back with both. */
import { expect } from 'chai';
import type { ListedInvoice, Subscription } from '../support/answers.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

type Fields = Record<string, unknown>;

const VAT = { tax_rate_overrides: [{ tax_rate_code: 'vat', currency: 'usd' }] };

describe('coupons and taxes on invoices', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await world.meter('calls');
    await world.plan('Pro', [fixed('50', { invoice_cadence: 'ADVANCE' }), usage('calls', '0.1')]);
    await world.plan('Seats', [fixed('10', { invoice_cadence: 'ADVANCE' })]);
    const coupon = (coupon_code: string, fields: Fields) =>
      world.post('/coupons', { name: coupon_code, coupon_code, cadence: 'forever', ...fields });
    const share = (percentage_off: string) => ({ type: 'percentage', percentage_off });
    await coupon('HALF-ONCE', { ...share('50'), cadence: 'once', max_redemptions: 3 });
    await coupon('TENTH', share('10'));
    await coupon('TWICE', { ...share('20'), cadence: 'repeated', duration_in_periods: 2 });
    await coupon('FIVE', { type: 'fixed', amount_off: '5', currency: 'usd' });
    await coupon('ALL', share('100'));
    await world.post('/taxes/rates', { name: 'VAT', code: 'vat', percentage_value: '20' });
    await world.post('/taxes/rates', { name: 'City', code: 'city', percentage_value: '5' });
  });
  after(() => world.stop());

  const of = (customer: string) => world.id(`subscription ${customer}`);
  const redeemed = async (code: string) => (await world.get(`/coupons/code/${code}`)).total_redemptions;
  const invoicesOf = async (customer: string) => {
    const { items } = await world.get(
      `/invoices?subscription_id=${of(customer)}&expand=coupon_applications,tax_applied`,
    );
    return items.sort((a, b) => a.billing_sequence! - b.billing_sequence!);
  };
  const money = ({
    subtotal,
    total_discount,
    total_tax,
    total,
  }: ListedInvoice | NonNullable<Subscription['latest_invoice']>) => [subtotal, total_discount, total_tax, total];
  const moneyOf = async (customer: string) => (await invoicesOf(customer)).map(money);
  const month = async (date: string) => {
    await world.on(date);
    const drafts = await Promise.all(['once', 'both'].map(moneyOf));
    await world.finalize();
    return drafts.map((invoices) => invoices.at(-1));
  };

  it('work as long as they say; what is left is taxed when the invoice is final, as the preview says', async () => {
    await world.subscribe('once', 'Pro', { coupons: ['half-once'], ...VAT });
    await world.subscribe('twice', 'Pro', { subscription_coupons: [{ coupon_code: 'TWICE' }] });
    await world.subscribe('both', 'Pro', { coupons: ['TENTH', 'FIVE'], ...VAT });
    await world.use('both', 'calls', 100);
    await world.waitForPipeline();
    const preview = await world.preview('both');
    expect(money(preview)).to.deep.equal(['60', '11', '9.8', '58.8']);
    expect(preview.coupon_applications!.map((one) => one.discounted_amount)).to.deep.equal(['6', '5']);
    expect(preview.taxes!.map(({ tax_amount, tax_rate }) => [tax_amount, tax_rate!.code])).to.deep.equal([
      ['9.8', 'vat'],
    ]);
    // A draft has its coupons, and no taxes yet.
    expect(await month('2026-02-01')).to.deep.equal([
      ['50', '0', '0', '50'],
      ['60', '11', '0', '49'],
    ]);
    await month('2026-03-01');
    expect(await moneyOf('once')).to.deep.equal([
      ['50', '25', '5', '30'],
      ['50', '0', '10', '60'],
      ['50', '0', '10', '60'],
    ]);
    expect(await moneyOf('twice')).to.deep.equal([
      ['50', '10', '0', '40'],
      ['50', '10', '0', '40'],
      ['50', '0', '0', '50'],
    ]);
    expect((await moneyOf('both')).slice(0, 2)).to.deep.equal([
      ['50', '10', '8', '48'],
      ['60', '11', '9.8', '58.8'],
    ]);
    const [, final] = await invoicesOf('both');
    const { line_items } = await world.get(`/invoices/${final!.id}`);
    expect(line_items.map((line) => [line.amount, line.invoice_level_discount, line.tax_amount])).to.deep.equal([
      ['50', '9.17', '8.17'],
      ['10', '1.83', '1.63'],
    ]);
    expect([final!.amount_due, final!.amount_remaining, final!.payment_status]).to.deep.equal([
      '58.8',
      '58.8',
      'PENDING',
    ]);
  });

  it('once is never twice: not when a draft is computed again, and a void invoice gives it back', async () => {
    await world.subscribe('void', 'Pro', { coupons: ['HALF-ONCE'] });
    const [opening] = await invoicesOf('void');
    await world.on('2026-04-01');
    await world.post(`/invoices/${(await invoicesOf('void')).at(-1)!.id}/compute?sync=true`, {});
    expect(await moneyOf('void')).to.deep.equal([
      ['50', '25', '0', '25'],
      ['50', '0', '0', '50'],
    ]);
    await world.post(`/invoices/${opening!.id}/void`, {});
    const draft = (await invoicesOf('void')).at(-1)!;
    await world.post(`/invoices/${draft.id}/compute?sync=true`, {});
    await world.finalize();
    expect((await moneyOf('void')).at(-1)).to.deep.equal(['50', '25', '0', '25']);
    expect(await redeemed('HALF-ONCE')).to.equal(2);
  });

  it('of a line, together never more than the line; all of it off is a paid invoice', async () => {
    const prices = (await world.subscription('once')).line_items;
    const fee = prices.find((line) => line.price_type === 'FIXED')!.price_id;
    await world.subscribe('line', 'Pro', { line_item_coupons: { [fee]: ['ALL', 'TENTH'] }, ...VAT });
    const [invoice] = await invoicesOf('line');
    expect([...money(invoice!), invoice!.payment_status]).to.deep.equal(['50', '50', '0', '0', 'SUCCEEDED']);
    expect(invoice!.coupon_applications!.map((one) => one.discounted_amount)).to.deep.equal(['50']);
  });

  it('what a change gives back goes with its discount and its tax; what it charges has those of the running period', async () => {
    world.at('2026-04-01');
    await world.subscribe('seats', 'Seats', { coupons: ['TENTH'], ...VAT });
    world.at('2026-04-16');
    const [line] = (await world.subscription('seats')).line_items;
    const request = {
      type: 'quantity_change',
      quantity_change_params: { line_items: [{ id: line!.id, quantity: '3' }] },
    };
    const preview = await world.post(`/subscriptions/${of('seats')}/modify/preview`, request);
    await world.post(`/subscriptions/${of('seats')}/modify/execute`, request);
    const [opening, change] = await invoicesOf('seats');
    expect(money(opening!)).to.deep.equal(['10', '1', '1.8', '10.8']);
    // 15 of 30 days: 5 back, which were 4.50 and 0.90 of tax; 15 charged, less 1.50, and 2.70 of tax.
    expect(money(change!)).to.deep.equal(['10', '1', '1.8', '10.8']);
    expect(money(preview.changed_resources.invoices[0]!.invoice!)).to.deep.equal(money(change!));
    const taxes = change!.taxes!.map((tax) => [tax.taxable_amount, tax.tax_amount]);
    expect(taxes).to.deep.equal([
      ['13.5', '2.7'],
      ['-4.5', '-0.9'],
    ]);
    await world.pay('seats');
    await world.post(`/subscriptions/${of('seats')}/cancel`, {
      cancellation_type: 'immediate',
      proration_behavior: 'create_prorations',
    });
    const wallets = await world.get(`/customers/${world.id('customer seats')}/wallets`);
    // 15 for 15 days: all of it back, as it was paid.
    expect(wallets.map((wallet) => wallet.balance)).to.deep.equal(['16.2']);
  });

  it('new subscriptions take over what their customer is taxed with; who is exempt is not taxed', async () => {
    await world.customer('taxed');
    const id = world.id('customer taxed');
    await world.post('/taxes/associations', {
      tax_rate_code: 'vat',
      entity_type: 'customer',
      entity_id: id,
      priority: 2,
    });
    await world.post('/taxes/associations', {
      tax_rate_code: 'city',
      entity_type: 'customer',
      entity_id: id,
      priority: 1,
    });
    await world.subscribe('taxed', 'Seats');
    const [first] = await invoicesOf('taxed');
    expect([...money(first!), ...first!.taxes!.map((tax) => tax.tax_amount)]).to.deep.equal([
      '10',
      '0',
      '2.5',
      '12.5',
      '0.5',
      '2',
    ]);
    await world.api.request('PUT', `/customers/${id}`, { body: { tax_exempt: 'exempt' } });
    expect(money(await world.preview('taxed'))).to.deep.equal(['10', '0', '0', '10']);
  });

  it('an invoice that is written by hand states its own; a void one has redeemed nothing', async () => {
    const lines = [
      { amount: '60', quantity: '1', display_name: 'Setup' },
      { amount: '40', quantity: '1', display_name: 'Training' },
    ];
    const sums = { subtotal: '100', total: '100', amount_due: '100', currency: 'usd', line_items: lines };
    const write = (customer: string, fields: Fields) =>
      world.post('/invoices', { customer_id: world.id(`customer ${customer}`), ...sums, ...fields });
    const before = await redeemed('HALF-ONCE');
    const ofLine = [{ line_item_id: '1', coupon_id: (await world.get('/coupons/code/ALL')).id }];
    const draft = await write('once', { coupons: ['HALF-ONCE'], line_item_coupons: ofLine, tax_rates: ['city'] });
    expect(money(draft)).to.deep.equal(['100', '70', '0', '30']);
    expect(draft.line_items.map((line) => [line.line_item_discount, line.invoice_level_discount])).to.deep.equal([
      ['0', '30'],
      ['40', '0'],
    ]);
    expect(await redeemed('HALF-ONCE')).to.equal(before + 1);
    await world.post(`/invoices/${draft.id}/finalize`, {});
    expect(money(await world.get(`/invoices/${draft.id}`))).to.deep.equal(['100', '70', '1.5', '31.5']);
    await world.post(`/invoices/${draft.id}/void`, {});
    expect(await redeemed('HALF-ONCE')).to.equal(before);
    // Final at once, and paid: with its tax.
    const own = { tax_rate_overrides: [{ tax_rate_code: 'vat', currency: 'usd' }], invoice_status: 'FINALIZED' };
    const paid = await write('once', { ...own, payment_status: 'SUCCEEDED' });
    expect([...money(paid), paid.payment_status, paid.amount_paid]).to.deep.equal([
      '100',
      '0',
      '20',
      '120',
      'SUCCEEDED',
      '120',
    ]);
    await world.post('/customers', { external_id: 'vat', name: 'vat', ...VAT });
    const { id: customer_id } = await world.get('/customers/external/vat');
    const taxed = await world.post('/invoices', { customer_id, ...sums, invoice_status: 'FINALIZED' });
    expect(money(taxed)).to.deep.equal(['100', '0', '20', '120']);
  });

  const written = (fields: Fields) => ({
    customer_id: world.id('customer by hand'),
    currency: 'usd',
    subtotal: '20',
    total: '20',
    amount_due: '20',
    ...fields,
  });

  it('a coupon for two lines of an invoice is redeemed twice, and refused where it may be once', async () => {
    await world.customer('by hand');
    const terms = { type: 'percentage', percentage_off: '10', cadence: 'once', max_redemptions: 1 };
    const { id } = await world.post('/coupons', { name: 'One', coupon_code: 'ONE', ...terms });
    const line = (display_name: string) => ({ amount: '10', quantity: '1', display_name });
    const body = written({
      line_items: [line('a'), line('b')],
      line_item_coupons: [
        { line_item_id: '0', coupon_id: id },
        { line_item_id: '1', coupon_id: 'one' },
      ],
    });
    const refused = await world.api.request('POST', '/invoices', { body });
    expect([refused.status, refused.body.details]).to.deep.equal([
      400,
      { field: 'line_item_coupons[1]', reason: 'REDEMPTION_LIMIT_REACHED' },
    ]);
    expect(await redeemed('ONE')).to.equal(0);
  });

  it('coupons that are named in any order side by side wait for each other', async () => {
    await world.customer('by hand');
    for (const coupon_code of ['LEFT', 'RIGHT'])
      await world.post('/coupons', {
        name: coupon_code,
        coupon_code,
        type: 'percentage',
        percentage_off: '10',
        cadence: 'forever',
      });
    for (let n = 0; n < 12; n++) await world.customer(`side ${n}`);
    const answers = await Promise.all(
      Array.from({ length: 36 }, (_, n) => {
        const coupons = n % 2 === 0 ? ['LEFT', 'RIGHT'] : ['RIGHT', 'LEFT'];
        const body = written({ customer_id: world.id(`customer side ${n % 12}`), coupons, idempotency_key: `n ${n}` });
        return world.api.request('POST', '/invoices', { body });
      }),
    );
    expect(answers.map(({ status }) => status)).to.deep.equal(answers.map(() => 201));
    expect(await redeemed('LEFT')).to.equal(36);
  });

  it('a coupon that a request cannot redeem is refused by the name of its field, and nothing is made', async () => {
    await world.post('/coupons', {
      name: 'E',
      coupon_code: 'EURO',
      type: 'fixed',
      amount_off: '5',
      currency: 'eur',
      cadence: 'once',
    });
    const { plan_id, customer_id } = await world.subscription('twice');
    const body = { plan_id, customer_id, currency: 'usd', billing_period: 'MONTHLY', coupons: ['TENTH', 'EURO'] };
    const tenths = await redeemed('TENTH');
    const refused = await world.api.request('POST', '/subscriptions', { body });
    expect([refused.status, refused.body.details!.field, refused.body.details!.reason]).to.deep.equal([
      400,
      'coupons[1]',
      'CURRENCY_MISMATCH',
    ]);
    expect(await redeemed('TENTH')).to.equal(tenths);
  });

  it('a coupon that could take nothing off is refused: of one that is invoiced with its parent only lines have coupons', async () => {
    const child = await world.subscribe('grouped', 'Pro');
    const inheritance = { subscriptions_ids_for_grouped_invoicing: [child.id] };
    await world.subscribe('head', 'Pro', { start_date: child.start_date, inheritance });
    const add = (fields: object) =>
      world.api.request('POST', `/subscriptions/${child.id}/modify/execute`, {
        body: { type: 'coupon', coupon_params: { action: 'add', coupon_code: 'TENTH', ...fields } },
      });
    const redeemedBefore = await redeemed('TENTH');
    const refused = await add({});
    expect([refused.status, refused.body.details?.field], refused.text).to.deep.equal([
      400,
      'coupon_params.coupon_code',
    ]);
    expect(await redeemed('TENTH')).to.equal(redeemedBefore);
    const accepted = await add({ subscription_line_item_id: child.line_items[0]!.id });
    expect(accepted.status, accepted.text).to.equal(200);
  });

  it('a year that a change begins is a period of its own: what worked once has worked', async () => {
    const ahead = { invoice_cadence: 'ADVANCE' };
    await world.plan('Month', [fixed('31', { ...ahead, display_name: 'month' })]);
    await world.plan('Year', [fixed('620', { ...ahead, display_name: 'year', billing_period: 'ANNUAL' })]);
    const cadences = { 'HALF-ONCE': 'once', TWICE: 'repeated', TENTH: 'forever' };
    await world.on('2024-10-01');
    for (const code of Object.keys(cadences)) await world.subscribe(`year ${code}`, 'Month', { coupons: [code] });
    await world.on('2024-10-11');
    const year = { billing_cadence: 'RECURRING', billing_period: 'ANNUAL', billing_cycle: 'anniversary' };
    for (const code of Object.keys(cadences)) {
      const id = world.id(`subscription year ${code}`);
      const body = { target_plan_id: world.id('plan Year'), proration_behavior: 'create_prorations', ...year };
      await world.post(`/subscriptions/${id}/change/execute`, body);
      // What is charged inside of the period takes part in what works for it, and is no use of its own.
      const [line] = (await world.subscription(`year ${code}`)).line_items.filter((one) => !one.end_date);
      const quantity_change_params = { line_items: [{ id: line!.id, quantity: '2' }] };
      await world.post(`/subscriptions/${id}/modify/execute`, { type: 'quantity_change', quantity_change_params });
    }
    await world.on('2025-10-11');
    await world.finalize();
    const discounts = async (code: string) =>
      (await world.invoices(`year ${code}`)).map(({ total_discount }) => total_discount);
    // 21 of 31 are given back with their discount.
    expect(await discounts('HALF-ONCE')).to.deep.equal(['15.5', '-10.5', '0', '0']);
    expect(await discounts('TWICE')).to.deep.equal(['6.2', '119.8', '124', '0']);
    expect(await discounts('TENTH')).to.deep.equal(['3.1', '59.9', '62', '124']);
  });
});
