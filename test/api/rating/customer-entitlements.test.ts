/** What a customer may use, from all that grants it, and what it has used of that since it began again from 0. */
import { expect } from 'chai';
import { newId } from '../../../storage/foundation/new-id.ts';
import { AddonAssociationModel } from '../../../storage/models/subscriptions/addon-association.ts';
import type { Addon, Entitlement, Feature, Plan } from '../../support/answers.ts';
import { fixed, startWorld, type World } from '../../support/world.ts';

type Fields = Record<string, unknown>;

describe('what a customer is entitled to', () => {
  let world: World;
  let pro: Plan;
  let more: Addon;
  const features: Record<string, Feature> = {};
  const grants: Record<string, Entitlement> = {};

  const post = <Path extends string>(path: Path, body: Fields) => world.post(path, body);
  const get = <Path extends string>(path: Path) => world.get(path);
  const grant = (feature: string, fields: Fields) =>
    post('/entitlements', { feature_id: features[feature]!.id, feature_type: features[feature]!.type, ...fields });
  const ofPlan = (feature: string, fields: Fields = {}) => grant(feature, { plan_id: pro.id, ...fields });
  const ofAddon = (feature: string, fields: Fields = {}) =>
    grant(feature, { entity_type: 'ADDON', entity_id: more.id, ...fields });
  const attach = (subscription_id: string, quantity = 1, fields: Fields = {}) =>
    AddonAssociationModel.add(
      world.api.scope,
      {
        id: newId('addon_association', world.now.getTime()),
        entity_id: subscription_id,
        addon_id: more.id,
        quantity,
        start_date: world.now.toISOString(),
        ...fields,
      },
      { database: world.api.services.postgres },
    );
  const byName = async (path: `/customers/${string}/entitlements${'' | `?${string}`}`) => {
    const { features: entries } = await get(path);
    return Object.fromEntries(
      entries.map(({ feature, entitlement }) => [
        entitlement.usage_reset_period ? `${feature.name} ${entitlement.usage_reset_period}` : feature.name,
        entitlement,
      ]),
    );
  };

  before(async () => {
    world = await startWorld({ now: '2026-01-05T00:00:00Z' });
    pro = await world.plan('Pro', [fixed('10')]);
    more = await post('/addons', { name: 'More', lookup_key: 'more' });
    const calls = await world.meter('calls');
    const total = await world.meter('total', { type: 'SUM', field: 'n' }, { reset_usage: 'NEVER' });
    for (const [name, type, meter_id] of [
      ['Calls', 'metered', calls.id],
      ['Total', 'metered', total.id],
      ['SSO', 'boolean'],
      ['Tier', 'static'],
      ['Rules', 'config'],
    ] as const)
      features[name] = await post('/features', { name, type, ...(meter_id ? { meter_id } : {}) });
    grants.calls = await ofPlan('Calls', { usage_limit: 1000 });
    await ofPlan('Total', { usage_limit: 50, usage_reset_period: 'MONTHLY' });
    await ofPlan('SSO', { is_enabled: false });
    await ofPlan('Tier', { static_value: 'gold' });
    await ofPlan('Rules', { config_value: { regions: ['eu'] } });
    await ofAddon('Calls', { usage_limit: 500, usage_reset_period: 'MONTHLY', is_soft_limit: true });
    await ofAddon('Tier', { static_value: 'eu' });
  });
  after(() => world.stop());

  it('is nothing without a subscription', async () => {
    const { id } = await post('/customers', { external_id: 'nobody' });
    expect(await get(`/customers/${id}/entitlements`)).to.deep.equal({ customer_id: id, features: [] });
    const as_of = '2026-01-05T00:00:00Z';
    const usage = { customer_id: id, features: [], period: null, pagination: null, as_of };
    expect(await get('/customers/usage?customer_lookup_key=nobody')).to.deep.equal(usage);
  });

  it('is what its plan grants: each key of the contract', async () => {
    const { id, customer_id } = await world.subscribe('plain', 'Pro');
    const view = await get(`/customers/${customer_id}/entitlements?feature_ids=${features.Calls!.id}`);
    expect(view).to.deep.equal({
      customer_id,
      features: [
        {
          feature: features.Calls,
          entitlement: {
            is_enabled: true,
            is_soft_limit: false,
            usage_limit: 1000,
            usage_reset_period: 'MONTHLY',
            static_values: [],
            config_values: [],
            aggregation_mode: null,
            buckets: [],
          },
          sources: [
            {
              subscription_id: id,
              entity_id: pro.id,
              entity_type: 'plan',
              entity_name: 'Pro',
              quantity: 1,
              entitlement_id: grants.calls!.id,
              is_enabled: true,
              usage_limit: 1000,
              static_value: null,
              usage_reset_period: 'MONTHLY',
              config_value: null,
            },
          ],
        },
      ],
    });
    expect(await get(`/customers/external/plain/entitlements?feature_ids=${features.Calls!.id}`)).to.deep.equal(view);
    expect(await get(`/subscriptions/${id}/entitlements?feature_ids=${features.Calls!.id}`)).to.deep.equal({
      subscription_id: id,
      plan_id: pro.id,
      features: view.features,
    });
  });

  it('adds up over add-ons, times their quantity; the same one twice counts twice', async () => {
    const { id, customer_id } = await world.subscribe('added', 'Pro');
    await attach(id, 2);
    await attach(id);
    await attach(id, 9, { addon_status: 'cancelled' });
    await attach(id, 9, { start_date: '2026-02-01T00:00:00Z' });
    await attach(id, 9, { start_date: '2026-01-01T00:00:00Z', end_date: '2026-01-05T00:00:00Z' });
    const view = await byName(`/customers/${customer_id}/entitlements`);
    expect(view['Calls MONTHLY']).to.include({ usage_limit: 2500, is_soft_limit: true });
    expect(view.Tier!.static_values).to.deep.equal(['gold', 'eu']);
    expect(view.Rules!.config_values).to.deep.equal([{ regions: ['eu'] }]);
    expect(view.SSO).to.deep.include({ is_enabled: false, usage_limit: null });
  });

  it('goes by what is of the subscription itself, for as long as that is in force', async () => {
    const { id, customer_id } = await world.subscribe('own', 'Pro');
    await attach(id);
    const own = { entity_type: 'SUBSCRIPTION', entity_id: id };
    const replacing = { ...own, parent_entitlement_id: grants.calls!.id, end_date: '2026-01-06T00:00:00Z' };
    await grant('Calls', { ...replacing, usage_limit: 30 });
    await grant('Calls', { ...own, usage_limit: 7, usage_reset_period: 'DAILY' });
    await grant('SSO', own);
    const path = `/customers/${customer_id}/entitlements` as const;
    const view = await byName(path);
    expect(view['Calls MONTHLY']!.usage_limit).to.equal(530);
    expect(view['Calls DAILY']!.usage_limit).to.equal(7);
    expect(view.SSO!.is_enabled).to.equal(true);
    const [, , own7] = (await get(`${path}?feature_ids=${features.Calls!.id}`)).features.flatMap((one) => one.sources);
    expect(own7).to.include({ entity_type: 'subscription', entity_id: id, entity_name: 'Pro' });
    world.at('2026-01-06T00:00:00Z');
    expect((await byName(path))['Calls MONTHLY']!.usage_limit).to.equal(1500);
    world.at('2026-01-05T00:00:00Z');
  });

  it('is unlimited where one source has no limit, and 0 where none is enabled', async () => {
    const { id, customer_id } = await world.subscribe('free', 'Pro');
    const path = `/customers/${customer_id}/entitlements` as const;
    const own = await grant('Calls', { entity_type: 'SUBSCRIPTION', entity_id: id });
    expect((await byName(path))['Calls MONTHLY']!.usage_limit).to.equal(null);
    await world.api.request('PUT', `/entitlements/${own.id}`, { body: { usage_reset_period: 'DAILY' } });
    const view = await byName(path);
    const limits = [view['Calls DAILY']!.usage_limit, view['Calls MONTHLY']!.usage_limit];
    expect(limits, 'the limit of another period is none either').to.deep.equal([null, null]);
    const { features: used } = await get(`/customers/${customer_id}/usage?feature_ids=${features.Calls!.id}`);
    const shown = used.map(({ total_limit, is_unlimited }) => [total_limit, is_unlimited]);
    expect(shown, 'where usage is shown beside it').to.deep.equal([
      [null, true],
      [null, true],
    ]);
    await world.api.request('PUT', `/entitlements/${own.id}`, { body: { usage_reset_period: 'MONTHLY' } });
    await world.api.request('PUT', `/entitlements/${own.id}`, {
      body: { usage_limit: 0, is_enabled: false },
    });
    expect((await byName(path))['Calls MONTHLY']!.usage_limit).to.equal(1000);
    const off = { entity_type: 'SUBSCRIPTION', entity_id: id, parent_entitlement_id: grants.calls!.id };
    const replaced = await grant('Calls', off);
    await world.api.request('PUT', `/entitlements/${replaced.id}`, { body: { is_enabled: false } });
    expect((await byName(path))['Calls MONTHLY']).to.include({ usage_limit: 0, is_enabled: false });
  });

  it('is of the subscriptions that are asked for, and of none that is cancelled', async () => {
    const one = await world.subscribe('two', 'Pro');
    const two = await world.subscribe('two', 'Pro');
    const path = `/customers/${one.customer_id}/entitlements` as const;
    expect((await byName(path))['Calls MONTHLY']!.usage_limit).to.equal(2000);
    expect((await byName(`${path}?subscription_ids=${one.id}`))['Calls MONTHLY']!.usage_limit).to.equal(1000);
    await post(`/subscriptions/${two.id}/cancel`, { cancellation_type: 'immediate' });
    expect((await byName(path))['Calls MONTHLY']!.usage_limit).to.equal(1000);
    expect((await get(`/subscriptions/${two.id}/entitlements`)).features).to.deep.equal([]);
  });

  it('404 for an unknown customer, and for one of another tenant; 400 for usage of nobody', async () => {
    const { customer_id, id } = await world.subscribe('mine', 'Pro');
    const { key } = await world.api.otherTenant();
    for (const [path, status] of [
      [`/customers/${customer_id}/entitlements`, 404],
      ['/customers/external/mine/entitlements', 404],
      [`/customers/${customer_id}/usage`, 404],
      [`/subscriptions/${id}/entitlements`, 404],
      ['/customers/usage?customer_lookup_key=mine', 404],
      ['/customers/usage', 400],
    ] as const)
      expect((await world.api.request('GET', path, { key })).status, path).to.equal(status);
    expect((await world.api.request('GET', '/customers/cust_x/entitlements')).status).to.equal(404);
    const disagree = `/customers/usage?customer_id=${customer_id}&customer_lookup_key=plain`;
    expect((await world.api.request('GET', disagree)).status).to.equal(400);
    expect((await world.api.request('GET', `/customers/${customer_id}/usage?customer_id=x`)).status).to.equal(400);
  });

  it('usage since it began again from 0, beside the limit', async () => {
    const { id, customer_id } = await world.subscribe('user', 'Pro');
    await grant('Calls', { entity_type: 'SUBSCRIPTION', entity_id: id, usage_limit: 40, usage_reset_period: 'DAILY' });
    await world.use('user', 'calls', 100, { at: '2026-01-20T23:59:59Z' });
    await world.use('user', 'calls', '23.4', { at: '2026-01-21T00:00:00Z' });
    await world.use('user', 'total', 75, { at: '2026-01-06T00:00:00Z' });
    await world.waitForPipeline();
    world.at('2026-01-21T12:00:00Z');
    const summary = async (query = '') => {
      const { features: entries } = await get(`/customers/usage?customer_id=${customer_id}${query}`);
      return entries.map(({ feature, sources: _sources, ...entry }) => ({ name: feature.name, ...entry }));
    };
    const common = { is_unlimited: false, is_enabled: true, is_soft_limit: false, grants: null };
    const monthly = { total_limit: 1000, current_usage: '123.4', usage_percent: '12.34' };
    const daily = { total_limit: 40, current_usage: '23.4', usage_percent: '58.5' };
    const total = { total_limit: 50, current_usage: '75', usage_percent: '150' };
    expect(await summary()).to.have.deep.members([
      { name: 'Calls', ...common, ...monthly, next_usage_reset_at: '2026-02-05T00:00:00Z' },
      { name: 'Calls', ...common, ...daily, next_usage_reset_at: '2026-01-22T00:00:00Z' },
      { name: 'Total', ...common, ...total, next_usage_reset_at: null },
    ]);
    expect(await summary('&feature_lookup_keys=total')).to.have.length(1);
    const { id: others } = await world.subscribe('somebody else', 'Pro');
    for (const [query, missing] of [
      ['feature_lookup_keys=total,unknown', 'feature unknown'],
      ['feature_ids=feat_x', 'feature feat_x'],
      ['subscription_ids=subs_x', 'subs_x'],
      [`subscription_ids=${others}`, others],
    ]) {
      for (const path of [`/customers/${customer_id}/usage`, `/customers/${customer_id}/entitlements`]) {
        if (path.endsWith('entitlements') && query!.startsWith('feature_lookup_keys')) continue;
        const { status, body } = await world.api.request('GET', `${path}?${query}`);
        expect([status, body.message]).to.deep.equal([404, body.message!.includes(missing!) ? body.message : missing]);
      }
    }
    expect(await summary(`&feature_ids=${features.Calls!.id}&subscription_ids=${id}`)).to.have.length(2);
    const whole = await get(`/customers/${customer_id}/usage`);
    const period = { start_time: '2026-01-05T00:00:00Z', end_time: '2026-02-05T00:00:00Z', period: 'MONTHLY' };
    expect(whole).to.deep.include({ customer_id, period, pagination: null });
  });

  it('each subscription that resets at another time has its own usage and limit', async () => {
    world.at('2026-01-05T00:00:00Z');
    const { customer_id } = await world.subscribe('both', 'Pro');
    world.at('2026-01-15T00:00:00Z');
    await world.subscribe('both', 'Pro');
    await world.use('both', 'calls', 10, { at: '2026-01-10T00:00:00Z' });
    await world.use('both', 'calls', 5, { at: '2026-01-16T00:00:00Z' });
    await world.waitForPipeline();
    world.at('2026-01-21T12:00:00Z');
    const { features: entries, period } = await get(
      `/customers/${customer_id}/usage?feature_ids=${features.Calls!.id}`,
    );
    expect(period).to.equal(null);
    expect(
      entries.map((one) => [one.total_limit, one.current_usage, one.next_usage_reset_at, one.sources.length]),
    ).to.deep.equal([
      [1000, '15', '2026-02-05T00:00:00Z', 1],
      [1000, '5', '2026-02-15T00:00:00Z', 1],
    ]);
  });
});
