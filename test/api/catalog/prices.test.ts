import { expect } from 'chai';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Meter, Plan, Price } from '../../support/answers.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

const NOW = '2026-03-15T12:00:00.000Z';

describe('/prices', () => {
  let api: TestApi;
  let plan: Plan;
  let meter: Meter;
  let count = 0;
  const key = () => `key-${++count}`;

  before(async () => {
    api = await startTestApi({ now: NOW });
    plan = (await api.request('POST', '/plans', { body: { name: 'Pro' } })).body;
    const definition = { name: 'Tokens', event_name: 'tokens', aggregation: { type: 'SUM', field: 'n' } };
    meter = (await api.request('POST', '/meters', { body: definition })).body;
  });
  after(() => api.stop());

  const flat = (fields: Record<string, unknown> = {}) => ({
    entity_type: 'PLAN',
    entity_id: plan.id,
    type: 'FIXED',
    billing_model: 'FLAT_FEE',
    billing_period: 'MONTHLY',
    billing_period_count: 1,
    billing_cadence: 'RECURRING',
    invoice_cadence: 'ADVANCE',
    price_unit_type: 'FIAT',
    currency: 'usd',
    amount: '12.50',
    ...fields,
  });
  const usage = (fields: Record<string, unknown> = {}) =>
    flat({ type: 'USAGE', invoice_cadence: 'ARREAR', meter_id: meter.id, ...fields });
  const tiered = (fields: Record<string, unknown> = {}) => {
    const { amount: _amount, ...rest } = usage();
    const tiers = [{ up_to: 10, unit_amount: '0.10', flat_amount: '1' }, { unit_amount: '0.05' }];
    return { ...rest, billing_model: 'TIERED', tier_mode: 'SLAB', tiers, ...fields };
  };
  const post = (body: unknown) => api.request('POST', '/prices', { body });
  const create = async (body: unknown) => {
    const answer = await post(body);
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const get = async (id: string) => (await api.request('GET', `/prices/${id}`)).body;
  const search = (body: unknown) => api.request('POST', '/prices/search', { body });
  const stored = async () => (await search({ allow_expired_prices: true })).body.pagination.total as number;
  const newPlan = async (name = 'Another') => (await api.request('POST', '/plans', { body: { name } })).body;

  describe('201', () => {
    it('answers every key of the contract', async () => {
      const own = await newPlan('Team');
      const price = await create(flat({ entity_id: own.id }));
      expect(price.id).to.match(/^price_[0-9A-HJKMNP-TV-Z]{26}$/);
      const { id: _id, created_by: _created, updated_by: _updated, ...rest } = price;
      expect(rest).to.deep.equal({
        ...api.scope,
        amount: '12.5',
        display_amount: '$12.50',
        currency: 'usd',
        display_name: 'Team',
        description: null,
        lookup_key: null,
        type: 'FIXED',
        billing_model: 'FLAT_FEE',
        billing_period: 'MONTHLY',
        billing_period_count: 1,
        billing_cadence: 'RECURRING',
        invoice_cadence: 'ADVANCE',
        trial_period_days: 0,
        trial_period: 0,
        meter_id: null,
        min_quantity: null,
        tiers: null,
        tier_mode: null,
        transform_quantity: null,
        price_unit_type: 'FIAT',
        price_unit: null,
        price_unit_id: null,
        price_unit_amount: null,
        display_price_unit_amount: null,
        price_unit_tiers: null,
        conversion_rate: null,
        entity_type: 'PLAN',
        entity_id: own.id,
        group_id: null,
        parent_price_id: '',
        sequence: 1,
        start_date: '2026-03-15T12:00:00Z',
        end_date: null,
        commitment_time_buckets: null,
        metadata: null,
        meter: null,
        plan: null,
        addon: null,
        group: null,
        pricing_unit: null,
        status: 'published',
        created_at: '2026-03-15T12:00:00Z',
        updated_at: '2026-03-15T12:00:00Z',
      });
      expect(await get(price.id)).to.deep.equal(price);
    });

    it('tiers: bounds are numbers, amounts texts, what is not set is null', async () => {
      const price = await create(tiered());
      expect(price.tiers).to.deep.equal([
        { up_to: 10, unit_amount: '0.1', flat_amount: '1' },
        { up_to: null, unit_amount: '0.05', flat_amount: null },
      ]);
      expect(price).to.include({ amount: '0', tier_mode: 'SLAB', display_name: 'Tokens' });
    });

    it('packages: divided by a number, rounded up unless told otherwise', async () => {
      const price = await create(usage({ billing_model: 'PACKAGE', transform_quantity: { divide_by: 1000 } }));
      expect(price.transform_quantity).to.deep.equal({ divide_by: 1000, round: 'up' });
    });

    const kept: [string, () => Record<string, unknown>, Record<string, unknown>][] = [
      ['18 digits after the point', () => flat({ amount: '0.000000000000000001' }), { amount: '0.000000000000000001' }],
      ['20 digits before it', () => flat({ amount: '12345678901234567890' }), { amount: '12345678901234567890' }],
      [
        'enumerations in any case',
        () => flat({ type: 'fixed', billing_period: 'annual' }),
        { type: 'FIXED', billing_period: 'ANNUAL' },
      ],
      ['the currency in lower case', () => flat({ currency: 'JPY' }), { currency: 'jpy', display_amount: '¥12.5' }],
      [
        'no count and no cadence',
        () => flat({ billing_period_count: undefined, billing_cadence: undefined }),
        { billing_period_count: 1, billing_cadence: 'RECURRING' },
      ],
      ['the trial by its older name', () => flat({ trial_period: 14 }), { trial_period: 14, trial_period_days: 14 }],
      ['a least quantity', () => flat({ min_quantity: 3 }), { min_quantity: '3' }],
      ['a name of its own', () => usage({ display_name: 'Input tokens' }), { display_name: 'Input tokens' }],
      [
        'dates with an offset',
        () => flat({ start_date: '2026-04-01T00:00:00+02:00' }),
        { start_date: '2026-03-31T22:00:00Z' },
      ],
      [
        'one-time charges',
        () => flat({ billing_period: 'ONETIME', billing_period_count: 0 }),
        { billing_period: 'ONETIME' },
      ],
    ];
    for (const [what, body, expected] of kept)
      it(`keeps ${what}`, async () => {
        const price = await create(body());
        expect(price).to.include(expected);
        expect(await get(price.id)).to.deep.equal(price);
      });
  });

  const wrong: [string, () => unknown, number, string][] = [
    ['a key of 256 characters', () => flat({ lookup_key: 'x'.repeat(256) }), 400, 'lookup_key'],
    ['no currency', () => flat({ currency: undefined }), 400, 'currency'],
    ['a currency that is none', () => flat({ currency: 'abc' }), 400, 'currency'],
    ['no amount', () => flat({ amount: undefined }), 400, 'amount'],
    ['a negative amount', () => flat({ amount: '-1' }), 400, 'amount'],
    ['an amount with an exponent', () => flat({ amount: '1e3' }), 400, 'amount'],
    ['19 digits after the point', () => flat({ amount: '0.0000000000000000001' }), 400, 'amount'],
    ['no billing model', () => flat({ billing_model: undefined }), 400, 'billing_model'],
    ['an unknown billing model', () => flat({ billing_model: 'FREE' }), 400, 'billing_model'],
    ['an unknown period', () => flat({ billing_period: 'HOURLY' }), 400, 'billing_period'],
    ['a cadence that is none', () => flat({ billing_cadence: 'ONETIME' }), 400, 'billing_cadence'],
    ['a count of 0', () => flat({ billing_period_count: 0 }), 400, 'billing_period_count'],
    ['a count of one and a half', () => flat({ billing_period_count: 1.5 }), 400, 'billing_period_count'],
    ['usage in advance', () => usage({ invoice_cadence: 'ADVANCE' }), 400, 'invoice_cadence'],
    ['usage without a meter', () => usage({ meter_id: undefined }), 400, 'meter_id'],
    ['usage with a least quantity', () => usage({ min_quantity: 1 }), 400, 'min_quantity'],
    ['usage with a trial', () => usage({ trial_period_days: 7 }), 400, 'trial_period_days'],
    ['one-time usage', () => usage({ billing_period: 'ONETIME' }), 400, 'type'],
    [
      'one-time in arrears',
      () => flat({ billing_period: 'ONETIME', invoice_cadence: 'ARREAR' }),
      400,
      'invoice_cadence',
    ],
    [
      'one-time with a trial',
      () => flat({ billing_period: 'ONETIME', trial_period_days: 7 }),
      400,
      'trial_period_days',
    ],
    ['a negative trial', () => flat({ trial_period_days: -1 }), 400, 'trial_period_days'],
    ['a negative least quantity', () => flat({ min_quantity: -1 }), 400, 'min_quantity'],
    ['packages without a size', () => flat({ billing_model: 'PACKAGE' }), 400, 'transform_quantity'],
    [
      'packages of 0',
      () => flat({ billing_model: 'PACKAGE', transform_quantity: { divide_by: 0 } }),
      400,
      'transform_quantity.divide_by',
    ],
    [
      'an unknown rounding',
      () => flat({ billing_model: 'PACKAGE', transform_quantity: { divide_by: 1, round: 'even' } }),
      400,
      'transform_quantity.round',
    ],
    ['tiers that are missing', () => tiered({ tiers: undefined }), 400, 'tiers'],
    ['no tier at all', () => tiered({ tiers: [] }), 400, 'tiers'],
    ['no tier mode', () => tiered({ tier_mode: undefined }), 400, 'tier_mode'],
    ['a last tier with an end', () => tiered({ tiers: [{ up_to: 5, unit_amount: '1' }] }), 400, 'tiers[0].up_to'],
    ['two open tiers', () => tiered({ tiers: [{ unit_amount: '1' }, { unit_amount: '2' }] }), 400, 'tiers[0].up_to'],
    ['a negative amount of a tiered price', () => tiered({ amount: '-1' }), 400, 'amount'],
    ['tiers of a flat price', () => flat({ tiers: [{ unit_amount: '1' }] }), 400, 'tiers'],
    ['a package of a flat price', () => flat({ transform_quantity: { divide_by: 2 } }), 400, 'transform_quantity'],
    ['a negative tier amount', () => tiered({ tiers: [{ unit_amount: '-1' }] }), 400, 'tiers[0].unit_amount'],
    [
      'an end before the start',
      () => flat({ start_date: '2026-05-01T00:00:00Z', end_date: '2026-04-01T00:00:00Z' }),
      400,
      'end_date',
    ],
    ['an end before now, which is the start', () => flat({ end_date: '2026-03-01T00:00:00Z' }), 400, 'end_date'],
    ['a date without a zone', () => flat({ start_date: '2026-05-01' }), 400, 'start_date'],
    ['a custom unit without its terms', () => flat({ price_unit_type: 'CUSTOM' }), 400, 'price_unit_config'],
    [
      'a custom unit that does not exist',
      () =>
        flat({ amount: undefined, price_unit_type: 'CUSTOM', price_unit_config: { amount: '5', price_unit: 'CRD' } }),
      404,
      '',
    ],
    [
      'unit terms on a fiat price',
      () => flat({ price_unit_config: { amount: '5', price_unit: 'CRD' } }),
      400,
      'price_unit_config',
    ],
    ['filter values', () => usage({ filter_values: { region: ['eu'] } }), 400, 'filter_values'],
    ['metadata with a number', () => flat({ metadata: { a: 1 } }), 400, 'metadata.a'],
    ['no entity', () => flat({ entity_id: undefined }), 400, 'entity_id'],
    ['an entity type that is none', () => flat({ entity_type: 'TEAM' }), 400, 'entity_type'],
    ['an add-on that is a plan', () => flat({ entity_type: 'ADDON' }), 404, ''],
    ['a cost sheet that is a plan', () => flat({ entity_type: 'COSTSHEET' }), 404, ''],
    ['a price of a price', () => flat({ entity_type: 'PRICE' }), 400, 'entity_type'],
    ['a plan that does not exist', () => flat({ entity_id: newId('plan') }), 404, ''],
    [
      'a subscription that does not exist',
      () => flat({ entity_type: 'SUBSCRIPTION', entity_id: newId('subscription') }),
      404,
      '',
    ],
    ['a meter that does not exist', () => usage({ meter_id: newId('meter') }), 404, ''],
    ['a group that does not exist', () => flat({ group_id: 'group_x' }), 404, ''],
  ];

  describe('400 and 404, and nothing is stored', () => {
    for (const [why, body, status, field] of wrong)
      it(why, async () => {
        const before = await stored();
        const answer = await post(body());
        expect(answer.status, answer.text).to.equal(status);
        expect(answer.body.code).to.equal(status === 400 ? 'validation_error' : 'not_found');
        if (field) expect(answer.body.details!.field).to.equal(field);
        expect(await stored()).to.equal(before);
      });

    it('an archived plan and an archived meter', async () => {
      const gone = await newPlan();
      await api.request('DELETE', `/plans/${gone.id}`);
      expect((await post(flat({ entity_id: gone.id }))).status).to.equal(404);
      const definition = { name: 'Old', event_name: 'old', aggregation: { type: 'COUNT' } };
      const old = (await api.request('POST', '/meters', { body: definition })).body;
      await api.request('DELETE', `/meters/${old.id}`);
      expect((await post(usage({ meter_id: old.id }))).status).to.equal(404);
    });

    it("another tenant's plan, meter and price", async () => {
      const price = await create(flat());
      const other = { key: (await api.otherTenant()).key };
      expect((await api.request('POST', '/prices', { body: flat(), ...other })).status).to.equal(404);
      const theirs = (await api.request('POST', '/plans', { body: { name: 'Theirs' }, ...other })).body;
      const body = usage({ entity_id: theirs.id });
      expect((await api.request('POST', '/prices', { body, ...other })).status).to.equal(404);
      const asks: [string, string, unknown?][] = [
        ['GET', `/prices/${price.id}`],
        ['PUT', `/prices/${price.id}`, { amount: '1' }],
        ['PUT', `/prices/${price.id}`, { display_name: 'x' }],
        ['DELETE', `/prices/${price.id}`, {}],
      ];
      for (const [method, path, change] of asks)
        expect((await api.request(method, path, { body: change, ...other })).status, `${method} ${path}`).to.equal(404);
      expect((await api.request('GET', '/prices', other)).body.items).to.deep.equal([]);
      expect(await get(price.id)).to.deep.equal(price);
    });

    it('401 without a key, 403 for a reader', async () => {
      expect((await api.request('POST', '/prices', { body: flat(), key: null })).status).to.equal(401);
      const reader = await api.keyWithRoles(['all_reader']);
      expect((await api.request('POST', '/prices', { body: flat(), key: reader })).status).to.equal(403);
    });
  });

  describe('lookup keys', () => {
    it('409 while another price has the key; the key is free once that has ended', async () => {
      const lookup_key = key();
      const first = await create(flat({ lookup_key }));
      expect((await post(flat({ lookup_key }))).status).to.equal(409);
      await api.request('DELETE', `/prices/${first.id}`, { body: {} });
      const second = await create(flat({ lookup_key }));
      expect((await api.request('GET', `/prices/lookup/${lookup_key}`)).body.id).to.equal(second.id);
    });

    it('409 when the times of two prices with an end overlap', async () => {
      const lookup_key = key();
      await create(flat({ lookup_key, start_date: '2026-04-01T00:00:00Z', end_date: '2026-05-01T00:00:00Z' }));
      const may = { lookup_key, end_date: '2026-06-01T00:00:00Z' };
      expect((await post(flat({ ...may, start_date: '2026-04-30T00:00:00Z' }))).status).to.equal(409);
      expect((await post(flat({ ...may, start_date: '2026-05-01T00:00:00Z' }))).status).to.equal(201);
    });

    it('finds the price in force, and 404 for a key that nobody has', async () => {
      const lookup_key = key();
      const price = await create(flat({ lookup_key }));
      const change = { amount: '20', effective_from: '2026-04-01T00:00:00Z' };
      const later = (await api.request('PUT', `/prices/${price.id}`, { body: change })).body;
      const found = async () => (await api.request('GET', `/prices/lookup/${lookup_key}`)).body.id;
      expect(await found()).to.equal(price.id);
      api.setNow('2026-04-01T00:00:00Z');
      expect(await found()).to.equal(later.id);
      api.setNow(NOW);
      expect((await api.request('GET', '/prices/lookup/nobody')).status).to.equal(404);
    });

    it('prices without a key do not meet', async () => {
      await create(flat({ lookup_key: '' }));
      expect((await create(flat({ lookup_key: '' }))).lookup_key).to.equal(null);
    });
  });

  describe('POST /prices/bulk', () => {
    const bulk = (items: unknown) => api.request('POST', '/prices/bulk', { body: { items } });

    it('201 with the prices in the order they were given', async () => {
      const answer = await bulk([flat({ amount: '1' }), usage({ amount: '2' }), tiered()]);
      expect(answer.status, answer.text).to.equal(201);
      expect(answer.body.items.map((price) => price.amount)).to.deep.equal(['1', '2', '0']);
      const sequences = answer.body.items.map((price) => price.sequence);
      expect(sequences).to.deep.equal([sequences[0], sequences[0]! + 1, sequences[0]! + 2]);
    });

    const faults: [string, () => unknown, number, string][] = [
      ['a rule', () => usage({ invoice_cadence: 'ADVANCE' }), 400, 'items[2].invoice_cadence'],
      ['a type', () => flat({ amount: true }), 400, 'items[2].amount'],
      ['a plan', () => flat({ entity_id: newId('plan') }), 404, 'items[2]'],
    ];
    for (const [what, item, status, named] of faults)
      it(`${status} for ${what} at index 2: the message says so, and nothing is stored`, async () => {
        const before = await stored();
        const answer = await bulk([flat(), flat(), item(), flat()]);
        expect(answer.status, answer.text).to.equal(status);
        expect(answer.body.message).to.include(named);
        expect(await stored()).to.equal(before);
      });

    it('409 for a key twice in one request, and nothing is stored', async () => {
      const before = await stored();
      const lookup_key = key();
      const answer = await bulk([flat({ lookup_key }), flat({ lookup_key })]);
      expect(answer.status).to.equal(409);
      expect(answer.body.message).to.include('items[1]');
      expect(await stored()).to.equal(before);
    });

    it('1 to 100 items', async () => {
      const own = await newPlan();
      expect((await bulk([])).status).to.equal(400);
      expect((await bulk(undefined)).status).to.equal(400);
      const many = (length: number) => Array.from({ length }, () => flat({ entity_id: own.id }));
      expect((await bulk(many(101))).status).to.equal(400);
      const answer = await bulk(many(100));
      expect(answer.status).to.equal(201);
      expect(answer.body.items).to.have.length(100);
    });
  });

  describe('sequence', () => {
    it('grows on create, change and end, per plan, and not with a description', async () => {
      const own = await newPlan();
      const first = await create(flat({ entity_id: own.id }));
      const second = await create(flat({ entity_id: own.id }));
      expect([first.sequence, second.sequence]).to.deep.equal([1, 2]);
      const described = await api.request('PUT', `/prices/${first.id}`, { body: { description: 'x' } });
      expect(described.body.sequence).to.equal(1);
      const successor = (await api.request('PUT', `/prices/${first.id}`, { body: { amount: '13' } })).body;
      expect((await get(first.id)).sequence).to.equal(3);
      expect(successor.sequence).to.equal(4);
      await api.request('DELETE', `/prices/${second.id}`, { body: {} });
      expect((await get(second.id)).sequence).to.equal(5);
      expect((await create(flat({ entity_id: (await newPlan()).id }))).sequence).to.equal(1);
    });

    it('no number twice, whoever writes at the same time', async () => {
      const own = await newPlan();
      const answers = await Promise.all(Array.from({ length: 12 }, () => create(flat({ entity_id: own.id }))));
      const numbers = answers.map(({ sequence }) => sequence).sort((a, b) => a - b);
      expect(numbers).to.deep.equal(Array.from({ length: 12 }, (_, index) => index + 1));
    });
  });

  describe('PUT /prices/:id', () => {
    const put = (id: string, body: unknown) => api.request('PUT', `/prices/${id}`, { body });

    it('describes in place', async () => {
      const price = await create(flat({ metadata: { a: '1' } }));
      const lookup_key = key();
      const body = { lookup_key, display_name: 'Seat', description: 'Per seat', metadata: { b: '2' } };
      const answer = await put(price.id, body);
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.body).to.deep.equal({ ...price, ...body });
      const cleared = await put(price.id, { metadata: null, description: null });
      expect(cleared.body).to.include({ metadata: null, description: null, display_name: 'Seat', lookup_key });
    });

    it('ends the price and starts its successor at the same instant; the lineage leads to the root', async () => {
      const lookup_key = key();
      const root = await create(flat({ lookup_key, metadata: { a: '1' }, trial_period_days: 7 }));
      const answer = await put(root.id, { amount: '20', effective_from: '2026-04-01T00:00:00Z', display_name: 'New' });
      expect(answer.status, answer.text).to.equal(200);
      const next = answer.body;
      expect(next.id).to.not.equal(root.id);
      expect(next).to.include({
        amount: '20',
        display_amount: '$20.00',
        display_name: 'New',
        parent_price_id: root.id,
        start_date: '2026-04-01T00:00:00Z',
        end_date: null,
        lookup_key,
        trial_period_days: 7,
        entity_id: plan.id,
      });
      expect(next.metadata).to.deep.equal({ a: '1' });
      expect(await get(root.id)).to.include({ amount: '12.5', end_date: '2026-04-01T00:00:00Z', lookup_key });
      api.setNow('2026-05-01T00:00:00Z');
      const third = (await put(next.id, { amount: '30' })).body;
      api.setNow(NOW);
      expect(third).to.include({ parent_price_id: root.id, start_date: '2026-05-01T00:00:00Z' });
    });

    const models: [string, () => unknown, Record<string, unknown>, Record<string, unknown>][] = [
      [
        'flat to packages',
        () => usage(),
        { billing_model: 'PACKAGE', transform_quantity: { divide_by: 10 } },
        { amount: '12.5' },
      ],
      [
        'flat to tiers',
        () => usage(),
        { billing_model: 'TIERED', tier_mode: 'VOLUME', tiers: [{ unit_amount: '1' }] },
        { amount: '0', tier_mode: 'VOLUME' },
      ],
      [
        'packages to flat',
        () => usage({ billing_model: 'PACKAGE', transform_quantity: { divide_by: 10 } }),
        { billing_model: 'FLAT_FEE' },
        { amount: '12.5', transform_quantity: null },
      ],
      [
        'tiers to flat',
        () => tiered(),
        { billing_model: 'FLAT_FEE', amount: '3' },
        { amount: '3', tiers: null, tier_mode: null },
      ],
      [
        'other tiers',
        () => tiered(),
        { tiers: [{ unit_amount: '9' }] },
        { tier_mode: 'SLAB', billing_model: 'TIERED' },
      ],
      ['another mode', () => tiered(), { tier_mode: 'VOLUME' }, { tier_mode: 'VOLUME' }],
    ];
    for (const [what, body, change, expected] of models)
      it(`from ${what}`, async () => {
        const answer = await put((await create(body())).id, change);
        expect(answer.status, answer.text).to.equal(200);
        expect(answer.body).to.include(expected);
      });

    for (const [what, body] of [
      ['flat', () => flat()],
      ['tiered', () => tiered()],
    ] as const)
      it(`a ${what} price that is sent back as it is shown stays, and what describes it changes`, async () => {
        const price = await create(body());
        const shown = await get(price.id);
        const { billing_model, amount, tier_mode, tiers } = shown;
        const charge = billing_model === 'TIERED' ? { billing_model, tier_mode, tiers } : { billing_model, amount };
        const answer = await put(price.id, { ...charge, description: 'said anew' });
        expect(answer.status, answer.text).to.equal(200);
        const { updated_at: _before, ...before } = shown;
        expect(answer.body).to.deep.include({ ...before, description: 'said anew' });
      });

    it('a price that is to start later is superseded from its start on', async () => {
      const start_date = '2026-06-01T00:00:00Z';
      const price = await create(flat({ start_date }));
      expect((await put(price.id, { amount: '1' })).body).to.include({ start_date, amount: '1' });
      expect(await get(price.id)).to.include({ start_date, end_date: start_date });
    });

    const faults: [string, () => unknown, Record<string, unknown>, number, string][] = [
      [
        'effective_from without anything critical',
        () => flat(),
        { effective_from: '2026-04-01T00:00:00Z' },
        400,
        'effective_from',
      ],
      [
        'effective_from with a description only',
        () => flat(),
        { description: 'x', effective_from: '2026-04-01T00:00:00Z' },
        400,
        'effective_from',
      ],
      [
        'effective_from before the start',
        () => flat(),
        { amount: '1', effective_from: '2026-03-15T11:59:59Z' },
        400,
        'effective_from',
      ],
      ['a negative amount', () => flat(), { amount: '-1' }, 400, 'amount'],
      ['an amount that is none', () => flat(), { amount: 'free' }, 400, 'amount'],
      ['tiers on a flat price', () => flat(), { tiers: [{ unit_amount: '1' }] }, 400, 'tiers'],
      ['a tier mode on a flat price', () => flat(), { tier_mode: 'SLAB' }, 400, 'tier_mode'],
      ['a package on a flat price', () => flat(), { transform_quantity: { divide_by: 2 } }, 400, 'transform_quantity'],
      ['tiers without an open end', () => tiered(), { tiers: [{ up_to: 1, unit_amount: '1' }] }, 400, 'tiers[0].up_to'],
      ['tiered without tiers', () => flat(), { billing_model: 'TIERED' }, 400, 'tiers'],
      ['flat without an amount', () => tiered(), { billing_model: 'FLAT_FEE' }, 400, 'amount'],
      ['packages without a size', () => flat(), { billing_model: 'PACKAGE' }, 400, 'transform_quantity'],
      ['a unit amount on a fiat price', () => flat(), { price_unit_amount: '1' }, 400, 'price_unit_type'],
      [
        'unit tiers on a fiat price',
        () => tiered(),
        { price_unit_tiers: [{ unit_amount: '1' }] },
        400,
        'price_unit_type',
      ],
      ['a group that does not exist', () => flat(), { group_id: 'group_x' }, 404, ''],
    ];
    for (const [why, body, change, status, field] of faults)
      it(`${status} for ${why}, and nothing changes`, async () => {
        const price = await create(body());
        const before = await stored();
        const answer = await put(price.id, change);
        expect(answer.status, answer.text).to.equal(status);
        if (field) expect(answer.body.details!.field).to.equal(field);
        expect(await get(price.id)).to.deep.equal(price);
        expect(await stored()).to.equal(before);
      });

    it('400 for a price that has an end already; two changes at once make one successor', async () => {
      const price = await create(flat());
      const answers = await Promise.all([1, 2, 3].map((amount) => put(price.id, { amount: String(amount) })));
      expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, 400, 400]);
      expect(answers.find(({ status }) => status === 400)?.body.code).to.equal('invalid_operation');
      const family = await search({ parent_price_id: price.id, allow_expired_prices: true });
      expect(family.body.pagination.total).to.equal(1);
    });

    it("409 for another price's lookup key", async () => {
      const [one, two] = [await create(flat({ lookup_key: key() })), await create(flat())];
      expect((await put(two.id, { lookup_key: one.lookup_key })).status).to.equal(409);
      expect((await put(two.id, { lookup_key: one.lookup_key, amount: '1' })).status).to.equal(409);
      expect(await get(two.id)).to.deep.equal(two);
    });

    it('404 for a price that does not exist', async () => {
      expect((await put(newId('price'), { amount: '1' })).status).to.equal(404);
    });
  });

  describe('DELETE /prices/:id', () => {
    const end = (id: string, body?: unknown) => api.request('DELETE', `/prices/${id}`, { body });

    it('ends now without a body, with an empty one, with no bytes', async () => {
      for (const body of [undefined, {}, '', { end_date: null }]) {
        const price = await create(flat());
        const answer = await end(price.id, body);
        expect(answer.status, answer.text).to.equal(200);
        expect(answer.body.message).to.be.a('string');
        expect(await get(price.id)).to.include({ end_date: '2026-03-15T12:00:00Z', status: 'published' });
      }
    });

    it('ends at end_date, which may be moved to an earlier time and to no later one', async () => {
      const price = await create(flat());
      expect((await end(price.id, { end_date: '2026-06-01T00:00:00Z' })).status).to.equal(200);
      expect((await end(price.id, { end_date: '2026-07-01T00:00:00Z' })).status).to.equal(400);
      expect((await end(price.id, { end_date: '2026-05-01T00:00:00Z' })).status).to.equal(200);
      expect(await get(price.id)).to.include({ end_date: '2026-05-01T00:00:00Z' });
    });

    it('ends a price that has not started at its start', async () => {
      const price = await create(flat({ start_date: '2026-06-01T00:00:00Z' }));
      expect((await end(price.id)).status).to.equal(200);
      expect(await get(price.id)).to.include({ end_date: '2026-06-01T00:00:00Z' });
    });

    it('400 before the start, 400 when it ended already, 400 for a date that is none, 404 when unknown', async () => {
      const price = await create(flat());
      expect((await end(price.id, { end_date: '2026-03-01T00:00:00Z' })).status).to.equal(400);
      expect((await end(price.id, { end_date: 'soon' })).status).to.equal(400);
      expect(await get(price.id)).to.deep.equal(price);
      await end(price.id);
      expect((await end(price.id)).body.code).to.equal('invalid_operation');
      expect((await end(newId('price'))).status).to.equal(404);
    });
  });

  describe('prices of a subscription', () => {
    it('201 when the subscription exists; named after its plan', async () => {
      const id = newId('subscription');
      await api.services.postgres('subscriptions').insert({
        id,
        ...api.scope,
        customer_id: 'cust_x',
        plan_id: plan.id,
        subscription_status: 'active',
        currency: 'usd',
        billing_cycle: 'anniversary',
        billing_period: 'MONTHLY',
        billing_anchor: NOW,
        start_date: NOW,
        current_period_start: NOW,
        current_period_end: '2026-04-15T12:00:00Z',
      });
      const price = await create(flat({ entity_type: 'SUBSCRIPTION', entity_id: id }));
      expect(price).to.include({ entity_type: 'SUBSCRIPTION', display_name: 'Pro', sequence: 1 });
      expect((await search({ subscription_id: id })).body.items.map((p) => p.id)).to.deep.equal([price.id]);
    });
  });

  describe('lists and searches', () => {
    let own: Plan;
    let prices: Record<string, Price>;
    const named = (answer: { body: { items: Price[] } }) =>
      answer.body.items.map(({ id }) => Object.keys(prices).find((name) => prices[name]!.id === id));

    before(async () => {
      own = await newPlan('Listed');
      const entity_id = own.id;
      prices = {};
      const bodies: [string, unknown][] = [
        ['seat', flat({ entity_id, billing_period: 'ANNUAL' })],
        ['tokens', usage({ entity_id })],
        ['old', flat({ entity_id, start_date: '2026-01-01T00:00:00Z', end_date: '2026-02-01T00:00:00Z' })],
        ['future', flat({ entity_id, start_date: '2026-06-01T00:00:00Z' })],
      ];
      for (const [minute, [name, body]] of bodies.entries()) {
        api.setNow(`2026-03-15T12:0${minute}:00Z`);
        prices[name] = await create(body);
      }
      api.setNow('2026-03-15T13:00:00Z');
      prices.next = (await api.request('PUT', `/prices/${prices.seat!.id}`, { body: { amount: '99' } })).body;
    });
    after(() => api.setNow(NOW));

    const cases: [string, () => Record<string, unknown>, string[]][] = [
      ['a plan: without those that ended', () => ({ plan_ids: [own.id] }), ['next', 'future', 'tokens']],
      [
        'a plan: with those that ended',
        () => ({ plan_ids: [own.id], allow_expired_prices: true }),
        ['next', 'future', 'old', 'tokens', 'seat'],
      ],
      ['entity type and ids', () => ({ entity_type: 'plan', entity_ids: [own.id], limit: 1 }), ['next']],
      ['ids', () => ({ price_ids: [prices.tokens!.id, prices.old!.id] }), ['tokens']],
      [
        'ids with those that ended',
        () => ({ price_ids: [prices.tokens!.id, prices.old!.id], allow_expired_prices: true }),
        ['old', 'tokens'],
      ],
      ['periods', () => ({ plan_ids: [own.id], billing_periods: ['annual'] }), ['next']],
      ['meters', () => ({ plan_ids: [own.id], meter_ids: [meter.id] }), ['tokens']],
      ['the family of a price', () => ({ parent_price_id: prices.seat!.id }), ['next']],
      ['started before', () => ({ plan_ids: [own.id], start_date_lt: '2026-03-15T12:30:00Z' }), ['tokens']],
      [
        'sorted by a column',
        () => ({ plan_ids: [own.id], sort: 'start_date', order: 'asc' }),
        ['tokens', 'next', 'future'],
      ],
      ['another status', () => ({ plan_ids: [own.id], status: 'archived' }), []],
    ];
    for (const [what, body, expected] of cases)
      it(what, async () => {
        expect(named(await search(body()))).to.deep.equal(expected);
      });

    it('takes the same from a query string', async () => {
      const list = async (query: string) => named(await api.request('GET', `/prices?plan_ids=${own.id}&${query}`));
      expect(await list('billing_periods=ANNUAL,WEEKLY')).to.deep.equal(['next']);
      expect(await list('allow_expired_prices=true&order=asc&limit=1')).to.deep.equal(['seat']);
      expect(await list('allow_expired_prices=false')).to.deep.equal(['next', 'future', 'tokens']);
    });

    it('expands meters and plans, and nothing unknown', async () => {
      const body = { price_ids: [prices.tokens!.id], expand: 'meters,plan,groups,addons,priceunit' };
      const [price] = (await search(body)).body.items;
      expect(price!.meter).to.include({ id: meter.id, event_name: 'tokens' });
      expect(price!.plan).to.include({ id: own.id, name: 'Listed', prices: null });
      expect((await search({ expand: 'customers' })).status).to.equal(400);
    });

    for (const [why, body] of [
      ['a period that is none', { billing_periods: ['HOURLY'] }],
      ['an entity type that is none', { entity_type: 'TEAM' }],
      ['a flag that is none', { allow_expired_prices: 'perhaps' }],
      ['a date that is none', { start_date_lt: 'soon' }],
    ] as const)
      it(`400 for ${why}`, async () => {
        expect((await search(body)).status).to.equal(400);
      });
  });
});
