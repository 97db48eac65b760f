import { expect } from 'chai';
import type { Price } from '../../support/answers.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

const NOW = '2026-03-15T12:00:00.000Z';

describe('/prices/units, and prices in them', () => {
  let api: TestApi;
  let plan: string;
  before(async () => {
    api = await startTestApi({ now: NOW });
    plan = (await api.request('POST', '/plans', { body: { name: 'Pro' } })).body.id;
    await created('/prices/units', unit());
  });
  after(() => api.stop());

  const unit = (fields: Record<string, unknown> = {}) => ({
    name: 'Credits',
    code: 'CRD',
    symbol: 'c',
    base_currency: 'USD',
    conversion_rate: '0.01',
    ...fields,
  });
  const price = (config: Record<string, unknown> | null, fields: Record<string, unknown> = {}) => ({
    entity_type: 'PLAN',
    entity_id: plan,
    type: 'FIXED',
    billing_model: 'FLAT_FEE',
    currency: 'usd',
    billing_period: 'MONTHLY',
    invoice_cadence: 'ADVANCE',
    price_unit_type: 'CUSTOM',
    price_unit_config: config && { price_unit: 'crd', ...config },
    ...fields,
  });
  const send = <Method extends string, Path extends string>(method: Method, path: Path, body?: unknown, key?: string) =>
    api.request(method, path, { body, ...(key ? { key } : {}) });
  async function created<Path extends string>(path: Path, body: unknown) {
    const answer = await send('POST', path, body);
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  }

  describe('units', () => {
    it('201 answers every key of the contract, and it is read again', async () => {
      const made = await created('/prices/units', unit({ code: 'Tok-1', metadata: { a: 'b' } }));
      const { id, created_by: _by, updated_by: _too, ...rest } = made;
      expect(id).to.match(/^price_unit_[0-9A-HJKMNP-TV-Z]{26}$/);
      expect(rest).to.deep.equal({
        ...unit({ code: 'Tok-1', base_currency: 'usd' }),
        ...api.scope,
        metadata: { a: 'b' },
        status: 'published',
        created_at: '2026-03-15T12:00:00Z',
        updated_at: '2026-03-15T12:00:00Z',
      });
      expect((await send('GET', `/prices/units/${id}`)).body).to.deep.equal(made);
      expect((await send('GET', '/prices/units/code/tok-1')).body).to.deep.equal(made);
    });

    const wrong: [string, Record<string, unknown>, number, string?][] = [
      ['no symbol', { code: 'new', symbol: undefined }, 400, 'symbol'],
      ['a code of one letter', { code: 'x' }, 400, 'code'],
      ['a code of 13', { code: 'x'.repeat(13) }, 400, 'code'],
      ['a currency that is none', { code: 'new', base_currency: 'zzz' }, 400, 'base_currency'],
      ['a rate of 0', { code: 'new', conversion_rate: '0' }, 400, 'conversion_rate'],
      ['a rate below 0', { code: 'new', conversion_rate: '-1' }, 400, 'conversion_rate'],
      ['a rate that is no number', { code: 'new', conversion_rate: 'one' }, 400, 'conversion_rate'],
      ['a code that is there, in another case', { code: 'cRd' }, 409, 'code'],
    ];
    for (const [why, fields, status, field] of wrong)
      it(`${status} for ${why}`, async () => {
        const answer = await send('POST', '/prices/units', unit(fields));
        expect([answer.status, answer.body.details?.field], answer.text).to.deep.equal([status, field]);
      });

    it('PUT changes the name and the metadata alone; DELETE gives the code back', async () => {
      const made = await created('/prices/units', unit({ code: 'old' }));
      const renamed = await send('PUT', `/prices/units/${made.id}`, { name: 'Older', metadata: { c: 'd' } });
      expect(renamed.body).to.deep.equal({ ...made, name: 'Older', metadata: { c: 'd' } });
      const refused = await send('PUT', `/prices/units/${made.id}`, { rate: '2' });
      expect([refused.status, refused.body.details!.field]).to.deep.equal([400, 'rate']);
      expect((await send('DELETE', `/prices/units/${made.id}`)).body.message).to.be.a('string');
      expect((await send('GET', `/prices/units/${made.id}`)).body.status).to.equal('archived');
      expect((await send('PUT', `/prices/units/${made.id}`, { name: 'x' })).status).to.equal(400);
      await created('/prices/units', unit({ code: 'OLD' }));
    });

    it('are listed and searched', async () => {
      const { key } = await api.otherTenant();
      for (const code of ['aa', 'bb', 'cc'])
        await send('POST', '/prices/units', unit({ code, name: `Unit ${code}` }), key);
      const codes = ({ body }: { body: { items: { code: string }[] } }) => body.items.map((one) => one.code);
      expect(codes(await send('GET', '/prices/units?sort=code&order=asc&limit=2', undefined, key))).to.deep.equal([
        'aa',
        'bb',
      ]);
      const found = await send('POST', '/prices/units/search', { sort: [{ field: 'code', direction: 'desc' }] }, key);
      expect(codes(found)).to.deep.equal(['cc', 'bb', 'aa']);
      const price_unit_ids = [found.body.items[0]!.id];
      expect(codes(await send('POST', '/prices/units/search', { price_unit_ids }, key))).to.deep.equal(['cc']);
    });

    it('401, 403, and 404 for another tenant', async () => {
      const { id } = (await send('GET', '/prices/units/code/crd')).body;
      expect((await api.request('GET', `/prices/units/${id}`, { key: null })).status).to.equal(401);
      const reader = await api.keyWithRoles(['all_reader']);
      expect((await send('POST', '/prices/units', unit({ code: 'new' }), reader)).status).to.equal(403);
      const { key } = await api.otherTenant();
      for (const [method, path, body] of [
        ['GET', `/prices/units/${id}`],
        ['GET', '/prices/units/code/crd'],
        ['PUT', `/prices/units/${id}`, { name: 'Theirs' }],
        ['DELETE', `/prices/units/${id}`],
      ] as [string, string, unknown?][])
        expect((await send(method, path, body, key)).status, `${method} ${path}`).to.equal(404);
    });
  });

  describe('prices', () => {
    const OF_UNIT = ['amount', 'display_amount', 'price_unit', 'price_unit_amount', 'display_price_unit_amount'];
    const shown = (made: Price) => OF_UNIT.map((field) => made[field as keyof Price]);

    it('are stated in the unit and charged in money, at the rate that the unit had', async () => {
      const made = await created('/prices', price({ amount: '1500.5' }));
      expect(shown(made)).to.deep.equal(['15.005', '$15.005', 'CRD', '1500.5', 'c 1500.5']);
      expect(made).to.include({ conversion_rate: '0.01', price_unit_type: 'CUSTOM', pricing_unit: null });
      const found = await send('POST', '/prices/search', { price_ids: [made.id], expand: 'priceunit' });
      expect(found.body.items[0]!.pricing_unit).to.include({ id: made.price_unit_id, code: 'CRD' });
      const { body } = await send('GET', `/plans?plan_ids=${plan}&expand=prices.priceunit`);
      expect(body.items[0]!.prices![0]!.pricing_unit!.code).to.equal('CRD');
    });

    it('have their tiers in the unit, too', async () => {
      const price_unit_tiers = [{ up_to: 10, unit_amount: '5', flat_amount: '100' }, { unit_amount: '4' }];
      const made = await created(
        '/prices',
        price({ price_unit_tiers }, { billing_model: 'TIERED', tier_mode: 'SLAB' }),
      );
      expect(made.tiers).to.deep.equal([
        { up_to: 10, unit_amount: '0.05', flat_amount: '1' },
        { up_to: null, unit_amount: '0.04', flat_amount: null },
      ]);
      expect(made.price_unit_tiers!.map((tier) => tier.unit_amount)).to.deep.equal(['5', '4']);
    });

    it('stand on an invoice line in the unit as they were charged, before their money is rounded', async () => {
      const { id: own } = await created('/plans', { name: 'In credits' });
      await created('/prices', price({ amount: '1500.5' }, { entity_id: own }));
      const { id: customer_id } = await created('/customers', { external_id: 'pays-in-credits' });
      const terms = { customer_id, plan_id: own, currency: 'usd', billing_period: 'MONTHLY' };
      const { latest_invoice } = await created('/subscriptions', terms);
      const lines = latest_invoice!.line_items!.map((line) => [line.amount, line.price_unit_amount]);
      expect(lines).to.deep.equal([['15.01', '1500.5']]);
    });

    const config = 'price_unit_config';
    const wrong: [string, () => Record<string, unknown>, number, string?][] = [
      ['no amount', () => price({}), 400, `${config}.amount`],
      ['a negative amount', () => price({ amount: '-1' }), 400, 'amount'],
      ['no unit', () => price(null), 400, config],
      ['a unit that is not there', () => price({ amount: '1', price_unit: 'none' }), 404, `${config}.price_unit`],
      ['another currency', () => price({ amount: '1' }, { currency: 'eur' }), 400, 'currency'],
      ['an amount in money, too', () => price({ amount: '1' }, { amount: '2' }), 400, 'amount'],
      ['tiers in money, too', () => price({ amount: '1' }, { tiers: [{ unit_amount: '1' }] }), 400, 'tiers'],
      ['a unit of a FIAT price', () => price({ amount: '1' }, { price_unit_type: 'FIAT', amount: '1' }), 400, config],
      ['no tiers', () => price({}, { billing_model: 'TIERED', tier_mode: 'SLAB' }), 400, `${config}.price_unit_tiers`],
      [
        'tiers of another model',
        () => price({ amount: '1', price_unit_tiers: [{ unit_amount: '1' }] }),
        400,
        `${config}.price_unit_tiers`,
      ],
      ['more digits than an amount has', () => price({ amount: '0.00000000000000001' }), 400, `${config}.amount`],
    ];
    for (const [why, body, status, field] of wrong)
      it(`${status} for ${why}`, async () => {
        const answer = await send('POST', '/prices', body());
        expect([answer.status, answer.body.details?.field], answer.text).to.deep.equal([status, field]);
      });

    it('cost something else in their unit by a successor, at the rate of the first, also when the unit is archived', async () => {
      const { id: unitId } = await created('/prices/units', unit({ code: 'pts', symbol: 'P', conversion_rate: '0.5' }));
      const first = await created('/prices', price({ price_unit: 'pts', amount: '4' }));
      await send('DELETE', `/prices/units/${unitId}`);
      expect((await send('POST', '/prices', price({ price_unit: 'pts', amount: '4' }))).status).to.equal(404);
      for (const [body, field] of [
        [{ amount: '3' }, 'amount'],
        [{ tiers: [{ unit_amount: '1' }] }, 'tiers'],
        [{ price_unit_amount: '6', price_unit_tiers: [{ unit_amount: '1' }] }, 'price_unit_tiers'],
      ] as const) {
        const refused = await send('PUT', `/prices/${first.id}`, body);
        expect([refused.status, refused.body.details!.field]).to.deep.equal([400, field]);
      }
      const answer = await send('PUT', `/prices/${first.id}`, { price_unit_amount: '6' });
      expect(answer.status, answer.text).to.equal(200);
      expect(shown(answer.body)).to.deep.equal(['3', '$3.00', 'pts', '6', 'P 6']);
      expect(answer.body).to.include({ parent_price_id: first.id, conversion_rate: '0.5', price_unit_id: unitId });
    });

    it('a FIAT price is not changed in units', async () => {
      const made = await created('/prices', price(null, { price_unit_type: 'FIAT', amount: '1' }));
      const refused = await send('PUT', `/prices/${made.id}`, { price_unit_amount: '6' });
      expect([refused.status, refused.body.details!.field]).to.deep.equal([400, 'price_unit_type']);
    });
  });

  describe('overridden by a subscription', () => {
    const subscribe = async (override: Record<string, unknown>, sold: Price) => {
      const customer = await created('/customers', { external_id: `unit ${sold.id} ${JSON.stringify(override)}` });
      const body = { customer_id: customer.id, plan_id: sold.entity_id, currency: 'usd', billing_period: 'MONTHLY' };
      return send('POST', '/subscriptions', { ...body, override_line_items: [{ price_id: sold.id, ...override }] });
    };
    const soldIn = async (config: Record<string, unknown>, fields: Record<string, unknown> = {}) => {
      const { id } = await created('/plans', { name: 'In units' });
      return created('/prices', price(config, { entity_id: id, ...fields }));
    };

    it('201: the amount in the unit, and its money at the rate that the price has', async () => {
      const sold = await soldIn({ amount: '500' });
      const answer = await subscribe({ price_unit_amount: '300' }, sold);
      expect(answer.status, answer.text).to.equal(201);
      const { line_items, latest_invoice } = answer.body;
      expect(line_items[0]!.price).to.include({
        amount: '3',
        price_unit_amount: '300',
        conversion_rate: '0.01',
        parent_price_id: sold.id,
      });
      expect(line_items[0]!.price!.display_price_unit_amount).to.contain('300');
      expect(latest_invoice!.total).to.equal('3');
      const tiers = [{ up_to: null, unit_amount: '200' }];
      const tiered = await soldIn({ price_unit_tiers: tiers }, { billing_model: 'TIERED', tier_mode: 'SLAB' });
      const other = await subscribe({ price_unit_tiers: [{ up_to: null, unit_amount: '700' }] }, tiered);
      expect(other.body.latest_invoice?.total, other.text).to.equal('7');
    });

    it('400: money of a price in a unit, and a unit of a price in money', async () => {
      const path = 'override_line_items[0]';
      const sold = await soldIn({ amount: '500' });
      const inMoney = await subscribe({ amount: '3' }, sold);
      expect([inMoney.status, inMoney.body.details!.field], inMoney.text).to.deep.equal([400, `${path}.amount`]);
      const { id } = await created('/plans', { name: 'In money' });
      const plain = { entity_id: id, price_unit_type: 'FIAT', amount: '5' };
      const inUnit = await subscribe({ price_unit_amount: '3' }, await created('/prices', price(null, plain)));
      expect([inUnit.status, inUnit.body.details!.field], inUnit.text).to.deep.equal([400, `${path}.price_unit_type`]);
    });
  });

  describe('/groups', () => {
    const group = (fields: Record<string, unknown> = {}) => ({
      name: 'Usage',
      entity_type: 'price',
      lookup_key: 'usage',
      ...fields,
    });
    const fiat = (group_id: string) => price(null, { price_unit_type: 'FIAT', amount: '1', group_id });
    const feature = (name: string, group_id: string) => ({ name, type: 'boolean', group_id });

    it('201, members join by their group_id, and 204 lets them go', async () => {
      const made = await created('/groups', group());
      const { id, created_by: _by, updated_by: _too, ...rest } = made;
      expect(id).to.match(/^group_[0-9A-HJKMNP-TV-Z]{26}$/);
      expect(rest).to.deep.equal({
        ...group(),
        ...api.scope,
        entity_ids: [],
        metadata: null,
        status: 'published',
        created_at: '2026-03-15T12:00:00Z',
        updated_at: '2026-03-15T12:00:00Z',
      });
      const member = await created('/prices', fiat(id));
      const other = await created('/prices', price(null, { price_unit_type: 'FIAT', amount: '1' }));
      await send('PUT', `/prices/${other.id}`, { group_id: id });
      const read = (await send('GET', `/groups/${id}`)).body;
      expect(read.entity_ids).to.have.members([member.id, other.id]);
      const [shown] = (await send('POST', '/prices/search', { price_ids: [member.id], expand: 'groups' })).body.items;
      expect(shown!.group).to.deep.equal(read);

      await send('PUT', `/prices/${other.id}`, { group_id: null });
      expect((await send('GET', `/groups/${id}`)).body.entity_ids).to.deep.equal([member.id]);
      const gone = await send('DELETE', `/groups/${id}`);
      expect([gone.status, gone.text]).to.deep.equal([204, '']);
      expect((await send('GET', `/groups/${id}`)).body).to.deep.include({ status: 'archived', entity_ids: [] });
      expect((await send('GET', `/prices/${member.id}`)).body.group_id).to.equal(null);
      expect((await send('DELETE', `/groups/${id}`)).status).to.equal(404);
      expect((await send('POST', '/prices', fiat(id))).status).to.equal(404);
      await created('/groups', group());
    });

    it('of features: shown with them, and of features alone', async () => {
      const made = await created(
        '/groups',
        group({ entity_type: 'FEATURE', lookup_key: 'core', metadata: { a: 'b' } }),
      );
      const sso = await created('/features', feature('SSO', made.id));
      expect(sso.group).to.deep.equal({ ...made, entity_ids: [sso.id] });
      const [priced] = (await send('POST', '/groups/search', { entity_type: 'price' })).body.items;
      const mixed = [
        await send('POST', '/prices', fiat(made.id)),
        await send('POST', '/features', feature('Audit', priced!.id)),
        await send('PUT', `/features/${sso.id}`, { group_id: priced!.id }),
      ];
      for (const answer of mixed)
        expect([answer.status, answer.body.details!.field], answer.text).to.deep.equal([400, 'group_id']);
      expect((await send('GET', `/groups/${made.id}`)).body.entity_ids).to.deep.equal([sso.id]);
    });

    it('400, 409, 401, 403, 404', async () => {
      for (const [fields, status, field] of [
        [{ entity_type: 'plan' }, 400, 'entity_type'],
        [{ lookup_key: ' ' }, 400, 'lookup_key'],
        [{ name: undefined }, 400, 'name'],
        [{}, 409, 'lookup_key'],
      ] as const) {
        const answer = await send('POST', '/groups', group(fields));
        expect([answer.status, answer.body.details?.field], answer.text).to.deep.equal([status, field]);
      }
      const { id } = (await send('POST', '/groups/search', { lookup_key: 'usage' })).body.items[0]!;
      expect((await api.request('GET', `/groups/${id}`, { key: null })).status).to.equal(401);
      expect(
        (await send('DELETE', `/groups/${id}`, undefined, await api.keyWithRoles(['all_reader']))).status,
      ).to.equal(403);
      const { key } = await api.otherTenant();
      expect((await send('GET', `/groups/${id}`, undefined, key)).status).to.equal(404);
      expect((await send('DELETE', `/groups/${id}`, undefined, key)).status).to.equal(404);
      expect((await send('POST', '/features', feature('Theirs', id), key)).status).to.equal(404);
    });

    it('are searched by id, key, kind, a part of the name', async () => {
      const { key } = await api.otherTenant();
      const names = async (body: unknown) =>
        (await send('POST', '/groups/search', body, key)).body.items.map((one) => one.name);
      for (const [name, entity_type] of [
        ['Storage', 'price'],
        ['Compute', 'price'],
        ['Security', 'feature'],
      ])
        await send('POST', '/groups', group({ name, entity_type, lookup_key: name!.toLowerCase() }), key);
      expect(await names({ lookup_key: 'compute' })).to.deep.equal(['Compute']);
      expect(await names({ entity_type: 'FEATURE' })).to.deep.equal(['Security']);
      expect(await names({ name: 'or', sort: [{ field: 'name', direction: 'asc' }] })).to.deep.equal(['Storage']);
      const [first] = (await send('POST', '/groups/search', { name: 'storage' }, key)).body.items;
      expect(await names({ group_ids: [first!.id] })).to.deep.equal(['Storage']);
    });
  });
});
