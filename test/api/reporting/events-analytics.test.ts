/** POST /events/analytics and /meter-usage/detailed-analytics: usage and cost per line item. */
import { expect } from 'chai';
import type { AnalyticsItem, AnalyticsPoint } from '../../support/answers.ts';
import { startWorld, tiers, usage, type World } from '../../support/world.ts';

describe('events: analytics', () => {
  let world: World;
  const ask = (body: object) => world.api.request('POST', '/events/analytics', { body });
  const items = async (body: object) => {
    const answer = await ask(body);
    expect(answer.status, answer.text).to.equal(200);
    return answer.body.items;
  };
  const march = { start_time: '2026-03-01T00:00:00Z', end_time: '2026-04-01T00:00:00Z' };
  const acme = { external_customer_id: 'acme', ...march };
  const told = (all: AnalyticsItem[]) =>
    all.map((one) => `${one.name} ${one.source ?? '-'} ${one.total_usage} ${one.total_cost} ${one.event_count}`);

  before(async () => {
    world = await startWorld({ now: '2026-03-01T00:00:00Z' });
    await world.meter('tokens');
    await world.meter('peak', { type: 'MAX', field: 'n', bucket_size: 'DAY' });
    await world.meter('idle', { type: 'COUNT' });
    await world.meter('free', { type: 'COUNT' });
    for (const name of ['tokens', 'peak', 'idle', 'free']) {
      await world.post('/features', { name: `feature ${name}`, type: 'metered', meter_id: world.id(`meter ${name}`) });
    }
    await world.plan('Pro', [
      tiers('tokens', [
        [100, '0.10'],
        [null, '0.05'],
      ]),
      usage('peak', '1'),
      usage('idle', '1'),
    ]);
    await world.subscribe('acme', 'Pro');
    await world.subscribe('globex', 'Pro');
    world.at('2026-03-20');
    await world.send([
      { ...world.event('acme', 'tokens', { n: 80, at: '2026-03-02T10:00:00Z' }), source: 'web' },
      { ...world.event('acme', 'tokens', { n: '70.5', at: '2026-03-03T10:00:00Z' }), source: 'app' },
      world.event('acme', 'peak', { n: 3, at: '2026-03-02T10:00:00Z' }),
      world.event('acme', 'peak', { n: 5, at: '2026-03-02T11:00:00Z' }),
      world.event('acme', 'peak', { n: 4, at: '2026-03-03T11:00:00Z' }),
      world.event('acme', 'free', { n: 1, at: '2026-03-03T11:00:00Z' }),
      world.event('globex', 'tokens', { n: 10, at: '2026-03-03T11:00:00Z' }),
    ]);
    await world.waitForPipeline();
  });
  after(() => world.stop());

  it('one item per line item, by name, also without usage; what nothing bills has no cost', async () => {
    const { body } = await ask(acme);
    expect(told(body.items)).to.deep.equal([
      'feature free - 1 0 1',
      'feature idle - 0 0 0',
      'feature peak - 9 9 3',
      'feature tokens - 150.5 12.525 2', // 100 × 0.10 + 50.5 × 0.05, exact
    ]);
    expect(body).to.include({ subtotal: '21.525', total_discount: '0', total_cost: '21.525', currency: 'usd' });
    expect(body.as_of).to.equal('2026-03-20T00:00:00Z');
    expect(body.items[0]).to.include({ currency: null, price_id: null, points: null });
    expect(body.items[3]).to.include({ aggregation_type: 'SUM', event_name: 'tokens', total_usage_display: '150.5' });
  });

  it('costs what the preview says, before each line is rounded', async () => {
    const { total } = await world.preview('acme');
    expect(total).to.equal('21.53'); // 9 + 12.525
    expect((await ask(acme)).body.total_cost).to.equal('21.525');
  });

  it('a point costs what it added, and is never finer than the meter’s buckets', async () => {
    const [, , peak, tokens] = await items({ ...acme, window_size: 'hour' });
    const told = (all: AnalyticsPoint[]) =>
      all.map((one) => `${one.timestamp} ${one.usage} ${one.cost} ${one.event_count}`);
    expect(told(tokens!.points!)).to.deep.equal(['2026-03-02T10:00:00Z 80 8 1', '2026-03-03T10:00:00Z 70.5 4.525 1']); // 20 × 0.10 + 50.5 × 0.05
    expect(tokens!.window_size).to.equal('HOUR');
    expect(told(peak!.points!)).to.deep.equal(['2026-03-02T00:00:00Z 5 5 2', '2026-03-03T00:00:00Z 4 4 1']);
    expect(peak!.window_size).to.equal('DAY');
  });

  it('groups by source and properties', async () => {
    const bySource = await items({
      ...acme,
      feature_ids: null,
      meter_ids: [world.id('meter tokens')],
      group_by: ['source', 'feature_id'],
    });
    expect(told(bySource).sort()).to.deep.equal(['feature tokens app 70.5 7.05 1', 'feature tokens web 80 8 1']);
    const byProperty = await items({ ...acme, meter_ids: [world.id('meter peak')], group_by: ['properties.n'] });
    expect(byProperty.map((one) => [one.properties, one.total_usage])).to.have.deep.members([
      [{ n: '3' }, '3'],
      [{ n: '5' }, '5'],
      [{ n: '4' }, '4'],
    ]);
  });

  it('filters by source and property, and then leaves out what has nothing', async () => {
    expect(told(await items({ ...acme, sources: ['app'] }))).to.deep.equal(['feature tokens - 70.5 7.05 1']);
    expect(told(await items({ ...acme, property_filters: { n: ['70.5', '3.0'] } }))).to.deep.equal([
      'feature peak - 3 3 1',
      'feature tokens - 70.5 7.05 1',
    ]);
  });

  it('several customers, all customers, one feature', async () => {
    const features = (await world.get('/features')).items;
    const id = features.find(({ name }) => name === 'feature tokens')!.id;
    const both = await items({ external_customer_ids: ['acme', 'globex'], feature_ids: [id], ...march });
    expect(both.map((one) => [one.external_customer_id, one.total_usage])).to.deep.equal([
      ['acme', '150.5'],
      ['globex', '10'],
    ]);
    expect(told(await items({ feature_ids: [id], ...march }))).to.deep.equal(told(both));
    expect(both[0]!.feature_id).to.equal(id);
  });

  it('404 for a feature, and for a meter, of another tenant', async () => {
    const { key } = await world.api.otherTenant();
    const feature = (await world.get('/features')).items[0]!.id;
    const [meter, ask] = [world.id('meter tokens'), (body: object) => ({ key, body: { ...march, ...body } })];
    for (const [named, message] of [
      [{ feature_ids: [feature] }, `feature ${feature} not found`],
      [{ meter_ids: [meter] }, `meter ${meter} not found`],
    ] as const) {
      const { status, body } = await world.api.request('POST', '/events/analytics', ask(named));
      expect([status, body.message]).to.deep.equal([404, message]);
    }
  });

  it('of those whose parent is a customer that is named, where they are asked for', async () => {
    const ofGlobex = { ...march, external_customer_id: 'globex', feature_ids: [(await items(acme))[3]!.feature_id] };
    expect(told(await items({ ...ofGlobex, include_children: true }))).to.deep.equal(['feature tokens - 10 1 1']);
    const child = { parent_customer_id: world.id('customer globex') };
    expect(
      (await world.api.request('PUT', `/customers/${world.id('customer acme')}`, { body: child })).status,
    ).to.equal(200);
    expect(told(await items(ofGlobex))).to.deep.equal(['feature tokens - 10 1 1']);
    const family = ['feature tokens - 150.5 12.525 2', 'feature tokens - 10 1 1'];
    expect(told(await items({ ...ofGlobex, include_children: true }))).to.deep.equal(family);
    const both = { ...ofGlobex, external_customer_ids: ['acme', 'globex'], include_children: true };
    expect(told(await items(both)), 'who is named, and a child, is there once').to.deep.equal(family);
  });

  it('the last six hours when no range is given', async () => {
    world.at('2026-03-03T12:00:00Z');
    expect(told(await items({ external_customer_id: 'globex' }))).to.deep.equal([
      'feature idle - 0 0 0',
      'feature peak - 0 0 0',
      'feature tokens - 10 1 1',
    ]);
    world.at('2026-03-20');
  });

  it('shows the records that expand asks for, and null for the others', async () => {
    const expand = ['price', 'meter', 'feature', 'subscription_line_item', 'plan', 'addon'];
    const [, idle] = await items({ ...acme, expand });
    expect(idle!.meter!.id).to.equal(world.id('meter idle'));
    expect([idle!.price!.id, idle!.feature!.id, idle!.plan!.id]).to.deep.equal([
      idle!.price_id,
      idle!.feature_id,
      idle!.plan_id,
    ]);
    expect(idle!.subscription_line_item!.id).to.equal(idle!.sub_line_item_id);
    const [, plain] = await items(acme);
    expect([plain!.price, plain!.meter, plain!.feature, plain!.plan, plain!.addon]).to.deep.equal([
      null,
      null,
      null,
      null,
      null,
    ]);
  });

  it('shows the add-on of a line, and the group of a feature', async () => {
    const group = await world.post('/groups', { name: 'Stores', entity_type: 'feature', lookup_key: 'stores' });
    const meter = await world.meter('stored');
    const feature = { name: 'a store', type: 'metered', meter_id: meter.id, group_id: group.id };
    const { id } = await world.post('/features', feature);
    const addon = await world.post('/addons', { name: 'Store', lookup_key: 'store', type: 'onetime' });
    await world.post('/prices', {
      entity_type: 'ADDON',
      entity_id: addon.id,
      meter_id: meter.id,
      type: 'USAGE',
      price_unit_type: 'FIAT',
      currency: 'usd',
      amount: '2',
      billing_model: 'FLAT_FEE',
      billing_period: 'MONTHLY',
      billing_period_count: 1,
      billing_cadence: 'RECURRING',
      invoice_cadence: 'ARREAR',
    });
    await world.post('/subscriptions/addon', {
      subscription_id: world.id('subscription globex'),
      addon_id: addon.id,
      start_date: '2026-03-01T00:00:00Z',
    });
    const asked = { ...march, external_customer_id: 'globex', feature_ids: [id], expand: ['addon'] };
    const [item] = await items(asked);
    expect([item!.addon!.name, item!.add_on_id, item!.plan_id]).to.deep.equal(['Store', addon.id, null]);
    expect([item!.group!.id, item!.group!.name]).to.deep.equal([group.id, 'Stores']);
  });

  it('shows who may read events alone no other records: neither expanded nor as amounts of invoices', async () => {
    const key = await world.api.keyWithRoles(['event_reader'], { user_type: 'service_account' });
    for (const part of ['price', 'meter', 'feature', 'subscription_line_item', 'plan']) {
      const { status, body } = await world.api.request('POST', '/events/analytics', {
        key,
        body: { ...acme, expand: [part] },
      });
      expect([status, body.details?.permission]).to.deep.equal([
        403,
        `${part === 'subscription_line_item' ? 'subscription' : part}:read`,
      ]);
    }
    expect((await world.api.request('POST', '/events/analytics', { key, body: acme })).status).to.equal(200);
    const range = `start_time=${march.start_time}&end_time=${march.end_time}`;
    const amounts = await world.api.request('GET', `/events/usage/export?${range}&amounts=true`, { key });
    expect([amounts.status, amounts.body.details?.permission]).to.deep.equal([403, 'invoice:read']);
    expect((await world.api.request('GET', `/events/usage/export?${range}`, { key })).status).to.equal(200);
  });

  it('a cancelled subscription counts until it ended', async () => {
    world.at('2026-03-25');
    await world.subscribe('initech', 'Pro', { start_date: '2026-03-10T00:00:00Z' });
    await world.cancel('initech');
    await world.send([
      world.event('initech', 'tokens', { n: 1, at: '2026-03-09T23:59:59Z' }),
      world.event('initech', 'tokens', { n: 2, at: '2026-03-10T00:00:00Z' }),
      world.event('initech', 'tokens', { n: 4, at: '2026-03-24T23:59:59Z' }),
      world.event('initech', 'tokens', { n: 8, at: '2026-03-25T00:00:00Z' }),
    ]);
    await world.waitForPipeline();
    const all = await items({ external_customer_id: 'initech', ...march });
    expect(told(all).at(-1)).to.equal('feature tokens - 6 0.6 2');
  });

  it('an archived feature that is named: what its meter counts is billed all the same', async () => {
    const feature = await world.post('/features', {
      name: 'gone',
      type: 'metered',
      meter_id: world.id('meter tokens'),
    });
    const before = told(await items({ ...acme, feature_ids: [feature.id] }));
    expect(before).to.deep.equal(['gone - 150.5 12.525 2']);
    expect((await world.api.request('DELETE', `/features/${feature.id}`)).status).to.equal(200);
    expect(told(await items({ ...acme, feature_ids: [feature.id] }))).to.deep.equal(before);
  });

  it('/meter-usage/detailed-analytics says the same', async () => {
    const answer = await world.api.request('POST', '/meter-usage/detailed-analytics', { body: acme });
    expect(answer.body, answer.text).to.deep.equal((await ask(acme)).body);
    const { external_customer_id: _, ...nobody } = acme;
    expect((await world.api.request('POST', '/meter-usage/detailed-analytics', { body: nobody })).status).to.equal(400);
  });

  const BAD: [body: object, status: number, field: string][] = [
    [{ group_by: ['region'] }, 400, 'group_by'],
    [{ group_by: ['properties.'] }, 400, 'group_by'],
    [{ expand: ['customer'] }, 400, 'expand'],
    [{ expand: ['constructor'] }, 400, 'expand'],
    [{ window_size: 'YEAR' }, 400, 'window_size'],
    [{ window_size: 'MINUTE', start_time: '2020-01-01T00:00:00Z' }, 400, 'window_size'],
    [{ start_time: 'x' }, 400, 'start_time'],
    [{ start_time: '2026-04-01T00:00:00Z' }, 400, 'end_time'],
    [{ property_filters: { a: [] } }, 400, 'property_filters'],
    [{ external_customer_id: 'nobody' }, 404, 'customer with external id nobody'],
    [{ external_customer_ids: ['acme', 'nobody'] }, 404, 'customer with external id nobody'],
    [{ feature_ids: ['feat_none'] }, 404, 'feature feat_none'],
    [{ meter_ids: ['meter_none'] }, 404, 'meter meter_none'],
  ];
  for (const [body, status, field] of BAD) {
    it(`${status}: ${JSON.stringify(body)}`, async () => {
      const answer = await ask({ ...acme, ...body });
      expect(answer.status, answer.text).to.equal(status);
      expect(answer.body.message).to.contain(field);
    });
  }
});
