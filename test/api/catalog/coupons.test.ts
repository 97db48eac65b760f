import { expect } from 'chai';
import { newId } from '../../../storage/foundation/new-id.ts';
import { CouponAssociationModel } from '../../../storage/models/subscriptions/coupon-association.ts';
import type { Coupon } from '../../support/answers.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

const NOW = '2026-03-15T12:00:00.000Z';

describe('/coupons', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi({ now: NOW });
  });
  after(() => api.stop());

  const share = (fields: Record<string, unknown> = {}) => ({
    name: 'Tenth',
    type: 'percentage',
    percentage_off: '10',
    cadence: 'forever',
    ...fields,
  });
  const post = (body: unknown, key?: string) => api.request('POST', '/coupons', { body, ...(key ? { key } : {}) });
  const create = async <Path extends string>(fields: Record<string, unknown> = {}, key?: Path) => {
    const answer = await post(share(fields), key);
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const get = <Path extends string>(path: Path) => api.request('GET', path);

  it('201 answers every key of the contract, and it is read again', async () => {
    const body = {
      name: 'Launch',
      coupon_code: 'LAUNCH',
      type: 'FIXED',
      amount_off: 12.5,
      currency: 'USD',
      cadence: 'repeated',
      duration_in_periods: 3,
      redeem_after: '2026-03-01T00:00:00+01:00',
      redeem_before: '2026-04-01T00:00:00Z',
      max_redemptions: 100,
      rules: { plans: ['pro'], nested: { a: 1 } },
      metadata: { campaign: 'spring' },
    };
    const answer = await post(body);
    expect(answer.status, answer.text).to.equal(201);
    const { id, created_by, updated_by, ...rest } = answer.body;
    expect(id).to.match(/^coupon_[0-9A-HJKMNP-TV-Z]{26}$/);
    expect(created_by).to.equal(updated_by);
    expect(rest).to.deep.equal({
      ...body,
      ...api.scope,
      type: 'fixed',
      amount_off: '12.5',
      percentage_off: null,
      currency: 'usd',
      redeem_after: '2026-02-28T23:00:00Z',
      total_redemptions: 0,
      valid: true,
      status: 'published',
      created_at: '2026-03-15T12:00:00Z',
      updated_at: '2026-03-15T12:00:00Z',
    });
    expect((await get(`/coupons/${id}`)).body).to.deep.equal(answer.body);
    expect((await get('/coupons/code/launch')).body).to.deep.equal(answer.body);
  });

  const wrong: [string, Record<string, unknown>, string][] = [
    ['no name', { name: undefined }, 'name'],
    ['no type', { type: undefined }, 'type'],
    ['an unknown cadence', { cadence: 'yearly' }, 'cadence'],
    ['a share that is no number', { percentage_off: 'ten' }, 'percentage_off'],
    ['more than all', { percentage_off: '101' }, 'percentage_off'],
    ['half a cent', { type: 'fixed', percentage_off: null, amount_off: '10.005', currency: 'usd' }, 'amount_off'],
    ['a currency that is none', { currency: 'zzz' }, 'currency'],
    ['redemptions that are no whole number', { max_redemptions: 1.5 }, 'max_redemptions'],
    ['an end before its beginning', { redeem_after: NOW, redeem_before: '2026-01-01T00:00:00Z' }, 'redeem_before'],
    ['a key that it does not have', { amount: '5' }, 'amount'],
  ];
  for (const [why, fields, field] of wrong)
    it(`400 for ${why}`, async () => {
      const answer = await post(share(fields));
      expect(answer.status, answer.text).to.equal(400);
      expect(answer.body.details!.field).to.equal(field);
    });

  it('409 for a code that a published coupon has, in whatever case; an archived one gives it back', async () => {
    const first = await create({ coupon_code: 'ONCE' });
    expect((await post(share({ coupon_code: 'once' }))).status).to.equal(409);
    expect((await api.request('DELETE', `/coupons/${first.id}`)).body.message).to.be.a('string');
    expect((await get(`/coupons/${first.id}`)).body).to.include({ status: 'archived', valid: false });
    expect((await get('/coupons/code/ONCE')).status).to.equal(404);
    expect((await api.request('DELETE', `/coupons/${first.id}`)).status).to.equal(404);
    const second = await create({ coupon_code: 'once' });
    expect((await get('/coupons/code/ONCE')).body.id).to.equal(second.id);
  });

  it('PUT changes the name and the metadata, and refuses to change what it takes off', async () => {
    const coupon = await create({ metadata: { a: '1' } });
    const put = (body: unknown) => api.request('PUT', `/coupons/${coupon.id}`, { body });
    const answer = await put({ name: 'Renamed', metadata: { b: '2' } });
    expect(answer.body).to.deep.equal({ ...coupon, name: 'Renamed', metadata: { b: '2' } });
    const refused = await put({ percentage: '90' });
    expect([refused.status, refused.body.details!.field]).to.deep.equal([400, 'percentage']);
    expect((await put({ metadata: null })).body.metadata).to.equal(null);
    expect((await get(`/coupons/${coupon.id}`)).body.percentage_off).to.equal('10');
  });

  it('401 without a key, 403 for a reader, 404 for what another tenant has', async () => {
    const coupon = await create({ coupon_code: 'OURS' });
    expect((await api.request('POST', '/coupons', { body: share(), key: null })).status).to.equal(401);
    expect((await post(share(), await api.keyWithRoles(['all_reader']))).status).to.equal(403);
    const { key } = await api.otherTenant();
    const asks: [string, string, unknown?][] = [
      ['GET', `/coupons/${coupon.id}`],
      ['GET', '/coupons/code/OURS'],
      ['PUT', `/coupons/${coupon.id}`, { name: 'Theirs' }],
      ['DELETE', `/coupons/${coupon.id}`],
    ];
    for (const [method, path, body] of asks)
      expect((await api.request(method, path, { key, body })).status, `${method} ${path}`).to.equal(404);
    await create({ coupon_code: 'OURS' }, key);
    expect((await get(`/coupons/${coupon.id}`)).body).to.deep.equal(coupon);
  });

  describe('lists and searches', () => {
    let key: string;
    const names = (answer: { body: { items?: { name: string }[] } }) => answer.body.items?.map((coupon) => coupon.name);
    const search = (body: unknown) => api.request('POST', '/coupons/search', { body, key });

    before(async () => {
      key = (await api.otherTenant()).key;
      for (const [minute, fields] of [
        { name: 'Tenth', coupon_code: 'TEN', metadata: { kind: 'share' } },
        { name: 'Fifth', percentage_off: '20', coupon_code: 'TWENTY', metadata: { kind: 'share' } },
        { name: 'Five', type: 'fixed', percentage_off: null, amount_off: '5', currency: 'usd' },
      ].entries()) {
        api.setNow(`2026-03-15T12:0${minute}:00Z`);
        await create(fields, key);
      }
      api.setNow(NOW);
    });

    const condition = (field: string, operator: string, value: Record<string, unknown>) => ({
      filters: [{ field, operator, data_type: Object.keys(value)[0], value }],
    });
    const cases: [string, Record<string, unknown>, string[]][] = [
      ['nothing asked: newest first', {}, ['Five', 'Fifth', 'Tenth']],
      ['codes, in any case', { coupon_codes: ['ten', 'TWENTY', 'none'] }, ['Fifth', 'Tenth']],
      ['more than a share', condition('percentage_off', 'gt', { number: 10 }), ['Fifth']],
      ['a type', condition('type', 'eq', { string: 'fixed' }), ['Five']],
      ['metadata', { metadata: { kind: 'share' } }, ['Fifth', 'Tenth']],
      ['sorted by name', { sort: [{ field: 'name', direction: 'asc' }] }, ['Fifth', 'Five', 'Tenth']],
      ['a page', { limit: 1, offset: 1 }, ['Fifth']],
      ['archived ones', { status: 'archived' }, []],
    ];
    for (const [what, body, expected] of cases)
      it(what, async () => {
        expect(names(await search(body))).to.deep.equal(expected);
      });

    it('ids, from a query string; and 400 for a column that it does not have', async () => {
      const [five, , tenth] = (await search({})).body.items;
      const answer = await api.request('GET', `/coupons?coupon_ids=${five!.id},${tenth!.id}&sort=name&order=asc`, {
        key,
      });
      expect(names(answer)).to.deep.equal(['Five', 'Tenth']);
      expect((await search(condition('rules', 'eq', { string: 'x' }))).status).to.equal(400);
      expect((await search({ expand: 'plans' })).status).to.equal(400);
    });
  });

  describe('associations', () => {
    const subscription = newId('subscription');
    let coupon: Coupon;
    const add = (start_date: string, end_date: string | null) =>
      CouponAssociationModel.add(
        api.scope,
        { id: newId('coupon_association'), coupon_id: coupon.id, subscription_id: subscription, start_date, end_date },
        { database: api.services.postgres },
      );
    const starts = async (query: string) => {
      const answer = await get(`/coupons/associations?subscription_ids=${subscription}&${query}`);
      expect(answer.status, answer.text).to.equal(200);
      return answer.body.items.map((one) => one.start_date.slice(0, 7));
    };

    before(async () => {
      coupon = await create();
      await add('2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z');
      await add('2026-03-01T00:00:00Z', null);
      await add('2026-05-01T00:00:00Z', null);
    });

    const cases: [string, string[]][] = [
      ['sort=start_date&order=asc', ['2026-01', '2026-03', '2026-05']],
      ['active_only=true', ['2026-03']],
      ['active_only=true&period_start=2026-01-31T00:00:00Z&period_end=2026-03-01T00:00:00Z', ['2026-01']],
      ['active_only=true&period_start=2026-02-01T00:00:00Z&period_end=2026-03-01T00:00:01Z', ['2026-03']],
      ['coupon_ids=coupon_none', []],
    ];
    for (const [query, expected] of cases)
      it(query, async () => {
        expect(await starts(query)).to.deep.equal(expected);
      });

    it('one, with its coupon; 404 for another tenant; 400 for a period that narrows nothing', async () => {
      const { body } = await get(`/coupons/associations?coupon_ids=${coupon.id}&expand=coupon&limit=1`);
      expect(body.items[0]!.coupon).to.deep.equal(coupon);
      const id = body.items[0]!.id;
      expect((await get(`/coupons/associations/${id}`)).body).to.deep.equal(body.items[0]);
      const { key } = await api.otherTenant();
      expect((await api.request('GET', `/coupons/associations/${id}`, { key })).status).to.equal(404);
      expect((await get('/coupons/associations?period_start=2026-01-01T00:00:00Z')).status).to.equal(400);
    });
  });
});
