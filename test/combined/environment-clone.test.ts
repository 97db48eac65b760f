/** The catalogue of one environment in another: what is copied, once, and what is told of the rest. */
import { expect } from 'chai';
import { tryClone } from '../../actions/operations/environments/clone-environment.ts';
import { COPIED, ROOTS } from '../../actions/operations/environments/copied.ts';
import { startScheduler } from '../../scheduler/main.ts';
import type { AnswerTo, Feature } from '../support/answers.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { until } from '../support/until.ts';

type Run = { workflow_id: string; run_id: string; target_environment_id: string };
const usage = { type: 'USAGE', billing_model: 'FLAT_FEE', billing_period: 'MONTHLY', invoice_cadence: 'ARREAR' };
const fixed = { type: 'FIXED', billing_model: 'FLAT_FEE', billing_period: 'MONTHLY', invoice_cadence: 'ADVANCE' };

type ListPath =
  `/${'features' | 'meters' | 'plans' | 'audit-logs' | 'entitlements' | 'prices' | 'prices/units' | 'addons' | 'tasks/mappings' | `plans/${string}/creditgrants`}${'' | `?${string}`}`;
type Listed<Path extends string> = AnswerTo<'GET', Path> extends { items: (infer Item)[] } ? Item : never;

type Left = { entity: string; id: string; name: string; reason: string };
const left = (told: unknown) => told as Left[];

