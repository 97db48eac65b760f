/** Entitlements that are granted bit by bit: what may be said of them, and where it goes (docs/rules/entitlements.md, "Grants"). */
import { expect } from 'chai';
import type { Feature } from '../../support/answers.ts';
import { startWorld, usage, type World } from '../../support/world.ts';

type Fields = Record<string, unknown>;

const ROLLING = {
  grant_measure: 'quantity',
  grant_quota: '100.5',
  grant_duration_value: 5,
  grant_duration_unit: 'hour',
  grant_allocation_behavior: 'first_usage',
  aggregation_mode: 'additive',
};
const NONE = {
  grant_measure: null,
  grant_quota: null,
  grant_duration_value: null,
  grant_duration_unit: null,
  grant_allocation_behavior: null,
  aggregation_mode: null,
  alert_settings: null,
};
const LEVELS = {
  alert_enabled: true,
  critical: { threshold: '1', condition: null },
  warning: { threshold: '0.8', condition: null },
  info: { threshold: '0.5', condition: null },
};
const levels = (fields: Record<string, unknown>) => ({ ...ROLLING, alert_settings: { ...LEVELS, ...fields } });

describe('entitlements that are granted bit by bit', () => {
  let world: World;
  const features: Record<string, Feature> = {};
  let count = 0;

  const ask = <Method extends string, Path extends string>(method: Method, path: Path, body?: Fields) =>
    world.api.request(method, path, { body });
  const newPlan = () => world.plan(`plan ${++count}`, [usage('calls', '1')]);
  const grant = async (fields: Fields, feature = 'calls') => {
    const { id: plan_id } = await newPlan();
    const { id: feature_id, type: feature_type } = features[feature]!;
    return ask('POST', '/entitlements', { plan_id, feature_id, feature_type, ...fields });
  };
  const granted = async (fields: Fields) => {
    const { status, body, text } = await grant(fields);
    expect(status, text).to.equal(201);
    return body;
  };

  before(async () => {
    world = await startWorld({ now: '2026-01-05T00:00:00Z' });
    const meters = {
      calls: await world.meter('calls'),
      jobs: await world.meter('jobs', { type: 'COUNT' }),
      people: await world.meter('people', { type: 'COUNT_UNIQUE', field: 'who' }),
      daily: await world.meter('daily', { type: 'SUM', field: 'n', bucket_size: 'DAY' }),
      seats: await world.meter('seats', { type: 'SUM', field: 'n' }, { reset_usage: 'NEVER' }),
    };
    for (const [name, { id }] of Object.entries(meters))
      features[name] = await world.post('/features', { name, type: 'metered', meter_id: id });
    features.sso = await world.post('/features', { name: 'sso', type: 'boolean' });
  });
  after(() => world.stop());

  it('are answered with their terms, as they were spelt or not', async () => {
    const made = await granted({
      ...ROLLING,
      grant_measure: 'QUANTITY',
      grant_quota: 100.5,
      grant_duration_unit: 'Hour',
    });
    expect(made).to.deep.include({ ...ROLLING, usage_limit: null, usage_reset_period: null, is_enabled: true });
    expect(await world.get(`/entitlements/${made.id}`)).to.deep.equal(made);
    const least = { grant_measure: 'amount', grant_quota: '5', grant_duration_unit: 'subscription_period' };
    expect(await granted(least)).to.deep.include({ ...NONE, ...least });
    expect(await granted({ usage_limit: 5, aggregation_mode: 'additive' })).to.deep.include({ usage_limit: 5 });
  });

  const refusals: [what: string, fields: Fields, field: string, feature?: string][] = [
    ['a quota of 0', { ...ROLLING, grant_quota: '0' }, 'grant_quota'],
    ['a quota below 0', { ...ROLLING, grant_quota: '-1' }, 'grant_quota'],
    ['a quota of more digits than a JSON number holds', { ...ROLLING, grant_quota: '1234567890.123' }, 'grant_quota'],
    ['no quota', { ...ROLLING, grant_quota: null }, 'grant_quota'],
    ['no measure', { ...ROLLING, grant_measure: null }, 'grant_measure'],
    ['another measure', { ...ROLLING, grant_measure: 'money' }, 'grant_measure'],
    ['no unit', { ...ROLLING, grant_duration_unit: null }, 'grant_duration_unit'],
    ['no length', { ...ROLLING, grant_duration_value: null }, 'grant_duration_value'],
    ['less than an hour', { ...ROLLING, grant_duration_value: 0 }, 'grant_duration_value'],
    ['half an hour', { ...ROLLING, grant_duration_value: 0.5 }, 'grant_duration_value'],
    ['so many periods', { ...ROLLING, grant_duration_unit: 'subscription_period' }, 'grant_duration_value'],
    [
      'where in a period it begins',
      { ...ROLLING, grant_duration_unit: 'subscription_period', grant_duration_value: null },
      'grant_allocation_behavior',
    ],
    ['another beginning', { ...ROLLING, grant_allocation_behavior: 'midnight' }, 'grant_allocation_behavior'],
    ['a limit besides', { ...ROLLING, usage_limit: 5 }, 'usage_limit'],
    ['a reset period besides', { ...ROLLING, usage_reset_period: 'DAILY' }, 'usage_reset_period'],
    ['parallel without grants', { usage_limit: 5, aggregation_mode: 'parallel' }, 'aggregation_mode'],
    ['levels without grants', { usage_limit: 5, alert_settings: LEVELS }, 'alert_settings'],
    [
      'levels from above',
      levels({ critical: { threshold: '1', condition: 'below' } }),
      'alert_settings.critical.condition',
    ],
    ['a level of more than the quota', levels({ critical: { threshold: '80' } }), 'alert_settings.critical.threshold'],
    ['a level of nothing', levels({ info: { threshold: '0' } }), 'alert_settings.info.threshold'],
    ['levels out of order', levels({ info: { threshold: '0.9' } }), 'alert_settings'],
    ['alerts without a level', { ...ROLLING, alert_settings: { alert_enabled: true } }, 'alert_settings'],
    ['a feature that is not metered', ROLLING, 'grant_measure', 'sso'],
    ['a meter of distinct values', ROLLING, 'grant_quota', 'people'],
    ['a meter with buckets', ROLLING, 'grant_quota', 'daily'],
    ['a meter that never resets', ROLLING, 'grant_quota', 'seats'],
  ];
  for (const [what, fields, field, feature] of refusals)
    it(`refuse ${what}`, async () => {
      const { status, body, text } = await grant(fields, feature);
      expect([status, body.code, body.details!.field], text).to.deep.equal([400, 'validation_error', field]);
    });

  it('are changed, cleared, and looked for', async () => {
    const made = await granted(ROLLING);
    const put = (body: Fields) => ask('PUT', `/entitlements/${made.id}`, body);
    expect((await put({ grant_quota: '7', grant_duration_unit: 'week' })).body).to.deep.include({
      ...ROLLING,
      grant_quota: '7',
      grant_duration_unit: 'week',
    });
    const whole = {
      grant_duration_unit: 'subscription_period',
      grant_duration_value: null,
      grant_allocation_behavior: '',
    };
    expect((await put(whole)).body).to.deep.include({ ...whole, grant_allocation_behavior: null, grant_quota: '7' });
    for (const [body, field] of [
      [{ grant_quota: null }, 'grant_quota'],
      [{ usage_limit: 5 }, 'usage_limit'],
      [{ clear_grant_config: true, grant_quota: '5' }, 'grant_quota'],
    ] as const) {
      const refused = await put(body);
      expect([refused.status, refused.body.details!.field], refused.text).to.deep.equal([400, field]);
    }
    expect((await put({ alert_settings: LEVELS })).body).to.deep.include({ alert_settings: LEVELS, grant_quota: '7' });
    expect((await put({ grant_quota: '8' })).body.alert_settings).to.deep.equal(LEVELS);
    expect((await put({ alert_settings: null })).body.alert_settings).to.equal(null);
    expect((await put({ alert_settings: LEVELS })).status).to.equal(200);
    const listed = async (has: string) => {
      const { items } = await world.get(`/entitlements?plan_ids=${made.plan_id}&has_grant_config=${has}`);
      return items.length;
    };
    expect([await listed('true'), await listed('false')]).to.deep.equal([1, 0]);
    const { items } = await world.post('/entitlements/search', { plan_ids: [made.plan_id], has_grant_config: true });
    expect(items.map(({ id }) => id)).to.deep.equal([made.id]);
    const cleared = await put({ clear_grant_config: true, usage_limit: 9 });
    expect(cleared.body).to.deep.include({ ...NONE, usage_limit: 9 });
    expect([await listed('true'), await listed('false')]).to.deep.equal([0, 1]);
    const limited = await granted({ usage_limit: 5, usage_reset_period: 'DAILY' });
    const turned = { ...ROLLING, usage_limit: null, usage_reset_period: null };
    expect((await ask('PUT', `/entitlements/${limited.id}`, turned)).body).to.deep.include(turned);
  });

  it('refuse a change that their meter does not go with', async () => {
    const { body } = await grant({ usage_limit: 5 }, 'people');
    const { status, body: refused } = await ask('PUT', `/entitlements/${body.id}`, { ...ROLLING, usage_limit: null });
    expect([status, refused.details!.field]).to.deep.equal([400, 'grant_quota']);
  });

  it('go with a copy of their plan, and with what replaces them in a new subscription', async () => {
    const made = await granted(ROLLING);
    const copy = await world.post(`/plans/${made.plan_id}/clone`, { name: 'Copy', lookup_key: `copy-${made.id}` });
    const { items } = await world.get(`/plans/${copy.id}/entitlements`);
    expect(items[0]).to.deep.include(ROLLING);
    const subscribe = (external_customer_id: string, override: Fields) =>
      ask('POST', '/subscriptions', {
        external_customer_id,
        plan_id: made.plan_id,
        currency: 'usd',
        billing_period: 'MONTHLY',
        billing_period_count: 1,
        override_entitlements: [{ entitlement_id: made.id, ...override }],
      });
    await world.customer('overrider');
    const limit = await subscribe('overrider', { usage_limit: 5 });
    expect([limit.status, limit.body.details!.field]).to.deep.equal([400, 'override_entitlements[0].usage_limit']);
    const { body: subscription } = await subscribe('overrider', { is_enabled: false });
    const own = await world.get(`/entitlements?entity_ids=${subscription.id}`);
    expect(own.items[0]).to.deep.include({ ...ROLLING, is_enabled: false });
    const [entry] = (await world.get(`/subscriptions/${subscription.id}/entitlements`)).features;
    expect(entry!.entitlement).to.deep.include({ is_enabled: false, usage_limit: 0 });
    const check = { external_customer_id: 'overrider', feature_id: features.calls!.id };
    expect(await world.post('/entitlements/check', check)).to.deep.include({ allowed: false, reason: 'not_enabled' });
  });

  it('are shown to the customer, those that add up as one, those beside others each', async () => {
    const made = await granted(ROLLING);
    await world.customer('viewer');
    const { id, customer_id } = await world.post('/subscriptions', {
      external_customer_id: 'viewer',
      plan_id: made.plan_id,
      currency: 'usd',
      billing_period: 'MONTHLY',
      billing_period_count: 1,
    });
    const own = { entity_type: 'SUBSCRIPTION', entity_id: id, feature_id: features.calls!.id, feature_type: 'metered' };
    await world.post('/entitlements', { ...own, ...ROLLING, grant_quota: '20', is_soft_limit: true });
    const view = async () =>
      (await world.get(`/customers/${customer_id}/entitlements`)).features.map(({ entitlement, sources }) => ({
        ...entitlement,
        sources: sources.length,
      }));
    const bucket = {
      grant_measure: 'quantity',
      grant_duration_value: 5,
      grant_duration_unit: 'hour',
      usage_limit: null,
    };
    const [added] = await view();
    expect(added).to.deep.include({
      usage_limit: 120.5,
      is_soft_limit: true,
      usage_reset_period: null,
      aggregation_mode: 'additive',
      sources: 2,
    });
    expect(added!.buckets).to.deep.equal([
      { ...bucket, entitlement_id: made.id, source_entity_id: made.plan_id, grant_quota: '100.5' },
      { ...bucket, entitlement_id: added!.buckets[1]!.entitlement_id, source_entity_id: id, grant_quota: '20' },
    ]);
    await ask('PUT', `/entitlements/${made.id}`, { aggregation_mode: 'parallel', grant_measure: 'amount' });
    const [parallel, additive] = await view();
    expect(parallel).to.deep.include({ usage_limit: null, aggregation_mode: 'parallel', sources: 1 });
    expect(additive).to.deep.include({ usage_limit: 20, aggregation_mode: 'additive', sources: 1 });
  });

  it('do not bind where something else is unlimited', async () => {
    const made = await granted({});
    await world.customer('free');
    const { id } = await world.post('/subscriptions', {
      external_customer_id: 'free',
      plan_id: made.plan_id,
      currency: 'usd',
      billing_period: 'MONTHLY',
      billing_period_count: 1,
    });
    const own = { entity_type: 'SUBSCRIPTION', entity_id: id, feature_id: features.calls!.id, feature_type: 'metered' };
    await world.post('/entitlements', { ...own, ...ROLLING, grant_quota: '1' });
    await world.use('free', 'calls', 50);
    await world.waitForPipeline();
    const check = { external_customer_id: 'free', feature_id: features.calls!.id, quantity: '9' };
    expect(await world.post('/entitlements/check', check)).to.deep.include({ allowed: true, limit: null });
    const { charges } = await world.post('/subscriptions/usage', { subscription_id: id });
    expect([charges[0]!.quantity, charges[0]!.amount]).to.deep.equal(['0', '0']);
  });
});
