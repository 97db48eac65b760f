import { expect } from 'chai';
import { newId } from '../../../storage/foundation/new-id.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

describe('/addons', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi({ now: '2026-03-15T12:00:00.000Z' });
  });
  after(() => api.stop());

  const made = async <Path extends string>(path: Path, body: unknown, key = api.key) => {
    const answer = await api.request('POST', path, { body, key });
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const get = async <Path extends string>(path: Path) => (await api.request('GET', path)).body;
  const price = (entity_id: string) => ({
    entity_type: 'ADDON',
    entity_id,
    type: 'FIXED',
    billing_model: 'FLAT_FEE',
    amount: '12.50',
    currency: 'usd',
    billing_period: 'MONTHLY',
    invoice_cadence: 'ADVANCE',
  });

  it('201 answers every key of the contract, and onetime is the default', async () => {
    const {
      id,
      created_by: _c,
      updated_by: _u,
      ...rest
    } = await made('/addons', { name: 'Seats', lookup_key: 'seats' });
    expect(id).to.match(/^addon_[0-9A-HJKMNP-TV-Z]{26}$/);
    expect(rest).to.deep.equal({
      ...api.scope,
      name: 'Seats',
      lookup_key: 'seats',
      description: null,
      type: 'onetime',
      metadata: null,
      prices: [],
      entitlements: [],
      credit_grants: [],
      status: 'published',
      created_at: '2026-03-15T12:00:00Z',
      updated_at: '2026-03-15T12:00:00Z',
    });
  });

  it('has prices and entitlements of its own, and they name it', async () => {
    const metadata = { tier: 'gold', places: 3, deep: { a: [true] } };
    const addon = await made('/addons', { name: 'Calls', lookup_key: 'calls', type: 'MULTIPLE_INSTANCE', metadata });
    expect(addon).to.deep.include({ type: 'multiple_instance', metadata });
    const charged = await made('/prices', price(addon.id));
    expect(charged).to.deep.include({ entity_type: 'ADDON', amount: '12.5', display_name: 'Calls' });
    const sso = await made('/features', { name: 'SSO', type: 'boolean' });
    const grant = { entity_type: 'ADDON', entity_id: addon.id, feature_id: sso.id, feature_type: 'boolean' };
    const granted = await made('/entitlements', grant);
    const shown = await get('/addons/lookup/calls');
    expect(shown).to.deep.equal(await get(`/addons/${addon.id}`));
    expect(shown.prices).to.deep.equal([charged]);
    expect(shown.entitlements!.map((one) => [one.id, one.feature])).to.deep.equal([[granted.id, null]]);
    const [of] = (await get(`/prices?entity_type=ADDON&entity_ids=${addon.id}&expand=addons,plan`)).items;
    expect([of!.addon!.id, of!.addon!.prices, of!.plan]).to.deep.equal([addon.id, null, null]);
    expect((await api.request('POST', '/prices', { body: price(newId('addon')) })).status).to.equal(404);
  });

  it('400 and 409 name what is wrong', async () => {
    await made('/addons', { name: 'Taken', lookup_key: 'taken' });
    const cases: [unknown, number, string?][] = [
      [{ lookup_key: 'x' }, 400, 'name'],
      [{ name: 'x' }, 400, 'lookup_key'],
      [{ name: 'x', lookup_key: ' ' }, 400, 'lookup_key'],
      [{ name: 'x', lookup_key: 'x', type: 'twice' }, 400, 'type'],
      [{ name: 'x', lookup_key: 'x', metadata: { a: 'y'.repeat(5000) } }, 400, 'metadata'],
      [{ name: 'x', lookup_key: 'taken' }, 409],
    ];
    for (const [body, status, field] of cases) {
      const answer = await api.request('POST', '/addons', { body });
      expect(answer.status, answer.text).to.equal(status);
      if (field) expect(answer.body.details!.field).to.equal(field);
    }
  });

  it('changes what describes it, and is archived with what it grants', async () => {
    const addon = await made('/addons', { name: 'Old', lookup_key: 'old', metadata: { a: 1 } });
    const changed = await api.request('PUT', `/addons/${addon.id}`, { body: { name: 'New', metadata: null } });
    expect(changed.body).to.deep.equal({ ...addon, name: 'New', metadata: null });
    const feature = await made('/features', { name: 'Archived with it', type: 'boolean' });
    const grant = { entity_type: 'ADDON', entity_id: addon.id, feature_id: feature.id, feature_type: 'boolean' };
    const { id } = await made('/entitlements', grant);
    expect((await api.request('DELETE', `/addons/${addon.id}`)).status).to.equal(200);
    expect((await get(`/entitlements/${id}`)).status).to.equal('archived');
    expect((await get(`/addons/${addon.id}`)).status).to.equal('archived');
    for (const [method, path] of [
      ['GET', '/addons/lookup/old'],
      ['DELETE', `/addons/${addon.id}`],
    ] as const)
      expect((await api.request(method, path)).status, path).to.equal(404);
    expect((await api.request('PUT', `/addons/${addon.id}`, { body: {} })).status).to.equal(400);
    for (const [path, body] of [
      ['/prices', price(addon.id)],
      ['/entitlements', grant],
    ] as const)
      expect((await api.request('POST', path, { body })).status, path).to.equal(404);
    await made('/addons', { name: 'Again', lookup_key: 'old' });
  });

  it("401 without a key, 403 for a reader, 404 for another tenant's", async () => {
    const addon = await made('/addons', { name: 'Mine', lookup_key: 'mine' });
    const body = { name: 'x', lookup_key: 'x' };
    expect((await api.request('POST', '/addons', { body, key: null })).status).to.equal(401);
    const reader = await api.keyWithRoles(['all_reader']);
    expect((await api.request('POST', '/addons', { body, key: reader })).status).to.equal(403);
    const { key } = await api.otherTenant();
    const asks: [string, string, unknown?][] = [
      ['GET', `/addons/${addon.id}`],
      ['GET', '/addons/lookup/mine'],
      ['PUT', `/addons/${addon.id}`, { name: 'Theirs' }],
      ['DELETE', `/addons/${addon.id}`],
      ['POST', '/prices', price(addon.id)],
    ];
    for (const [method, path, sent] of asks)
      expect((await api.request(method, path, { key, body: sent })).status, `${method} ${path}`).to.equal(404);
  });

  it('lists and searches', async () => {
    const { key } = await api.otherTenant();
    const one = await made('/addons', { name: 'One', lookup_key: 'one', metadata: { tier: 'gold' } }, key);
    const two = await made('/addons', { name: 'Two', lookup_key: 'two', type: 'multiple_instance' }, key);
    const names = async (body: unknown) => {
      const answer = await api.request('POST', '/addons/search', { body, key });
      expect(answer.status, answer.text).to.equal(200);
      return answer.body.items.map(({ name }) => name);
    };
    expect(await names({ sort: [{ field: 'name', direction: 'asc' }] })).to.deep.equal(['One', 'Two']);
    expect(await names({ addon_ids: [two.id] })).to.deep.equal(['Two']);
    expect(await names({ lookup_keys: ['one', 'three'] })).to.deep.equal(['One']);
    expect(await names({ addon_type: 'onetime' })).to.deep.equal(['One']);
    expect(await names({ metadata: { tier: 'gold' } })).to.deep.equal(['One']);
    const listed = (await api.request('GET', `/addons?addon_ids=${one.id}&limit=1`, { key })).body;
    expect(listed.items[0]).to.include({ id: one.id, prices: null, entitlements: null, credit_grants: null });
    expect((await api.request('GET', '/addons?expand=plans', { key })).status).to.equal(400);
  });
});