describe('POST /environments/:id/clone', () => {
  let api: TestApi;
  let feature: Feature;
  let plan: { id: string };
  before(async () => {
    api = await startTestApi();
    const group = await made('/groups', { name: 'Calls', entity_type: 'price', lookup_key: 'calls' });
    const unit = { name: 'Credit', code: 'cr', symbol: 'C', base_currency: 'usd', conversion_rate: '0.1' };
    await made('/prices/units', unit);
    const meter = { name: 'Calls', event_name: 'call', aggregation: { type: 'SUM', field: 'n' } };
    feature = await made('/features', { name: 'API calls', type: 'metered', meter });
    await made('/features', { name: 'SSO', type: 'boolean' });
    const gone = await made('/features', { name: 'Gone', type: 'boolean' });
    await api.request('DELETE', `/features/${gone.id}`);
    plan = await made('/plans', { name: 'Pro', lookup_key: 'pro', metadata: { tier: '1' } });
    const of = { entity_type: 'PLAN', entity_id: plan.id, currency: 'usd', billing_cadence: 'RECURRING' };
    const calls = { ...of, ...usage, amount: '0.25', meter_id: feature.meter_id, group_id: group.id };
    await made('/prices', { ...calls, lookup_key: 'pro_calls' });
    await made('/prices', { ...of, ...fixed, amount: '10', lookup_key: 'pro_base' });
    const custom = { price_unit: 'cr', amount: '100' };
    await made('/prices', { ...of, ...fixed, price_unit_type: 'CUSTOM', price_unit_config: custom });
    const ended = await made('/prices', { ...of, ...fixed, amount: '99' });
    await api.request('DELETE', `/prices/${ended.id}`, { body: {} });
    const granted = { entity_type: 'PLAN', entity_id: plan.id, feature_id: feature.id, feature_type: 'metered' };
    await made('/entitlements', { ...granted, usage_limit: 1_000, usage_reset_period: 'MONTHLY' });
    const grant = { name: 'Start', scope: 'PLAN', plan_id: plan.id, credits: '10', cadence: 'ONETIME' };
    await made('/creditgrants', grant);
    api.setNow('2026-03-15T13:00:00Z');
  });
  after(() => api.stop());

  const made = async <Path extends string>(path: Path, body: unknown, key = api.key) => {
    const answer = await api.request('POST', path, { body, key });
    expect(answer.status, `${path}: ${answer.text}`).to.equal(201);
    return answer.body;
  };
  const ask = (body: unknown, { id = api.scope.environment_id, key = api.key as string | null } = {}) =>
    api.request('POST', `/environments/${id}/clone`, { body, key });
  const attempt = (signal = AbortSignal.timeout(60_000), clock = api.services.clock) => ({
    attempt: 1,
    is_last: false,
    clock,
    signal,
    timeout_ms: 60_000,
  });
  const summary = async ({ workflow_id, run_id }: Run) =>
    (await api.request('GET', `/workflows/${workflow_id}/${run_id}/summary`)).body;
  /** What the scheduler does with the job that was asked for. */
  const cloned = async (body: unknown) => {
    const answer = await ask(body);
    expect(answer.status, answer.text).to.equal(202);
    await tryClone(api.services, { ...api.scope, workflow_id: answer.body.workflow_id }, attempt());
    return { ...(await summary(answer.body)), target: answer.body.target_environment_id as string };
  };
  const keyFor = async (environment_id: string): Promise<string> =>
    (await made('/secrets/api/keys', { name: 'k', type: 'private_key', environment_id })).api_key;
  const environment = async (name: string) => (await made('/environments', { name, type: 'development' })).id as string;
  const searched = async (path: '/coupons', key: string) =>
    (await api.request('POST', `${path}/search`, { body: {}, key })).body.items;
  const listed = async <Path extends ListPath>(path: Path, key: string) =>
    (await api.request<{ items: Listed<Path>[] }>('GET', path, { key })).body.items;

  it('copies neither connections nor mappings', async () => {
    const { postgres } = api.services;
    const s3 = { aws_access_key_id: 'AKIA', aws_secret_access_key: 'the secret of this key' };
    const store = { name: 'Store', provider_type: 's3', encrypted_secret_data: { s3 } };
    const { id: connection_id } = await made('/connections', store);
    const record = { connection_id, provider_type: 's3', entity_type: 'plan', entity_id: plan.id };
    const counterpart = { id: 'imap_1', provider_entity_id: 'prod_1', mapping_state: 'made' };
    await postgres('integration_mappings').insert({ ...api.scope, ...record, ...counterpart });
    const { target } = await cloned({ target_environment_id: await environment('Without accounts') });
    for (const table of ['connections', 'integration_mappings'])
      expect(await postgres(table).where({ environment_id: target }), table).to.deep.equal([]);
  });

  it('copies features with meters and plans with prices, groups and units, under ids of their own', async () => {
    const { status, result, error, target } = await cloned({ name: 'Live', type: 'production' });
    expect([status, error, result!.skipped, result!.failed]).to.deep.equal(['Completed', null, [], []]);
    expect(result!.copied).to.deep.equal({
      feature: 2,
      meter: 1,
      plan: 1,
      price: 3,
      entitlement: 1,
      credit_grant: 1,
      group: 1,
      price_unit: 1,
    });
    const key = await keyFor(target);
    const features = await listed('/features', key);
    expect(features.map(({ name }) => name)).to.have.members(['API calls', 'SSO']);
    const calls = features.find((one) => one.lookup_key === 'api-calls');
    expect(calls!.id).to.not.equal(feature.id);
    const [meter] = (await listed('/meters', key))!;
    expect(meter).to.deep.include({ id: calls!.meter_id, event_name: 'call' });
    const [copy] = (await listed('/plans', key))!;
    expect(copy).to.deep.include({ lookup_key: 'pro', metadata: { tier: '1' } });
    const [told] = (await listed('/audit-logs?entity_type=plan&action=created', key))!;
    expect(told)
      .to.deep.include({ entity_id: copy!.id, user_id: copy!.created_by })
      .and.not.include({ user_id: 'system' });
    const [granted] = (await listed('/entitlements', key))!;
    expect(granted).to.deep.include({ entity_id: copy!.id, feature_id: calls!.id, usage_limit: 1_000 });
    const [grant] = (await api.request('GET', `/plans/${copy!.id}/creditgrants`, { key })).body.items;
    expect(grant).to.deep.include({ plan_id: copy!.id, credits: '10', name: 'Start' });
    const prices = await listed('/prices?sort=amount&order=asc', key);
    expect(prices.map((price) => price.entity_id)).to.deep.equal([copy!.id, copy!.id, copy!.id]);
    const [usagePrice] = prices!;
    expect(usagePrice).to.include({ lookup_key: 'pro_calls', amount: '0.25', meter_id: meter!.id });
    expect((await listed('/prices/units', key))[0]).to.include({ code: 'cr', conversion_rate: '0.1' });
    const own = JSON.stringify([features, prices, copy, meter]);
    const ids = result!.ids as { entity: string; source_id: string; target_id: string }[];
    for (const { source_id } of ids) expect(own, 'names nothing of the source').to.not.contain(source_id);
    expect(ids.find(({ source_id }) => source_id === plan.id)).to.include({ entity: 'plan', target_id: copy!.id });
  });

  it('into one whose clock is behind: what is sold here is sold there; not while it advances', async () => {
    const target_environment_id = await environment('Past');
    const key = await keyFor(target_environment_id);
    const frozen_time = '2025-01-01T00:00:00Z';
    const { id } = await made('/test-clocks', { frozen_time }, key);
    await cloned({ target_environment_id });
    const starts = (await listed('/prices', key)).map(({ start_date }) => start_date);
    expect([...new Set(starts)]).to.deep.equal([frozen_time]);
    await api.request('POST', `/test-clocks/${id}/advance`, { body: { frozen_time: '2025-02-01T00:00:00Z' }, key });
    const { status, body } = await ask({ target_environment_id });
    expect([status, body.code]).to.deep.equal([409, 'version_conflict']);
  });

  it('a second run makes nothing twice, and brings what is new', async () => {
    const target_environment_id = await environment('Twice');
    await cloned({ target_environment_id });
    const key = await keyFor(target_environment_id);
    const before = [await listed('/features', key), await listed('/prices', key), await listed('/plans', key)];
    const again = await cloned({ target_environment_id });
    expect(again.result).to.deep.include({ copied: {}, ids: [], copied_before: 3, skipped: [], failed: [] });
    expect([await listed('/features', key), await listed('/prices', key), await listed('/plans', key)]).to.deep.equal(
      before,
    );
    const of = { entity_type: 'PLAN', entity_id: plan.id, currency: 'usd', billing_cadence: 'RECURRING' };
    const price = await made('/prices', { ...of, ...fixed, amount: '1' });
    expect((await cloned({ target_environment_id })).result!.copied).to.deep.equal({ price: 1 });
    await api.request('DELETE', `/prices/${price.id}`, { body: {} });
  });

  it('a second run does not add what replaces a copied record: it is told', async () => {
    const own = await made('/plans', { name: 'Changing', lookup_key: 'changing' });
    const of = { entity_type: 'PLAN', entity_id: own.id, currency: 'usd', billing_cadence: 'RECURRING' };
    const plain = await made('/prices', { ...of, ...fixed, amount: '20' });
    const keyed = await made('/prices', { ...of, ...fixed, amount: '30', lookup_key: 'changing_base' });
    const remade = await made('/prices', { ...of, ...fixed, amount: '40', lookup_key: 'changing_extra' });
    const granted = { entity_type: 'PLAN', entity_id: own.id, feature_id: feature.id, feature_type: 'metered' };
    const entitled = await made('/entitlements', { ...granted, usage_limit: 5, usage_reset_period: 'MONTHLY' });
    const credits = { scope: 'PLAN', plan_id: own.id, cadence: 'ONETIME' };
    const grant = await made('/creditgrants', { ...credits, name: 'Start', credits: '10' });
    const target_environment_id = await environment('Changed since');
    await cloned({ target_environment_id });
    const key = await keyFor(target_environment_id);
    const plans = await listed('/plans', key);
    const copy = plans.find((one) => one.lookup_key === 'changing');
    const there = async () => [
      await listed(`/prices?entity_ids=${copy!.id}`, key),
      await listed('/entitlements', key),
      await listed(`/plans/${copy!.id}/creditgrants`, key),
    ];
    const sso = async (of_plan: string, with_key: string) => {
      const one = (await listed('/features', with_key)).find(({ name }) => name === 'SSO');
      const body = { entity_type: 'PLAN', entity_id: of_plan, feature_id: one!.id, feature_type: 'boolean' };
      return made('/entitlements', body, with_key);
    };
    await sso(copy!.id, key);
    const before = await there();
    expect(before.map((items) => items.length)).to.deep.equal([3, 3, 1]);
    for (const { id } of [plain, keyed]) {
      const changed = await api.request('PUT', `/prices/${id}`, { body: { amount: '99' } });
      expect(changed.status, changed.text).to.equal(200);
      expect(changed.body.id).to.not.equal(id);
    }
    for (const path of [`/prices/${remade.id}`, `/entitlements/${entitled.id}`, `/creditgrants/${grant.id}`])
      expect(
        (await api.request('DELETE', path, { body: path.startsWith('/entitlements') ? undefined : {} })).status,
        path,
      ).to.equal(200);
    await made('/prices', { ...of, ...fixed, amount: '41', lookup_key: 'changing_extra' });
    await made('/entitlements', { ...granted, usage_limit: 6, usage_reset_period: 'MONTHLY' });
    await made('/creditgrants', { ...credits, name: 'Start again', credits: '11' });
    await sso(own.id, api.key);
    const { result } = await cloned({ target_environment_id });
    expect([result!.copied, result!.failed]).to.deep.equal([{}, []]);
    expect(left(result!.skipped).map(({ entity }) => entity)).to.deep.equal([
      'price',
      'price',
      'price',
      'entitlement',
      'entitlement',
      'credit_grant',
    ]);
    expect(await there()).to.deep.equal(before);
    await api.request('DELETE', `/plans/${own.id}`);
  });

  it('tells what it left out: a key that is taken, a copy that was archived, a plan that fails alone', async () => {
    const target_environment_id = await environment('Left out');
    const key = await keyFor(target_environment_id);
    const taken = await made('/features', { name: 'SSO', type: 'boolean' }, key);
    await made(
      '/prices/units',
      { name: 'Other', code: 'CR', symbol: 'C', base_currency: 'usd', conversion_rate: '5' },
      key,
    );
    const { status, result } = await cloned({ target_environment_id });
    expect(status).to.equal('Completed');
    expect(result!.skipped).to.have.length(1);
    expect(left(result!.skipped)[0]!).to.include({ entity: 'feature', name: 'SSO' });
    expect(left(result!.skipped)[0]!.reason).to.equal(`${taken.id} has the lookup_key sso there already`);
    expect(left(result!.failed).map(({ id }) => id)).to.deep.equal([plan.id]);
    expect(left(result!.failed)[0]!.reason).to.match(/exists already/);
    expect(result!.copied, 'nothing of the plan').to.deep.equal({ feature: 1, meter: 1 });
    expect(await listed('/plans', key)).to.deep.equal([]);
    const [copy] = (await listed('/features', key)).filter(({ id }) => id !== taken.id);
    await api.request('DELETE', `/features/${copy!.id}`, { key });
    const again = await cloned({ target_environment_id });
    expect(left(again.result!.skipped).map((one) => one.reason)).to.include(`its copy ${copy!.id} is archived`);
  });

  it('goes on where it was broken off', async () => {
    const { body: run } = await ask({ target_environment_id: await environment('Broken off') });
    const place = { ...api.scope, workflow_id: run.workflow_id };
    const ending = new AbortController();
    let asked = 0;
    const clock = () => {
      // The second root is the last that is begun.
      if (++asked === 3) ending.abort();
      return api.services.clock();
    };
    const broken = await tryClone(api.services, place, attempt(ending.signal, clock)).catch((error) => error);
    expect(broken.name).to.equal('AbortError');
    expect((await summary(run)).status).to.equal('Running');
    const key = await keyFor(run.target_environment_id);
    expect(await listed('/plans', key)).to.deep.equal([]);
    expect((await listed('/features', key)).length).to.be.greaterThan(0);
    await tryClone(api.services, place, attempt());
    const { status, result } = await summary(run);
    expect([status, result!.copied_before]).to.deep.equal(['Completed', 0]);
    expect(result!.copied).to.deep.equal({
      feature: 2,
      meter: 1,
      plan: 1,
      price: 3,
      entitlement: 1,
      credit_grant: 1,
      group: 1,
      price_unit: 1,
    });
    expect((await listed('/features', key)).length).to.equal(2);
  });

  it('is done by the scheduler, and polled', async () => {
    const { body: run } = await ask({ target_environment_id: await environment('Polled') });
    expect((await summary(run)).result).to.include({ target_environment_id: run.target_environment_id });
    const scheduler = startScheduler(api.services, { clock: api.services.clock });
    try {
      const done = await until('the workflow has ended', async () => {
        const now = await summary(run);
        return now.status !== 'Running' && now;
      });
      expect(done).to.include({ status: 'Completed', workflow_type: 'EnvironmentCloneWorkflow' });
    } finally {
      await scheduler.stop();
    }
  });

  it('400, 401, 403, 404, and nothing is made', async () => {
    const environments = () => api.services.postgres('environments').count();
    const { scope: theirs } = await api.otherTenant();
    const before = await environments();
    const own = api.scope.environment_id;
    const refused: [unknown, number, string?][] = [
      [{}, 400, 'target_environment_id'],
      [{ name: 'x' }, 400, 'type'],
      [{ type: 'production' }, 400, 'target_environment_id'],
      [{ target_environment_id: own, name: 'x' }, 400, 'name'],
      [{ target_environment_id: own }, 400, 'target_environment_id'],
      [{ target_environment_id: 'env_unknown' }, 404, 'target_environment_id'],
      [{ target_environment_id: theirs.environment_id }, 404, 'target_environment_id'],
    ];
    for (const [body, status, field] of refused) {
      const answer = await ask(body);
      expect([answer.status, answer.body.details?.field], JSON.stringify(body)).to.deep.equal([status, field]);
    }
    const fresh = { name: 'x', type: 'development' };
    expect((await ask(fresh, { id: theirs.environment_id })).status).to.equal(404);
    expect((await ask(fresh, { key: null })).status).to.equal(401);
    for (const role of ['all_reader', 'all_writer'])
      expect((await ask(fresh, { key: await api.keyWithRoles([role]) })).status).to.equal(403);
    expect(await environments()).to.deep.equal(before);
  });

  it('knows every column that names another record, so that none names one of the source', async () => {
    expect(Object.keys(COPIED)).to.include.members([...ROOTS]);
    for (const [entity, { refs, root = '', fresh = {}, parts = [] }] of Object.entries(COPIED)) {
      const named = refs({} as never);
      const nouns = [...Object.values(named), ...parts.map(({ noun }) => noun)];
      expect(Object.keys(COPIED), entity).to.include.members(nouns);
      const { rows } = await api.services.postgres.raw<{ rows: { column_name: string }[] }>(
        `select column_name from information_schema.columns where table_schema = 'public' and table_name = ? and column_name ~ '_id$'`,
        [`${entity}s`],
      );
      const columns = rows.map(({ column_name }) => column_name);
      const known = ['tenant_id', 'environment_id', root, ...Object.keys(named), ...Object.keys(fresh)];
      expect(known, entity).to.include.members(columns);
    }
  });

  it('copies add-ons with what hangs on them, coupons that nobody has redeemed there, tax rates and cost sheets, once', async () => {
    const addon = await made('/addons', { name: 'Seats', lookup_key: 'seats' });
    const of = { entity_type: 'ADDON', entity_id: addon.id };
    await made('/prices', { ...of, ...fixed, currency: 'usd', billing_cadence: 'RECURRING', amount: '12.5' });
    const critical = { threshold: '0.8', condition: null };
    const alert_settings = { alert_enabled: true, critical, warning: null, info: null };
    const bits = { grant_measure: 'amount', grant_quota: '5', grant_duration_value: 2, grant_duration_unit: 'day' };
    const terms = { ...bits, grant_allocation_behavior: 'unit_start', aggregation_mode: 'parallel', alert_settings };
    await made('/entitlements', { ...of, feature_id: feature.id, feature_type: 'metered', ...terms });
    const grant = { name: 'Extra', scope: 'ADDON', addon_id: addon.id, credits: '3', cadence: 'ONETIME' };
    await made('/creditgrants', grant);
    const once = { type: 'percentage', percentage_off: '10', cadence: 'once', max_redemptions: 2 };
    const coupon = await made('/coupons', { name: 'Tenth', coupon_code: 'TENTH', ...once });
    await api.services.postgres('coupons').where({ id: coupon.id }).update({ total_redemptions: 2 });
    await made('/taxes/rates', { name: 'VAT', code: 'vat', percentage_value: '19' });
    const { costsheet } = await made('/costs', { name: 'Models', lookup_key: 'models' });
    const cost = {
      ...usage,
      entity_type: 'COSTSHEET',
      entity_id: costsheet.id,
      currency: 'usd',
      billing_cadence: 'RECURRING',
    };
    await made('/prices', { ...cost, amount: '0.01', meter_id: feature.meter_id });
    const mapping = await made('/tasks/mappings', { name: 'costs', preset: 'FOCUS', other_columns: 'IGNORE' });
    const target_environment_id = await environment('Sold');
    const first = await cloned({ target_environment_id });
    expect([first.result!.skipped, first.result!.failed]).to.deep.equal([[], []]);
    expect(first.result!.copied).to.include({ addon: 1, coupon: 1, tax_rate: 1, costsheet: 1, import_mapping: 1 });
    const key = await keyFor(target_environment_id);
    const [copied] = await listed('/tasks/mappings', key);
    expect(copied).to.deep.include({ name: 'costs', preset: 'FOCUS', fields: mapping.fields });
    const [copy] = (await listed('/addons', key))!;
    expect(copy).to.include({ lookup_key: 'seats', name: 'Seats' });
    const prices = await listed('/prices?limit=100', key);
    const [ofCopy] = prices.filter(({ entity_id }) => entity_id === copy!.id);
    expect(ofCopy).to.include({ entity_type: 'ADDON', amount: '12.5' });
    const entitlements = await listed('/entitlements', key);
    const calls = (await listed('/features', key)).find((one) => one.name === 'API calls');
    expect(entitlements.find(({ entity_id }) => entity_id === copy!.id)).to.deep.include({
      entity_type: 'ADDON',
      feature_id: calls!.id,
      ...terms,
    });
    const grants = await api.services.postgres('credit_grants').where({ environment_id: target_environment_id });
    expect(grants.find(({ name }) => name === 'Extra')).to.include({
      addon_id: copy!.id,
      plan_id: null,
    });
    expect((await searched('/coupons', key))[0]).to.include({ coupon_code: 'TENTH', total_redemptions: 0 });
    expect((await api.request('GET', '/taxes/rates', { key })).body[0]).to.include({
      code: 'vat',
      percentage_value: '19',
    });
    const costs = prices.filter(({ entity_type }) => entity_type === 'COSTSHEET');
    expect(costs.map(({ meter_id }) => meter_id)).to.deep.equal([calls!.meter_id]);
    const again = await cloned({ target_environment_id });
    expect([again.result!.skipped, again.result!.failed, again.result!.copied]).to.deep.equal([[], [], {}]);
    const other = await environment('Taken');
    const theirs = await keyFor(other);
    await made('/coupons', { name: 'Other', coupon_code: 'tenth', ...once }, theirs);
    const { result } = await cloned({ target_environment_id: other });
    expect(left(result!.skipped).map(({ entity, reason }) => [entity, reason])).to.deep.equal([
      ['coupon', `${(await searched('/coupons', theirs))[0]!.id} has the coupon_code TENTH there already`],
    ]);
    for (const path of [`/addons/${addon.id}`, `/coupons/${coupon.id}`])
      expect((await api.request('DELETE', path)).status).to.be.below(300);
  });

  it('a copied successor is that of the copy: what is charged once is charged once', async () => {
    const made = async <Path extends string, Method extends string = 'POST'>(
      path: Path,
      body: object,
      method = 'POST' as Method,
    ) => {
      const answer = await api.request(method, path, { body });
      expect(answer.status, answer.text).to.be.oneOf([200, 201]);
      return answer.body;
    };
    const own = await made('/plans', { name: 'Lineage' });
    const terms = { type: 'FIXED', billing_model: 'FLAT_FEE', billing_period: 'ONETIME', invoice_cadence: 'ADVANCE' };
    const first = await made('/prices', {
      ...terms,
      currency: 'usd',
      amount: '500',
      entity_type: 'PLAN',
      entity_id: own.id,
    });
    const effective_from = new Date(Date.parse(first.start_date!) + 86_400_000).toISOString();
    await made(`/prices/${first.id}`, { amount: '600', effective_from }, 'PUT');
    const { target } = await cloned({ name: 'Lineage', type: 'development' });
    const copies = await listed('/prices?sort=amount&order=asc', await keyFor(target));
    const [older, newer] = ['500', '600'].map((wanted) => copies.find(({ amount }) => amount === wanted));
    expect([older!.parent_price_id, newer!.parent_price_id]).to.deep.equal(['', older!.id]);
  });
});
