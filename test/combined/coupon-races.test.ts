/** Many redeem the last of a coupon at one instant, by every way there is: as many as it allows succeed, and the others are told why. */
import { expect } from 'chai';
import { fixed, startWorld, type World } from '../support/world.ts';

type Fields = Record<string, unknown>;

const EACH = 6;
const ALLOWED = 5;

describe('the last redemptions of a coupon', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await world.plan('Pro', [fixed('50', { invoice_cadence: 'ADVANCE' })]);
  });
  after(() => world.stop());

  const post = <Path extends string>(path: Path, body: Fields) => world.api.request('POST', path, { body });
  const coupon = (coupon_code: string, max_redemptions: number) =>
    world.post('/coupons', {
      name: coupon_code,
      coupon_code,
      cadence: 'forever',
      type: 'percentage',
      percentage_off: '10',
      max_redemptions,
    });
  const redeemed = async (code: string) => (await world.get(`/coupons/code/${code}`)).total_redemptions;
  const subscribing = (who: string, coupons: string[]) =>
    post('/subscriptions', {
      customer_id: world.id(`customer ${who}`),
      plan_id: world.id('plan Pro'),
      currency: 'usd',
      billing_period: 'MONTHLY',
      start_date: '2026-01-01T00:00:00Z',
      coupons,
    });
  const writing = (who: string, coupons: string[]) =>
    post('/invoices', {
      customer_id: world.id(`customer ${who}`),
      currency: 'usd',
      subtotal: '30',
      total: '30',
      amount_due: '30',
      coupons,
    });
  const names = (kind: string) => Array.from({ length: EACH }, (_, index) => `${kind} ${index + 1}`);

  it('are given to as many as it allows: to new subscriptions, running ones, invoices written by hand and edited drafts', async () => {
    const last = await coupon('LAST', ALLOWED);
    const customers = [...names('new'), ...names('running'), ...names('written'), ...names('edited')];
    for (const who of customers) await world.customer(who);
    const drafts: string[] = [];
    for (const who of names('running')) await world.subscribe(who, 'Pro');
    for (const who of names('edited')) drafts.push((await writing(who, [])).body.id);
    const modifying = (who: string) =>
      post(`/subscriptions/${world.id(`subscription ${who}`)}/modify/execute`, {
        type: 'coupon',
        coupon_params: { action: 'add', coupon_code: 'LAST' },
      });
    const editing = (id: string) =>
      post(`/invoices/${id}/compute?sync=true`, { invoice_coupons: [{ coupon_id: last.id }] });
    const answers = await Promise.all([
      ...names('new').map((who) => subscribing(who, ['LAST'])),
      ...names('running').map(modifying),
      ...names('written').map((who) => writing(who, ['last'])),
      ...drafts.map(editing),
    ]);
    const refused = answers.filter(({ status }) => status >= 300);
    expect(refused.map(({ status, body }) => [status, body.details?.reason])).to.deep.equal(
      Array.from({ length: answers.length - ALLOWED }, () => [400, 'REDEMPTION_LIMIT_REACHED']),
    );
    expect(await redeemed('LAST')).to.equal(ALLOWED);
    // What was refused is not there.
    const { items } = await world.get('/invoices?limit=1000&expand=coupon_applications');
    const { items: subscriptions } = await world.get('/subscriptions?limit=1000');
    const made = new Set(names('new').map((who) => world.id(`customer ${who}`)));
    const news = subscriptions.filter((one) => made.has(one.customer_id));
    expect(news).to.have.length(answers.slice(0, EACH).filter(({ status }) => status === 201).length);
    const taken = items.flatMap((one) => one.coupon_applications ?? []).filter((one) => one.coupon_id === last.id);
    expect(taken.length).to.be.at.most(ALLOWED);
  });

  it('of two coupons that are named in another order are nobody’s deadlock', async () => {
    await coupon('ONE', 1000);
    await coupon('TWO', 1000);
    for (const who of names('both')) await world.customer(who);
    const answers = await Promise.all(
      names('both').flatMap((who, index) => {
        const codes = index % 2 ? ['ONE', 'TWO'] : ['TWO', 'ONE'];
        return [subscribing(who, codes), writing(who, codes), writing(who, codes)];
      }),
    );
    expect(answers.map(({ status, text }) => (status === 201 ? status : text))).to.deep.equal(answers.map(() => 201));
    expect([await redeemed('ONE'), await redeemed('TWO')]).to.deep.equal([answers.length, answers.length]);
  });
});
