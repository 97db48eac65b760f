import { expect } from 'chai';
import { SETTINGS } from '../../../core/platform/setting/record.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

describe('settings', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi();
  });
  after(() => api.stop());

  const get = (key: string, options = {}) => api.request('GET', `/settings/${key}`, options);
  const put = (key: string, value: unknown, options = {}) =>
    api.request('PUT', `/settings/${key}`, { body: { value }, ...options });
  const reset = (key: string, options = {}) => api.request('DELETE', `/settings/${key}`, options);

  for (const [key, { default: value }] of Object.entries(SETTINGS)) {
    it(`200 for ${key}, as by default, which a change may send back as it is`, async () => {
      const { status, body } = await get(key);
      expect(status).to.equal(200);
      expect(body).to.deep.include({ id: '', key, tenant_id: api.scope.tenant_id, created_at: null });
      expect(body.value).to.deep.include(value);
      const changed = await put(key, body.value);
      expect([changed.status, changed.body.value]).to.deep.equal([200, body.value]);
      // Where all of it is null nothing differs from the default.
      expect((await reset(key)).status).to.equal(changed.body.id === '' ? 404 : 200);
    });
  }

  it('are listed with their defaults, and whether they are set', async () => {
    const list = async () => (await api.request('GET', '/settings')).body.items;
    const isSet = async () => (await list()).filter(({ is_set }) => is_set).map(({ key }) => key);
    expect(await isSet()).to.deep.equal([]);
    for (const { key, value, default: preset } of await list()) expect(preset, key).to.deep.equal(value);
    const { body } = await put('invoice_config', { prefix: 'EX' });
    expect(body).to.deep.include({ is_set: true });
    expect([body.value.prefix, body.default.prefix]).to.deep.equal(['EX', SETTINGS.invoice_config.default.prefix]);
    expect(await isSet()).to.deep.equal(['invoice_config']);
    await reset('invoice_config');
    expect(await isSet()).to.deep.equal([]);
  });

  it('a change keeps what it does not send, null sets back, and a reset sets all back', async () => {
    const first = await put('invoice_config', { prefix: 'EX', format: 'yyyy' });
    expect(first.body.value).to.include({ prefix: 'EX', format: 'YYYY', suffix_length: 5 });
    expect(first.body.id).to.match(/^setting_/);
    const second = await put('invoice_config', { suffix_length: 8, format: null });
    expect(second.body.value).to.include({ prefix: 'EX', format: 'YYYYMM', suffix_length: 8 });
    expect((await get('invoice_config')).body).to.deep.equal(second.body);
    expect((await reset('invoice_config')).body).to.deep.equal({ message: 'invoice_config is as by default' });
    expect((await get('invoice_config')).body.value).to.deep.equal(SETTINGS.invoice_config.default);
    expect((await reset('invoice_config')).status, 'when nothing is set').to.equal(404);
  });

  it('says how long drafts rest where nothing is set: as the service was started', async () => {
    const other = await startTestApi({ config: { FINALIZATION_DELAY_SECONDS: '20' } });
    try {
      const path = '/settings/invoice_config';
      const resting = (answer: { body: { value: Record<string, unknown> } }) =>
        answer.body.value.finalization_delay_seconds;
      expect(resting(await other.request('GET', path))).to.equal(20);
      expect(resting(await other.request('PUT', path, { body: { value: { prefix: 'EX' } } }))).to.equal(20);
      const stated = { value: { finalization_delay_seconds: 7200 } };
      expect(resting(await other.request('PUT', path, { body: stated }))).to.equal(7200);
      expect(resting(await other.request('GET', path))).to.equal(7200);
    } finally {
      await other.stop();
    }
  });

  const slabs = (...thresholds: string[]) =>
    thresholds.map((threshold) => ({ threshold, bonus: { type: 'flat', value: '1' } }));
  const refused: [string, unknown, string][] = [
    ['no_such_config', {}, 'key'],
    ['invoice_config', { prefx: 'EX' }, 'value.prefx'],
    ['invoice_config', { suffix_length: 11 }, 'value.suffix_length'],
    ['invoice_config', { timezone: 'Mars/Base' }, 'value.timezone'],
    ['invoice_config', undefined, 'value'],
    ['subscription_config', { grace_period_days: 0 }, 'value.grace_period_days'],
    ['tenant_config', { production: -1 }, 'value.production'],
    ['customer_portal_config', { theme: { primary_color: 'red' } }, 'value.theme.primary_color'],
    ['wallet_balance_alert_config', { alert_enabled: true, critical: null, warning: { threshold: '1' } }, 'value'],
    ['bonus_credits_topup_config', { slabs: slabs('10', '10') }, 'value.slabs[1].threshold'],
    ['bonus_credits_topup_config', { slabs: slabs('10', '5', '7') }, 'value.slabs[2].threshold'],
  ];
  for (const [key, value, field] of refused) {
    it(`400 for ${key}, naming ${field}`, async () => {
      const { status, body } = await put(key, value);
      expect(status, JSON.stringify(body)).to.equal(400);
      expect(body.details!.field).to.match(new RegExp(`^${field.replace(/[[\].]/g, '\\$&')}`));
      if (field !== 'key') expect((await get(key)).body.id, 'nothing is stored').to.equal('');
    });
  }

  const nobody: [string, unknown][] = [
    ['prepare_processed_events_config', { plan_id: 'plan_x' }],
    ['custom_analytics_config', { rules: [{ id: 'r', target_type: 'feature', target_id: 'feat_x' }] }],
    ['custom_analytics_config', { rules: [{ id: 'r', target_type: 'meter', target_id: 'meter_x' }] }],
  ];
  for (const [key, value] of nobody)
    it(`404 for ${key} with the id of nobody, or of another tenant: ${JSON.stringify(value)}`, async () => {
      expect((await put(key, value)).status).to.equal(404);
      const { key: theirs } = await api.otherTenant();
      const plan = (await api.request('POST', '/plans', { body: { name: 'Theirs' }, key: theirs })).body;
      expect((await put('prepare_processed_events_config', { plan_id: plan.id })).status).to.equal(404);
      expect((await get(key)).body.id, 'nothing is stored').to.equal('');
    });

  it('200 for ids that are there, which may be archived later, and for names of events', async () => {
    const meter = { name: 'M', event_name: 'm', aggregation: { type: 'COUNT' } };
    const { id: target_id } = (await api.request('POST', '/meters', { body: meter })).body;
    const rules = [
      { id: 'a', target_type: 'meter', target_id },
      { id: 'b', target_type: 'event_name', target_id: 'anything' },
    ];
    expect((await put('custom_analytics_config', { rules })).body.value.rules).to.deep.equal(rules);
    await api.request('DELETE', `/meters/${target_id}`);
    expect((await put('custom_analytics_config', {})).status).to.equal(200);
    await api.request('DELETE', '/settings/custom_analytics_config');
  });

  it('says what is wrong in plain words', async () => {
    const says = async <Path extends string>(key: Path, value: unknown) => (await put(key, value)).body.message;
    expect(await says('draft_invoice_recompute_config', { enabled: 'yes' })).to.equal(
      'value.enabled: must be true or false, not a string',
    );
    expect(await says('tenant_config', { production: 1001 })).to.equal('value.production: must be at most 1000');
    expect(await says('custom_analytics_config', { rules: {} })).to.equal(
      'value.rules: must be an array, not an object',
    );
  });

  it('each environment has its own, and tenant_config is one for all', async () => {
    const { body: other } = await api.request('POST', '/environments', { body: { name: 'O', type: 'development' } });
    const wanted = { name: 'k', type: 'private_key', environment_id: other.id };
    const { api_key: key } = (await api.request('POST', '/secrets/api/keys', { body: wanted })).body;
    await put('subscription_config', { grace_period_days: 9 });
    expect((await get('subscription_config', { key })).body.value.grace_period_days).to.equal(3);
    expect((await reset('subscription_config', { key })).status).to.equal(404);
    await put('tenant_config', { max_users: 7 }, { key });
    expect((await get('tenant_config')).body).to.deep.include({ environment_id: '' });
    expect((await get('tenant_config')).body.value.max_users).to.equal(7);
    const stranger = (await api.otherTenant()).key;
    expect((await get('tenant_config', { key: stranger })).body.value.max_users).to.equal(100);
    await reset('tenant_config');
    await reset('subscription_config');
  });

  it('403 for who is no super_admin, 401 without a key; a reader reads', async () => {
    const writer = await api.keyWithRoles(['all_writer']);
    expect((await put('invoice_config', { prefix: 'X' }, { key: writer })).status).to.equal(403);
    expect((await reset('invoice_config', { key: writer })).status).to.equal(403);
    const reader = await api.keyWithRoles(['all_reader']);
    expect((await get('invoice_config', { key: reader })).status).to.equal(200);
    expect((await put('invoice_config', { prefix: 'X' }, { key: reader })).status).to.equal(403);
    expect((await get('invoice_config', { key: null })).status).to.equal(401);
    expect((await get('invoice_config')).body.value.prefix).to.equal('INV');
  });

  it('tenant_config limits environments of each type and users, also when they are added at one time', async () => {
    await put('tenant_config', { production: 2, max_users: 3 });
    const environment = (type: string) => api.request('POST', '/environments', { body: { name: 'x', type } });
    const made = await Promise.all(Array.from({ length: 4 }, () => environment('production')));
    expect(made.map(({ status }) => status).sort()).to.deep.equal([201, 201, 400, 400]);
    const refusal = made.find(({ status }) => status === 400)!.body;
    expect([refusal.code, refusal.details!.limit]).to.deep.equal(['invalid_operation', 2]);
    expect((await environment('development')).status).to.equal(201);
    const people = await api.services.postgres('users').where({ tenant_id: api.scope.tenant_id, type: 'user' }).count();
    await put('tenant_config', { max_users: Number(people[0]!.count) });
    const user = await api.request('POST', '/users', { body: { type: 'user', email: 'more@example.com' } });
    expect([user.status, user.body.code]).to.deep.equal([400, 'invalid_operation']);
    const program = { type: 'service_account', name: 'p', roles: ['event_ingestor'] };
    expect((await api.request('POST', '/users', { body: program })).status).to.equal(201);
  });
});
