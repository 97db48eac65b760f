import { expect } from 'chai';
import { newId } from '../../../storage/foundation/new-id.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

const NOW = '2026-03-15T12:00:00.000Z';

describe('/plans', () => {
  let api: TestApi;
  let count = 0;
  const key = () => `plan-${++count}`;

  before(async () => {
    api = await startTestApi({ now: NOW });
  });
  after(() => api.stop());

  const create = async (fields: Record<string, unknown> = {}) =>
    (await api.request('POST', '/plans', { body: { name: 'Pro', ...fields } })).body;
  const total = async () => (await api.request('GET', '/plans')).body.pagination.total as number;
  const get = async (id: string) => (await api.request('GET', `/plans/${id}`)).body;
  const addPrice = async (entity_id: string, fields: Record<string, unknown> = {}) => {
    const body = {
      entity_type: 'PLAN',
      entity_id,
      type: 'FIXED',
      billing_model: 'FLAT_FEE',
      billing_period: 'MONTHLY',
      invoice_cadence: 'ADVANCE',
      currency: 'usd',
      amount: '10',
      ...fields,
    };
    const answer = await api.request('POST', '/prices', { body });
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const subscribe = (plan_id: string, subscription_status: string) =>
    api.services.postgres('subscriptions').insert({
      id: newId('subscription'),
      ...api.scope,
      customer_id: 'cust_x',
      plan_id,
      subscription_status,
      currency: 'usd',
      billing_cycle: 'anniversary',
      billing_period: 'MONTHLY',
      billing_anchor: NOW,
      start_date: NOW,
      current_period_start: NOW,
      current_period_end: '2026-04-15T12:00:00Z',
    });

  describe('201', () => {
    it('answers every key of the contract', async () => {
      const answer = await api.request('POST', '/plans', { body: { name: 'Free' } });
      expect(answer.status).to.equal(201);
      const { id, created_by: _created, updated_by: _updated, ...rest } = answer.body;
      expect(id).to.match(/^plan_[0-9A-HJKMNP-TV-Z]{26}$/);
      expect(rest).to.deep.equal({
        ...api.scope,
        name: 'Free',
        lookup_key: 'free',
        description: null,
        display_order: null,
        metadata: null,
        prices: [],
        entitlements: [],
        credit_grants: [],
        status: 'published',
        created_at: '2026-03-15T12:00:00Z',
        updated_at: '2026-03-15T12:00:00Z',
      });
      expect(await get(id)).to.deep.equal(answer.body);
    });

    it('keeps what is stated', async () => {
      const body = { name: 'Pro', lookup_key: key(), description: 'For teams', display_order: 0, metadata: { a: 'b' } };
      expect(await create(body)).to.deep.include(body);
    });

    it('makes a lookup key from the name, one that no published plan has, also of plans made at once', async () => {
      const names = ['Team & Co.', 'Team & Co.', 'team co', '…'];
      const keys = [];
      for (const name of names) keys.push((await create({ name })).lookup_key);
      expect(keys).to.deep.equal(['team-co', 'team-co-2', 'team-co-3', null]);
      const made = await Promise.all(Array.from({ length: 4 }, () => create({ name: 'At once' })));
      expect(made.map(({ lookup_key }) => lookup_key).sort()).to.deep.equal([
        'at-once',
        'at-once-2',
        'at-once-3',
        'at-once-4',
      ]);
      expect((await create({ name: 'x'.repeat(255) })).lookup_key).to.equal('x'.repeat(255));
      expect((await create({ name: 'x'.repeat(255) })).lookup_key).to.equal(`${'x'.repeat(252)}-2`);
    });
  });

  describe('400, and nothing is stored', () => {
    const wrong: [string, Record<string, unknown>, string][] = [
      ['no name', {}, 'name'],
      ['a blank name', { name: ' ' }, 'name'],
      ['a name that is a number', { name: 5 }, 'name'],
      ['a name of 256 characters', { name: 'x'.repeat(256) }, 'name'],
      ['a key of 256 characters', { name: 'x', lookup_key: 'x'.repeat(256) }, 'lookup_key'],
      ['an order that is a fraction', { name: 'x', display_order: 1.5 }, 'display_order'],
      ['an order that is too large', { name: 'x', display_order: 3_000_000_000 }, 'display_order'],
      ['a key that is a number', { name: 'x', lookup_key: 5 }, 'lookup_key'],
      ['metadata with a map', { name: 'x', metadata: { a: {} } }, 'metadata.a'],
    ];
    for (const [why, body, field] of wrong)
      it(why, async () => {
        const before = await total();
        const answer = await api.request('POST', '/plans', { body });
        expect(answer.status, answer.text).to.equal(400);
        expect(answer.body.details!.field).to.equal(field);
        expect(await total()).to.equal(before);
      });
  });

  describe('401, 403, 404 and 409', () => {
    it('401 without a key, 403 for a reader', async () => {
      expect((await api.request('POST', '/plans', { body: { name: 'x' }, key: null })).status).to.equal(401);
      const reader = await api.keyWithRoles(['all_reader']);
      expect((await api.request('POST', '/plans', { body: { name: 'x' }, key: reader })).status).to.equal(403);
    });

    it("404 for another tenant's plan", async () => {
      const plan = await create();
      const { key: theirs } = await api.otherTenant();
      const asks: [string, string, unknown?][] = [
        ['GET', `/plans/${plan.id}`],
        ['PUT', `/plans/${plan.id}`, { name: 'Theirs' }],
        ['DELETE', `/plans/${plan.id}`],
        ['POST', `/plans/${plan.id}/clone`, { name: 'Theirs', lookup_key: key() }],
      ];
      for (const [method, path, body] of asks)
        expect((await api.request(method, path, { key: theirs, body })).status, `${method} ${path}`).to.equal(404);
      expect((await api.request('GET', '/plans', { key: theirs })).body.items).to.deep.equal([]);
      expect(await get(plan.id)).to.deep.equal(plan);
    });

    it('409 for a lookup key that a published plan has', async () => {
      const lookup_key = key();
      const first = await create({ lookup_key });
      expect((await api.request('POST', '/plans', { body: { name: 'x', lookup_key } })).status).to.equal(409);
      const other = await create();
      expect((await api.request('PUT', `/plans/${other.id}`, { body: { lookup_key } })).status).to.equal(409);
      await api.request('DELETE', `/plans/${first.id}`);
      expect((await api.request('PUT', `/plans/${other.id}`, { body: { lookup_key } })).status).to.equal(200);
    });
  });

  describe('GET, PUT, DELETE', () => {
    it('GET embeds the prices that have not ended, with their meters', async () => {
      const plan = await create();
      const definition = { name: 'Calls', event_name: 'call', aggregation: { type: 'COUNT' } };
      const meter = (await api.request('POST', '/meters', { body: definition })).body;
      const seat = await addPrice(plan.id);
      const calls = await addPrice(plan.id, { type: 'USAGE', invoice_cadence: 'ARREAR', meter_id: meter.id });
      const later = await addPrice(plan.id, { start_date: '2026-06-01T00:00:00Z' });
      const gone = await addPrice(plan.id);
      await api.request('DELETE', `/prices/${gone.id}`);
      await addPrice((await create()).id);
      const { prices } = await get(plan.id);
      expect(prices!.map(({ id }) => id)).to.deep.equal([seat.id, calls.id, later.id]);
      expect(prices![1]!.meter!.id).to.equal(meter.id);
      expect(prices![0]).to.deep.equal(seat);
    });

    it('PUT changes what is given and leaves the rest; metadata replaces the map', async () => {
      const plan = await create({ lookup_key: key(), description: 'x', metadata: { a: '1' } });
      const put = (body: unknown) => api.request('PUT', `/plans/${plan.id}`, { body });
      expect((await put({ display_order: 3, metadata: { b: '2' } })).body).to.deep.equal({
        ...plan,
        display_order: 3,
        metadata: { b: '2' },
      });
      expect((await put({})).body.metadata).to.deep.equal({ b: '2' });
      expect((await put({ metadata: null, description: null, lookup_key: '' })).body).to.include({
        metadata: null,
        description: null,
        lookup_key: null,
      });
    });

    for (const [why, body] of [
      ['a blank name', { name: '' }],
      ['no name at all', { name: null }],
      ['an order that is a text', { display_order: 'first' }],
    ] as const)
      it(`PUT 400 for ${why}, and nothing changes`, async () => {
        const plan = await create();
        expect((await api.request('PUT', `/plans/${plan.id}`, { body })).status).to.equal(400);
        expect(await get(plan.id)).to.deep.equal(plan);
      });

    it('DELETE archives; PUT of an archived plan is 400, DELETE and clone are 404', async () => {
      const plan = await create();
      const answer = await api.request('DELETE', `/plans/${plan.id}`);
      expect(answer.status).to.equal(200);
      expect(answer.body.message).to.be.a('string');
      expect((await get(plan.id)).status).to.equal('archived');
      expect((await api.request('DELETE', `/plans/${plan.id}`)).status).to.equal(404);
      expect((await api.request('PUT', `/plans/${plan.id}`, { body: { name: 'x' } })).status).to.equal(400);
      const body = { name: 'x', lookup_key: key() };
      expect((await api.request('POST', `/plans/${plan.id}/clone`, { body })).status).to.equal(404);
      expect((await api.request('DELETE', `/plans/${newId('plan')}`)).status).to.equal(404);
    });

    it('DELETE archives the prices with it: no list shows them, nothing changes them, their keys are free', async () => {
      const [plan, other] = [await create(), await create()];
      const lookup_key = key();
      const keyed = await addPrice(plan.id, { lookup_key });
      const ended = await addPrice(plan.id);
      await api.request('DELETE', `/prices/${ended.id}`);
      const before = await addPrice(other.id);
      await api.request('DELETE', `/plans/${plan.id}`);
      const listed = async (query: string) =>
        (await api.request('GET', `/prices?${query}`)).body.items.map(({ id }) => id);
      expect(await listed(`plan_ids=${plan.id},${other.id}`)).to.deep.equal([before.id]);
      expect(await listed(`plan_ids=${plan.id}&status=archived&allow_expired_prices=true`)).to.have.members([
        keyed.id,
        ended.id,
      ]);
      expect((await api.request('GET', `/prices/${keyed.id}`)).body.status).to.equal('archived');
      expect((await api.request('PUT', `/prices/${keyed.id}`, { body: { amount: '7' } })).status).to.equal(400);
      expect((await api.request('DELETE', `/prices/${keyed.id}`)).status).to.equal(404);
      expect((await api.request('GET', `/prices/lookup/${lookup_key}`)).status).to.equal(404);
      expect((await addPrice(other.id, { lookup_key })).lookup_key).to.equal(lookup_key);
    });

    it('DELETE 400 invalid_operation with active subscriptions, not with cancelled ones', async () => {
      const plan = await create();
      await subscribe(plan.id, 'cancelled');
      const busy = await create();
      await subscribe(busy.id, 'active');
      const refused = await api.request('DELETE', `/plans/${busy.id}`);
      expect(refused.status).to.equal(400);
      expect(refused.body.code).to.equal('invalid_operation');
      expect((await get(busy.id)).status).to.equal('published');
      expect((await api.request('DELETE', `/plans/${plan.id}`)).status).to.equal(200);
    });
  });

  describe('clone', () => {
    it('copies the plan with the prices that have not ended', async () => {
      const plan = await create({ name: 'Pro', description: 'x', metadata: { a: '1' } });
      await addPrice(plan.id, { lookup_key: key(), amount: '5' });
      await addPrice(plan.id, { display_name: 'Extra', amount: '7' });
      const gone = await addPrice(plan.id, { amount: '9' });
      await api.request('DELETE', `/prices/${gone.id}`);
      const lookup_key = key();
      const answer = await api.request('POST', `/plans/${plan.id}/clone`, {
        body: { name: 'Pro 2', lookup_key, display_order: 2 },
      });
      expect(answer.status, answer.text).to.equal(201);
      const copy = answer.body;
      expect(copy).to.include({ name: 'Pro 2', lookup_key, description: 'x', display_order: 2, status: 'published' });
      expect(copy.metadata).to.deep.equal({ a: '1' });
      expect(copy.id).to.not.equal(plan.id);
      const shown = copy.prices!.map((price) => [price.amount, price.display_name, price.lookup_key, price.entity_id]);
      expect(shown).to.deep.equal([
        ['5', 'Pro 2', null, copy.id],
        ['7', 'Extra', null, copy.id],
      ]);
      expect((await get(plan.id)).prices).to.have.length(2);
    });

    it('a copied successor is that of the copy', async () => {
      const plan = await create({ name: 'Lineage' });
      const price = await addPrice(plan.id, { amount: '5' });
      const effective_from = new Date(Date.parse(price.start_date!) + 86_400_000).toISOString();
      const put = await api.request('PUT', `/prices/${price.id}`, { body: { amount: '6', effective_from } });
      expect(put.status, put.text).to.equal(200);
      const { body: copy } = await api.request('POST', `/plans/${plan.id}/clone`, {
        body: { name: 'Copy', lookup_key: key() },
      });
      const [first, second] = copy.prices!;
      expect([first!.amount, first!.parent_price_id]).to.deep.equal(['5', '']);
      expect([second!.amount, second!.parent_price_id]).to.deep.equal(['6', first!.id]);
    });

    it('400 without name or key, 409 for a key that exists, 404 for an unknown plan; nothing is stored', async () => {
      const plan = await create({ lookup_key: key() });
      await addPrice(plan.id);
      const before = await total();
      const prices = async () => (await api.request('GET', '/prices')).body.pagination.total;
      const pricesBefore = await prices();
      const ask = async (id: string, body: unknown) =>
        (await api.request('POST', `/plans/${id}/clone`, { body })).status;
      expect(await ask(plan.id, { lookup_key: key() })).to.equal(400);
      expect(await ask(plan.id, { name: 'x' })).to.equal(400);
      expect(await ask(plan.id, { name: 'x', lookup_key: '' })).to.equal(400);
      expect(await ask(plan.id, { name: 'x', lookup_key: plan.lookup_key })).to.equal(409);
      expect(await ask(newId('plan'), { name: 'x', lookup_key: key() })).to.equal(404);
      expect(await total()).to.equal(before);
      expect(await prices()).to.equal(pricesBefore);
    });
  });

  describe('lists and searches', () => {
    let mine: string;
    const names = (answer: { body: { items?: { name: string }[] } }) => answer.body.items!.map(({ name }) => name);
    const search = (body: unknown) => api.request('POST', '/plans/search', { body, key: mine });

    before(async () => {
      mine = (await api.otherTenant()).key;
      for (const [minute, body] of [
        { name: 'Free', lookup_key: 'free', metadata: { tier: 'a' } },
        { name: 'Pro', lookup_key: 'pro', metadata: { tier: 'b', public: 'yes' }, display_order: 5 },
        { name: 'Max', lookup_key: 'max', metadata: { tier: 'b' }, display_order: 1 },
      ].entries()) {
        api.setNow(`2026-03-15T12:0${minute}:00Z`);
        await api.request('POST', '/plans', { body, key: mine });
      }
      api.setNow(NOW);
    });

    const cases: [string, Record<string, unknown>, string[]][] = [
      ['nothing asked: newest first', {}, ['Max', 'Pro', 'Free']],
      ['a lookup key', { lookup_key: 'pro' }, ['Pro']],
      ['metadata', { metadata: { tier: 'b' } }, ['Max', 'Pro']],
      ['all pairs of metadata', { metadata: { tier: 'b', public: 'yes' } }, ['Pro']],
      [
        'sorted by two columns',
        {
          sort: [
            { field: 'display_order', direction: 'asc' },
            { field: 'name', direction: 'asc' },
          ],
        },
        ['Max', 'Pro', 'Free'],
      ],
      [
        'a filter on a number',
        { filters: [{ field: 'display_order', operator: 'gt', data_type: 'number', value: { number: 1 } }] },
        ['Pro'],
      ],
    ];
    for (const [what, body, expected] of cases)
      it(what, async () => {
        expect(names(await search(body))).to.deep.equal(expected);
      });

    it('ids, and the same from a query string', async () => {
      const [max, , free] = (await search({})).body.items;
      expect(names(await search({ plan_ids: [max!.id, free!.id] }))).to.deep.equal(['Max', 'Free']);
      const query = `/plans?plan_ids=${max!.id},${free!.id}&metadata[tier]=a` as const;
      expect(names(await api.request('GET', query, { key: mine }))).to.deep.equal(['Free']);
    });

    it('parts are null until they are asked for', async () => {
      const [plain] = (await search({})).body.items;
      expect(plain).to.include({ prices: null, entitlements: null, credit_grants: null });
      const expand = 'prices,prices.meters,prices.priceunit,meters,entitlements,entitlements.features,credit_grant';
      const [expanded] = (await search({ expand })).body.items;
      expect(expanded).to.deep.include({ prices: [], entitlements: [], credit_grants: [] });
      expect((await search({ expand: 'customers' })).status).to.equal(400);
    });
  });
});
