import { expect } from 'chai';
import { NO_GRANTS } from '../../../core/catalog/entitlement/grant-record.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import { AddonAssociationModel } from '../../../storage/models/subscriptions/addon-association.ts';
import type { Addon, Entitlement, Feature, Plan, Subscription } from '../../support/answers.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

const NOW = '2026-03-15T12:00:00.000Z';

type Fields = Record<string, unknown>;

describe('/entitlements', () => {
  let api: TestApi;
  let plan: Plan;
  let addon: Addon;
  let seats: Feature;
  let tier: Feature;
  let sso: Feature;
  let rules: Feature;
  let peak: Feature;
  let count = 0;

  const post = <Path extends string>(path: Path, body: unknown) => api.request('POST', path, { body });
  const made = async <Path extends string>(path: Path, body: unknown) => {
    const answer = await post(path, body);
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const feature = (name: string, type: string, fields: Fields = {}) => made('/features', { name, type, ...fields });
  const meter = (aggregation: Fields) => ({ meter: { name: 'Calls', event_name: 'call', aggregation } });
  const newPlan = () => made('/plans', { name: `Plan ${++count}` });
  const metered = (fields: Fields = {}) => ({ feature_id: seats.id, feature_type: 'metered', ...fields });
  const refused = async (body: Fields, status: number, field?: string, path = '/entitlements') => {
    const answer = await post(path, body);
    expect(answer.status, answer.text).to.equal(status);
    if (field) expect(answer.body.details!.field).to.equal(field);
  };

  before(async () => {
    api = await startTestApi({ now: NOW });
    seats = await feature('Seats', 'metered', meter({ type: 'COUNT' }));
    peak = await feature('Peak', 'metered', meter({ type: 'MAX', field: 'n', bucket_size: 'HOUR' }));
    tier = await feature('Support', 'static');
    sso = await feature('SSO', 'boolean');
    rules = await feature('Rules', 'config');
    plan = await newPlan();
    addon = await made('/addons', { name: 'More', lookup_key: 'more' });
  });
  after(() => api.stop());

  describe('201', () => {
    it('answers every key of the contract', async () => {
      const body = { plan_id: plan.id, ...metered({ usage_limit: '100', usage_reset_period: 'monthly' }) };
      const { id, created_by: _c, updated_by: _u, ...rest } = await made('/entitlements', body);
      expect(id).to.match(/^ent_[0-9A-HJKMNP-TV-Z]{26}$/);
      const { id: _plan, ...shownPlan } = rest.plan!;
      expect(shownPlan).to.deep.include({ name: plan.name, prices: null, entitlements: null, credit_grants: null });
      expect(rest).to.deep.equal({
        ...api.scope,
        entity_type: 'PLAN',
        entity_id: plan.id,
        plan_id: plan.id,
        feature_id: seats.id,
        feature_type: 'metered',
        is_enabled: true,
        usage_limit: 100,
        usage_reset_period: 'MONTHLY',
        is_soft_limit: false,
        static_value: null,
        config_value: null,
        ...NO_GRANTS,
        display_order: 0,
        parent_entitlement_id: null,
        start_date: null,
        end_date: null,
        feature: seats,
        plan: rest.plan,
        addon: null,
        status: 'published',
        created_at: '2026-03-15T12:00:00Z',
        updated_at: '2026-03-15T12:00:00Z',
      });
      const { body: again } = await api.request('GET', `/entitlements/${id}`);
      expect(again).to.deep.include({ ...rest, id });
    });

    const kinds: [string, () => Fields, Fields][] = [
      ['unlimited', () => metered(), { usage_limit: null, usage_reset_period: null, is_enabled: true }],
      ['a limit of 0 is none', () => metered({ usage_limit: 0 }), { usage_limit: 0 }],
      ['a soft limit', () => metered({ usage_limit: 5, is_soft_limit: true }), { is_soft_limit: true }],
      [
        'a static value',
        () => ({ feature_id: tier.id, feature_type: 'static', static_value: 'gold' }),
        { static_value: 'gold' },
      ],
      [
        'values by key',
        () => ({ feature_id: rules.id, feature_type: 'config', config_value: { regions: ['eu'], deep: { n: 1.5 } } }),
        { config_value: { regions: ['eu'], deep: { n: 1.5 } } },
      ],
      ['a boolean', () => ({ feature_id: sso.id, feature_type: 'BOOLEAN' }), { is_enabled: true }],
      [
        'a boolean that is off',
        () => ({ feature_id: sso.id, feature_type: 'boolean', is_enabled: false }),
        { is_enabled: false },
      ],
      ['values of other types that say nothing', () => metered({ static_value: '', config_value: null }), {}],
    ];
    for (const [what, body, expected] of kinds)
      it(what, async () => {
        const granted = { entity_type: 'plan', entity_id: (await newPlan()).id, ...body() };
        expect(await made('/entitlements', granted)).to.deep.include(expected);
      });

    it('to an add-on, and lists of both', async () => {
      const { id } = await made('/entitlements', { entity_type: 'ADDON', entity_id: addon.id, ...metered() });
      const of = await api.request('GET', `/addons/${addon.id}/entitlements`);
      expect(of.body.items.map((one) => [one.id, one.feature!.id, one.plan_id])).to.deep.equal([[id, seats.id, null]]);
      const ofPlan = (await api.request('GET', `/plans/${plan.id}/entitlements`)).body;
      expect(ofPlan).to.deep.include({ id: plan.id, name: plan.name, prices: null, entitlements: null });
      expect(ofPlan.items).to.have.length(1);
      expect(ofPlan.pagination.total).to.equal(1);
      const shown = (await api.request('GET', `/plans/${plan.id}`)).body;
      expect(shown.entitlements!.map((one) => one.id)).to.deep.equal(ofPlan.items.map((one) => one.id));
    });

    it('what has a value is granted when it is made, and a request that says otherwise is refused', async () => {
      const plan = await newPlan();
      await refused({ plan_id: plan.id, ...metered({ usage_limit: 5, is_enabled: false }) }, 400, 'is_enabled');
    });

    it('in bulk, all or none', async () => {
      const [one, two] = [await newPlan(), await newPlan()];
      const items = [one, two].map(({ id }) => ({ plan_id: id, ...metered({ usage_limit: 1 }) }));
      const { items: all } = await made('/entitlements/bulk', { items });
      expect(all.map((each) => each.plan_id)).to.deep.equal([one.id, two.id]);
      const third = await newPlan();
      await refused({ items: [{ plan_id: third.id, ...metered() }, items[0]] }, 409, undefined, '/entitlements/bulk');
      const wrong = {
        items: [
          { plan_id: third.id, ...metered() },
          { plan_id: third.id, ...metered({ usage_limit: -1 }) },
        ],
      };
      await refused(wrong, 400, 'items[1].usage_limit', '/entitlements/bulk');
      expect((await api.request('GET', `/plans/${third.id}/entitlements`)).body.items).to.deep.equal([]);
    });
  });

  describe('of a subscription', () => {
    let subscription: Subscription;
    let ofPlan: Entitlement;
    const override = (fields: Fields = {}) => ({
      entity_type: 'SUBSCRIPTION',
      entity_id: subscription.id,
      ...metered({ usage_limit: 7, ...fields }),
    });

    before(async () => {
      const sold = await newPlan();
      const price = { billing_model: 'FLAT_FEE', amount: '1', currency: 'usd', billing_period: 'MONTHLY' };
      await made('/prices', {
        entity_type: 'PLAN',
        entity_id: sold.id,
        type: 'FIXED',
        invoice_cadence: 'ARREAR',
        ...price,
      });
      await made('/customers', { external_id: 'acme' });
      const terms = { currency: 'usd', billing_period: 'MONTHLY' };
      subscription = await made('/subscriptions', { external_customer_id: 'acme', plan_id: sold.id, ...terms });
      ofPlan = await made('/entitlements', { plan_id: sold.id, ...metered({ usage_limit: 3 }) });
    });

    it('replaces one of its plan, or adds; for one time once', async () => {
      const first = await made(
        '/entitlements',
        override({ parent_entitlement_id: ofPlan.id, end_date: '2026-04-01T00:00:00Z' }),
      );
      expect(first).to.include({ parent_entitlement_id: ofPlan.id, plan: null });
      await refused(override({ parent_entitlement_id: ofPlan.id }), 409);
      await made('/entitlements', override({ parent_entitlement_id: ofPlan.id, start_date: '2026-04-01T00:00:00Z' }));
      await made('/entitlements', override());
      await refused(override(), 409);
    });

    it('replaces one of an add-on that it has, and none of another', async () => {
      const attached = await made('/addons', { name: 'Attached', lookup_key: 'attached' });
      const granted = await made('/entitlements', { entity_type: 'ADDON', entity_id: attached.id, ...metered() });
      await refused(override({ parent_entitlement_id: granted.id }), 400, 'parent_entitlement_id');
      await AddonAssociationModel.add(
        api.scope,
        { id: newId('addon_association'), entity_id: subscription.id, addon_id: attached.id, start_date: NOW },
        { database: api.services.postgres },
      );
      await made('/entitlements', override({ parent_entitlement_id: granted.id }));
      const answer = await api.request('DELETE', `/addons/${attached.id}`);
      expect(answer.body).to.include({ code: 'invalid_operation', http_status_code: 400 });
    });

    it('refuses a parent of another feature or plan', async () => {
      const other = await made('/entitlements', { plan_id: (await newPlan()).id, ...metered() });
      await refused(override({ parent_entitlement_id: other.id }), 400, 'parent_entitlement_id');
      const granted = { plan_id: subscription.plan_id, feature_id: tier.id, feature_type: 'static', static_value: 'a' };
      const ofTier = await made('/entitlements', granted);
      await refused(override({ parent_entitlement_id: ofTier.id }), 400, 'parent_entitlement_id');
      await refused(override({ parent_entitlement_id: newId('entitlement') }), 404);
      const ofPlan = { plan_id: plan.id, ...metered({ parent_entitlement_id: other.id }) };
      await refused(ofPlan, 400, 'parent_entitlement_id');
    });

    it('holds its feature, until it is cancelled', async () => {
      const only = await feature('Only here', 'boolean');
      await made('/entitlements', { ...override(), usage_limit: null, feature_id: only.id, feature_type: 'boolean' });
      expect((await api.request('DELETE', `/features/${only.id}`)).status).to.equal(400);
      await api.request('POST', `/subscriptions/${subscription.id}/cancel`, {
        body: { cancellation_type: 'immediate' },
      });
      expect((await api.request('DELETE', `/features/${only.id}`)).status).to.equal(200);
      await refused(override(), 400);
    });
  });

  describe('400, 401, 403, 404 and 409', () => {
    const wrong: [string, () => Fields, number, string?][] = [
      ['nobody who grants it', () => ({ plan_id: null, ...metered() }), 400, 'entity_type'],
      ['a type alone', () => ({ plan_id: null, entity_type: 'ADDON', ...metered() }), 400, 'entity_id'],
      ['a plan and an add-on', () => ({ entity_type: 'ADDON', entity_id: addon.id, ...metered() }), 400, 'plan_id'],
      ['two plans', () => ({ entity_type: 'PLAN', entity_id: 'plan_x', ...metered() }), 400, 'plan_id'],
      ['no feature', () => ({ feature_type: 'metered' }), 400, 'feature_id'],
      ['another type', () => ({ feature_id: sso.id, feature_type: 'metered' }), 400, 'feature_type'],
      ['a limit below 0', () => metered({ usage_limit: -1 }), 400, 'usage_limit'],
      ['half a unit', () => metered({ usage_limit: 1.5 }), 400, 'usage_limit'],
      [
        'so much that a sum is no exact JSON number',
        () => metered({ usage_limit: '1000000000000' }),
        400,
        'usage_limit',
      ],
      ['an unknown period', () => metered({ usage_reset_period: 'HOURLY' }), 400, 'usage_reset_period'],
      ['a value of a metered one', () => metered({ static_value: 'x' }), 400, 'static_value'],
      ['values of a metered one', () => metered({ config_value: { a: 1 } }), 400, 'config_value'],
      ['no static value', () => ({ feature_id: tier.id, feature_type: 'static' }), 400, 'static_value'],
      [
        'a blank static value',
        () => ({ feature_id: tier.id, feature_type: 'static', static_value: ' ' }),
        400,
        'static_value',
      ],
      [
        'a limit of a static one',
        () => ({ feature_id: tier.id, feature_type: 'static', static_value: 'a', usage_limit: 1 }),
        400,
        'usage_limit',
      ],
      ['no config', () => ({ feature_id: rules.id, feature_type: 'config' }), 400, 'config_value'],
      [
        'a config without keys',
        () => ({ feature_id: rules.id, feature_type: 'config', config_value: {} }),
        400,
        'config_value',
      ],
      [
        'a config with a blank key',
        () => ({ feature_id: rules.id, feature_type: 'config', config_value: { ' ': 1 } }),
        400,
        'config_value',
      ],
      [
        'a soft limit of a boolean',
        () => ({ feature_id: sso.id, feature_type: 'boolean', is_soft_limit: true }),
        400,
        'is_soft_limit',
      ],
      ['the largest of each bucket', () => ({ feature_id: peak.id, feature_type: 'metered' }), 400, 'feature_id'],
      [
        'an end before the start',
        () => metered({ start_date: '2026-02-01T00:00:00Z', end_date: '2026-02-01T00:00:00Z' }),
        400,
        'end_date',
      ],
      ['a feature that is not there', () => metered({ feature_id: newId('feature') }), 404],
      ['a plan that is not there', () => ({ ...metered(), plan_id: newId('plan') }), 404],
      ['a feature that the plan grants already', () => metered(), 409],
    ];
    for (const [why, body, status, field] of wrong)
      it(`${status} for ${why}`, async () => refused({ plan_id: plan.id, ...body() }, status, field));

    it('401 without a key, 403 for a reader', async () => {
      const body = { plan_id: plan.id, ...metered() };
      expect((await api.request('POST', '/entitlements', { body, key: null })).status).to.equal(401);
      const key = await api.keyWithRoles(['all_reader']);
      expect((await api.request('POST', '/entitlements', { body, key })).status).to.equal(403);
    });

    it("404 for another tenant's", async () => {
      const { id } = await made('/entitlements', { plan_id: (await newPlan()).id, ...metered() });
      const { key } = await api.otherTenant();
      const asks: [string, string, unknown?][] = [
        ['GET', `/entitlements/${id}`],
        ['PUT', `/entitlements/${id}`, { usage_limit: 1 }],
        ['DELETE', `/entitlements/${id}`],
        ['POST', '/entitlements', { plan_id: plan.id, ...metered() }],
        ['GET', `/plans/${plan.id}/entitlements`],
        ['GET', `/addons/${addon.id}/entitlements`],
      ];
      for (const [method, path, body] of asks)
        expect((await api.request(method, path, { key, body })).status, `${method} ${path}`).to.equal(404);
      expect((await api.request('GET', '/entitlements', { key })).body.items).to.deep.equal([]);
    });
  });

  describe('PUT and DELETE', () => {
    const put = (id: string, body: unknown) => api.request('PUT', `/entitlements/${id}`, { body });

    it('changes what is given, null clears, and the rules hold', async () => {
      const granted = await made('/entitlements', { plan_id: (await newPlan()).id, ...metered({ usage_limit: 5 }) });
      const changed = await put(granted.id, { usage_limit: 9, usage_reset_period: 'DAILY', is_soft_limit: true });
      expect(changed.body).to.deep.equal({
        ...granted,
        usage_limit: 9,
        usage_reset_period: 'DAILY',
        is_soft_limit: true,
      });
      const cleared = await put(granted.id, { usage_limit: null, usage_reset_period: '', is_enabled: false });
      expect(cleared.body).to.include({ usage_limit: null, usage_reset_period: null, is_enabled: false });
      expect((await put(granted.id, { static_value: 'x' })).body.details!.field).to.equal('static_value');
      expect((await put(newId('entitlement'), { usage_limit: 1 })).status).to.equal(404);
    });

    it('archives, and the plan may grant it anew', async () => {
      const { id: plan_id } = await newPlan();
      const { id } = await made('/entitlements', { plan_id, ...metered() });
      expect((await api.request('DELETE', `/entitlements/${id}`)).status).to.equal(200);
      expect((await api.request('DELETE', `/entitlements/${id}`)).status).to.equal(404);
      expect((await put(id, { usage_limit: 1 })).body.code).to.equal('invalid_operation');
      await made('/entitlements', { plan_id, ...metered() });
    });

    it('a feature that is granted is not archived; with its plan what it grants is', async () => {
      const granted = await feature('Granted', 'boolean');
      const { id: plan_id } = await newPlan();
      const { id } = await made('/entitlements', { plan_id, feature_id: granted.id, feature_type: 'boolean' });
      const refusal = await api.request('DELETE', `/features/${granted.id}`);
      expect(refusal.body).to.include({ code: 'invalid_operation' });
      expect((await api.request('DELETE', `/plans/${plan_id}`)).status).to.equal(200);
      expect((await api.request('GET', `/entitlements/${id}`)).body.status).to.equal('archived');
      expect((await api.request('DELETE', `/features/${granted.id}`)).status).to.equal(200);
    });

    it('a copy of a plan grants the same', async () => {
      const { id } = await newPlan();
      await made('/entitlements', { plan_id: id, ...metered({ usage_limit: 4 }) });
      const copy = await made(`/plans/${id}/clone`, { name: 'Copy', lookup_key: 'copy' });
      expect(copy.entitlements!.map((one) => [one.plan_id, one.usage_limit])).to.deep.equal([[copy.id, 4]]);
    });
  });

  describe('lists and searches', () => {
    let key: string;
    let ids: Record<string, string>;
    const search = (body: unknown) => api.request('POST', '/entitlements/search', { body, key });
    const found = async (answer: { body: { items: Entitlement[] } }) =>
      answer.body.items.map((one) => one.feature_type);

    before(async () => {
      key = (await api.otherTenant()).key;
      const mine = async <Path extends string>(path: Path, body: unknown) =>
        (await api.request('POST', path, { body, key })).body.id as string;
      const sold = await mine('/plans', { name: 'Sold' });
      const more = await mine('/addons', { name: 'More', lookup_key: 'more' });
      const call = await mine('/features', { name: 'Calls', type: 'metered', ...meter({ type: 'COUNT' }) });
      const single = await mine('/features', { name: 'SSO', type: 'boolean' });
      ids = { sold, more, call, single };
      api.setNow('2026-03-15T12:01:00Z');
      await mine('/entitlements', { plan_id: sold, feature_id: call, feature_type: 'metered', usage_limit: 3 });
      api.setNow('2026-03-15T12:02:00Z');
      const off = { feature_id: single, feature_type: 'boolean', is_enabled: false };
      await mine('/entitlements', { entity_type: 'ADDON', entity_id: more, ...off });
      api.setNow(NOW);
    });

    const cases: [string, () => Fields, string[]][] = [
      ['newest first', () => ({}), ['boolean', 'metered']],
      ['by type', () => ({ entity_type: 'ADDON' }), ['boolean']],
      ['by entity', () => ({ entity_ids: [ids.sold] }), ['metered']],
      ['by plan', () => ({ plan_ids: [ids.sold, ids.more] }), ['metered']],
      ['by feature', () => ({ feature_ids: [ids.single] }), ['boolean']],
      ['by type of feature', () => ({ feature_type: 'metered' }), ['metered']],
      ['what is granted', () => ({ is_enabled: true }), ['metered']],
      ['sorted by limit', () => ({ sort: [{ field: 'usage_limit', direction: 'asc' }] }), ['metered', 'boolean']],
      [
        'by a condition',
        () => ({ filters: [{ field: 'usage_limit', operator: 'gt', data_type: 'number', value: { number: 2 } }] }),
        ['metered'],
      ],
    ];
    for (const [what, body, expected] of cases)
      it(what, async () => {
        expect(await found(await search(body()))).to.deep.equal(expected);
      });

    it('from a query string, with what is asked for', async () => {
      const path =
        `/entitlements?is_enabled=false&feature_ids=${ids.single},${ids.call}&expand=features,addons` as const;
      const [one, ...none] = (await api.request('GET', path, { key })).body.items!;
      expect([one!.feature!.id, one!.addon!.id, one!.plan, none.length]).to.deep.equal([ids.single, ids.more, null, 0]);
      const [plain] = (await search({ plan_ids: [ids.sold], expand: ['meters', 'plans'] })).body.items;
      expect([plain!.feature!.meter!.event_name, plain!.plan!.id]).to.deep.equal(['call', ids.sold]);
      expect((await search({ expand: 'prices' })).status).to.equal(400);
    });
  });
});
