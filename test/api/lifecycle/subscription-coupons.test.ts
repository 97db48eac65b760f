/** Coupons and tax rates of subscriptions: they come and go by modifications. What they do to an invoice is in test/scenarios/coupons.test.ts. */
import { expect } from 'chai';
import type { TaxRate } from '../../support/answers.ts';
import { fixed, startWorld, type World } from '../../support/world.ts';

type Fields = Record<string, unknown>;

describe('coupons and tax rates of subscriptions', () => {
  let world: World;
  let rate: TaxRate;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await world.plan('Pro', [fixed('30', { invoice_cadence: 'ADVANCE' })]);
    const share = { type: 'percentage', percentage_off: '20', cadence: 'forever' };
    await world.post('/coupons', { name: 'Twice', coupon_code: 'TWICE', max_redemptions: 2, ...share });
    const off = { type: 'fixed', amount_off: '5', currency: 'eur', cadence: 'once' };
    await world.post('/coupons', { name: 'Euro', coupon_code: 'EURO', ...off });
    await world.post('/coupons', { name: 'Always', coupon_code: 'ALWAYS', ...share });
    rate = await world.post('/taxes/rates', { name: 'VAT', code: 'vat', percentage_value: '19' });
    for (const name of ['acme', 'beta', 'gamma']) await world.subscribe(name, 'Pro');
    world.at('2026-01-11');
  });
  after(() => world.stop());

  const of = (customer: string) => world.id(`subscription ${customer}`);
  const modify = async (customer: string, request: Fields, { status = 200, verb = 'execute' } = {}) => {
    const path = `/subscriptions/${of(customer)}/modify/${verb}` as const;
    const answer = await world.api.request('POST', path, { body: request });
    expect(answer.status, answer.text).to.equal(status);
    return answer.body;
  };
  const coupon = (fields: Fields) => ({ type: 'coupon', coupon_params: { action: 'add', ...fields } });
  const tax = (fields: Fields) => ({ type: 'tax', tax_params: { action: 'add', ...fields } });
  const redeemed = async () => (await world.get('/coupons/code/TWICE')).total_redemptions;

  it('a coupon is redeemed by its code, counted, shown, and ended', async () => {
    const request = coupon({ coupon_code: 'twice', end_date: '2026-06-01T00:00:00Z' });
    const preview = await modify('acme', request, { verb: 'preview' });
    expect([preview.subscription!.coupon_associations, await redeemed()]).to.deep.equal([[], 0]);
    const { subscription, changed_resources } = await modify('acme', request);
    expect(changed_resources).to.deep.equal(preview.changed_resources);
    expect(changed_resources.subscriptions).to.deep.include.members([
      { id: of('acme'), action: 'updated', status: 'active', trial_end: null, current_period_end: null },
    ]);
    expect(subscription!.version).to.equal(preview.subscription!.version + 1);
    const [association] = subscription!.coupon_associations!;
    expect(association).to.deep.include({
      subscription_id: of('acme'),
      subscription_line_item_id: null,
      start_date: '2026-01-11T00:00:00Z',
      end_date: '2026-06-01T00:00:00Z',
    });
    expect([association!.coupon!.coupon_code, await redeemed()]).to.deep.equal(['TWICE', 1]);
    const remove = { action: 'remove', coupon_association_id: association!.id };
    const removed = await modify('acme', { type: 'coupon', coupon_params: remove });
    expect(removed.subscription!.coupon_associations).to.deep.equal([]);
    const ended = await world.get(`/coupons/associations/${association!.id}`);
    expect([ended.status, ended.end_date]).to.deep.equal(['published', '2026-01-11T00:00:00Z']);
    const again = await modify('acme', { type: 'coupon', coupon_params: remove }, { status: 400 });
    expect(again.details!.field).to.equal('coupon_params.coupon_association_id');
  });

  it('a coupon may be of one line; the last of two who redeem it at once is refused', async () => {
    const [line] = (await world.subscription('beta')).line_items;
    const wanted = coupon({ coupon_code: 'TWICE', subscription_line_item_id: line!.id });
    const path = (customer: string) => `/subscriptions/${of(customer)}/modify/execute` as const;
    const answers = await Promise.all([
      world.api.request('POST', path('beta'), { body: wanted }),
      world.api.request('POST', path('gamma'), { body: coupon({ coupon_code: 'TWICE' }) }),
    ]);
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, 400]);
    const refused = answers.find(({ status }) => status === 400)!.body;
    expect(refused.details).to.include({ field: 'coupon_params.coupon_code', reason: 'REDEMPTION_LIMIT_REACHED' });
    expect(await redeemed()).to.equal(2);
  });

  const refused: [string, Fields, number, string][] = [
    ['no code', {}, 400, 'coupon_params.coupon_code'],
    ['a code of nobody', { coupon_code: 'NONE' }, 404, ''],
    ['another currency', { coupon_code: 'EURO' }, 400, 'coupon_params.coupon_code'],
    [
      'a time that is invoiced',
      { coupon_code: 'ALWAYS', start_date: '2025-12-01T00:00:00Z' },
      400,
      'coupon_params.start_date',
    ],
    [
      'what goes with remove',
      { coupon_code: 'EURO', coupon_association_id: 'x' },
      400,
      'coupon_params.coupon_association_id',
    ],
    ['another subscription', { coupon_code: 'EURO', subscription_id: 'x' }, 400, 'coupon_params.subscription_id'],
  ];
  for (const [name, fields, status, field] of refused)
    it(`${status}: a coupon with ${name}`, async () => {
      const { details } = await modify('acme', coupon(fields), { status });
      if (field) expect(details!.field).to.equal(field);
    });

  it('a tax rate is attached once, and removed', async () => {
    const request = tax({ tax_rate_id: rate.id, effective_date: '2026-02-01T00:00:00Z' });
    expect((await modify('acme', request, { verb: 'preview' })).changed_resources.invoices).to.deep.equal([]);
    await modify('acme', request);
    const query = `/taxes/associations?entity_type=subscription&entity_id=${of('acme')}` as const;
    const [association] = (await world.get(query)).items!;
    expect(association).to.include({ tax_rate_id: rate.id, priority: 100, start_date: '2026-02-01T00:00:00Z' });
    const twice = await modify('acme', tax({ tax_rate_id: rate.id }), { status: 409 });
    expect(twice.details!.field).to.equal('tax_params.tax_rate_id');
    const early = { tax_rate_id: rate.id, effective_date: '2025-12-31T00:00:00Z' };
    const refusal = await modify('gamma', tax(early), { status: 400 });
    expect(refusal.details!.field).to.equal('tax_params.effective_date');
    const remove = { action: 'remove', tax_association_id: association!.id };
    await modify('acme', { type: 'tax', tax_params: remove });
    expect((await world.get(`/taxes/associations/${association!.id}`)).status).to.equal('archived');
    const foreign = await modify('gamma', { type: 'tax', tax_params: remove }, { status: 404 });
    expect(foreign.code).to.equal('not_found');
    await modify('acme', tax({ tax_rate_id: rate.id }));
  });
});
