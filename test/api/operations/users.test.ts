import { expect } from 'chai';
import { startTestApi, type TestApi } from '../../support/api.ts';

describe('users', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi();
  });
  after(() => api.stop());

  const create = (body: unknown, key?: string) => api.request('POST', '/users', { body, ...(key ? { key } : {}) });
  const account = (name: string, roles = ['event_ingestor']) => create({ type: 'service_account', name, roles });

  it('200 for me, with the tenant', async () => {
    const { status, body } = await api.request('GET', '/users/me');
    expect(status).to.equal(200);
    expect(body).to.have.all.keys('id', 'name', 'email', 'type', 'roles', 'metadata', 'tenant');
    expect(body.tenant!.id).to.equal(api.scope.tenant_id);
    const changed = await api.request('PUT', '/users/me', { body: { name: 'Ada', metadata: { team: 'billing' } } });
    expect(changed.body).to.deep.include({ id: body.id, name: 'Ada', metadata: { team: 'billing' } });
    await api.request('PUT', '/users/me', { body: {} });
    expect((await api.request('GET', '/users/me')).body).to.deep.equal(changed.body);
  });

  it('201 for a user and for a service account', async () => {
    const person = await create({ type: 'user', email: 'ada@example.com', roles: ['all_reader'] });
    expect(person.status).to.equal(201);
    expect(person.body).to.deep.include({ type: 'user', email: 'ada@example.com', roles: ['all_reader'] });
    const machine = await account('Collector');
    expect(machine.status).to.equal(201);
    expect(machine.body).to.deep.include({ type: 'service_account', name: 'Collector', email: null });
  });

  it('409 for an email that is in use, in any case', async () => {
    await create({ type: 'user', email: 'twice@example.com' });
    const { status, body } = await create({ type: 'user', email: 'TWICE@example.com' });
    expect([status, body.code]).to.deep.equal([409, 'already_exists']);
  });

  const refused: [string, unknown, string][] = [
    ['no type', { email: 'a@example.com' }, 'type'],
    ['a user without email', { type: 'user' }, 'email'],
    ['a wrong email', { type: 'user', email: 'nobody' }, 'email'],
    ['a service account without roles', { type: 'service_account', roles: [] }, 'roles'],
    [
      'a service account with an email',
      { type: 'service_account', roles: ['event_reader'], email: 'a@example.com' },
      'email',
    ],
    ['an unknown role', { type: 'user', email: 'a@example.com', roles: ['god'] }, 'roles'],
    ['a role for machines', { type: 'user', email: 'a@example.com', roles: ['event_ingestor'] }, 'roles'],
    ['a role for people', { type: 'service_account', roles: ['all_writer'] }, 'roles'],
  ];
  for (const [what, sent, field] of refused) {
    it(`400 for ${what}`, async () => {
      const { body: before } = await api.request('POST', '/users/search', { body: {} });
      const { status, body } = await create(sent);
      expect([status, body.details!.field]).to.deep.equal([400, field]);
      const { body: after } = await api.request('POST', '/users/search', { body: {} });
      expect(after.pagination).to.deep.equal(before.pagination);
    });
  }

  it('403 for an inviter who is no super_admin', async () => {
    const key = await api.keyWithRoles(['all_writer']);
    expect((await create({ type: 'user', email: 'b@example.com' }, key)).status).to.equal(403);
  });

  it('200 for searches by type, role, id and metadata', async () => {
    const { body: made } = await account('Findable', ['event_reader']);
    const search = async (body: unknown) =>
      (await api.request('POST', '/users/search', { body })).body.items.map((item: { id: string }) => item.id);
    expect(await search({ roles: ['event_reader'], type: 'service_account' })).to.deep.equal([made.id]);
    expect(await search({ user_ids: [made.id] })).to.deep.equal([made.id]);
    expect(await search({ metadata: { nobody: 'has' } })).to.deep.equal([]);
    const condition = { field: 'name', operator: 'contains', data_type: 'string', value: { string: 'FINDA' } };
    expect(await search({ filters: [condition] })).to.deep.equal([made.id]);
    const type = { field: 'type', operator: 'eq', data_type: 'string', value: { string: 'SERVICE_Account' } };
    expect(await search({ filters: [condition, type] }), 'its words in any case').to.deep.equal([made.id]);
    const nothing = { ...type, value: { string: 'robot' } };
    expect((await api.request('POST', '/users/search', { body: { filters: [nothing] } })).status).to.equal(400);
  });

  it('a service account is renamed and archived, unless a key of it works', async () => {
    const { body: made } = await account('Old name');
    const renamed = await api.request('PUT', `/users/${made.id}`, { body: { name: 'New name' } });
    expect([renamed.status, renamed.body.name]).to.deep.equal([200, 'New name']);
    const key = await api.request('POST', '/secrets/api/keys', {
      body: { name: 'k', type: 'private_key', service_account_id: made.id },
    });
    for (const [method, path, body] of [
      ['DELETE', `/users/${made.id}`, undefined],
      ['PUT', `/users/${made.id}/roles`, { roles: ['event_reader'] }],
    ] as const) {
      const { status, body: answer } = await api.request(method, path, { body });
      expect([status, answer!.code]).to.deep.equal([400, 'invalid_operation']);
    }
    await api.request('DELETE', `/secrets/api/keys/${key.body.secret.id}`);
    const roles = await api.request('PUT', `/users/${made.id}/roles`, { body: { roles: ['event_reader'] } });
    expect(roles.body.roles).to.deep.equal(['event_reader']);
    const gone = await api.request('DELETE', `/users/${made.id}`);
    expect([gone.status, gone.text]).to.deep.equal([204, '']);
  });

  it('nobody changes their own roles, and only a super_admin those of others', async () => {
    const me = (await api.request('GET', '/users/me')).body.id;
    const { body: other } = await create({ type: 'user', email: 'c@example.com' });
    const key = await api.keyWithRoles(['all_writer']);
    for (const [id, apiKey] of [
      [me, api.key],
      [other.id, key],
    ]) {
      const answer = await api.request('PUT', `/users/${id}/roles`, { key: apiKey, body: { roles: ['all_reader'] } });
      expect(answer.status).to.equal(403);
    }
  });

  it('only a super_admin renames and archives service accounts', async () => {
    const { body: machine } = await create({ type: 'service_account', name: 'Kept', roles: ['super_admin'] });
    const key = await api.keyWithRoles(['all_writer']);
    const renamed = await api.request('PUT', `/users/${machine.id}`, { key, body: { name: 'Mine' } });
    const gone = await api.request('DELETE', `/users/${machine.id}`, { key });
    expect([renamed.status, gone.status]).to.deep.equal([403, 403]);
  });

  it("404 for another tenant's", async () => {
    const { user_id, key } = await api.otherTenant();
    for (const [method, path, body] of [
      ['PUT', `/users/${user_id}`, { name: 'x' }],
      ['PUT', `/users/${user_id}/roles`, { roles: [] }],
      ['DELETE', `/users/${user_id}`, undefined],
    ] as const) {
      expect((await api.request(method, path, { body })).status).to.equal(404);
    }
    const { body } = await api.request('POST', '/users/search', { key, body: {} });
    expect(body.items.map((item: { id: string }) => item.id)).to.deep.equal([user_id]);
  });
});

describe('API keys', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi();
  });
  after(() => api.stop());
  const create = (body: unknown, key = api.key) => api.request('POST', '/secrets/api/keys', { body, key });

  it('201 shows the key once, and lists show a mask', async () => {
    for (const [type, prefix] of [
      ['private_key', 'sk'],
      ['publishable_key', 'pk'],
    ] as const) {
      const { status, body } = await create({ name: 'One', type });
      expect(status).to.equal(201);
      expect(body.api_key).to.match(new RegExp(`^${prefix}_[0-9A-HJKMNP-TV-Z]{26}$`));
      expect(body.secret.display_id).to.equal(`${body.api_key.slice(0, 5)}***${body.api_key.slice(-2)}`);
      expect(body.secret).to.deep.include({ type, provider: 'flexprice', roles: ['super_admin'], user_type: 'user' });
      const list = await api.request('GET', '/secrets/api/keys');
      expect(list.text).to.not.contain(body.api_key);
      expect(list.body.items.find((item: { id: string }) => item.id === body.secret.id)).to.deep.equal(body.secret);
      expect(list.body.items[0]).to.not.have.property('key_hash');
    }
  });

  it("a service account's key has its roles", async () => {
    const { body: machine } = await api.request('POST', '/users', {
      body: { type: 'service_account', name: 'Collector', roles: ['event_ingestor'] },
    });
    const { body } = await create({ name: 'k', type: 'private_key', service_account_id: machine.id });
    expect(body.secret).to.deep.include({
      roles: ['event_ingestor'],
      service_account_name: 'Collector',
      user_id: machine.id,
    });
    expect((await api.request('GET', '/environments', { key: body.api_key })).status).to.equal(403);
  });

  const refused: [string, unknown, string][] = [
    ['no name', { type: 'private_key' }, 'name'],
    ['an unknown type', { name: 'x', type: 'master_key' }, 'type'],
    ['an expiry that has passed', { name: 'x', type: 'private_key', expires_at: '2026-03-15T12:00:00Z' }, 'expires_at'],
    ['an expiry that is no instant', { name: 'x', type: 'private_key', expires_at: 'tomorrow' }, 'expires_at'],
  ];
  for (const [what, sent, field] of refused) {
    it(`400 for ${what}`, async () => {
      const { body: before } = await api.request('GET', '/secrets/api/keys');
      const { status, body } = await create(sent);
      expect([status, body.details!.field]).to.deep.equal([400, field]);
      expect((await api.request('GET', '/secrets/api/keys')).body.pagination).to.deep.equal(before.pagination);
    });
  }

  it('who is no super_admin sees, makes and revokes own keys only', async () => {
    const key = await api.keyWithRoles(['all_writer']);
    const mine = await create({ name: 'mine', type: 'private_key' }, key);
    expect(mine.status).to.equal(201);
    const { body } = await api.request('GET', '/secrets/api/keys', { key });
    expect(new Set(body.items.map((item) => item.user_id))).to.deep.equal(new Set([mine.body.secret.user_id]));
    const { body: machine } = await api.request('POST', '/users', {
      body: { type: 'service_account', name: 'm', roles: ['event_ingestor'] },
    });
    const forOther = await create({ name: 'x', type: 'private_key', service_account_id: machine.id }, key);
    expect(forOther.status).to.equal(403);
    const admins = (await create({ name: 'theirs', type: 'private_key' })).body.secret.id;
    expect((await api.request('DELETE', `/secrets/api/keys/${admins}`, { key })).status).to.equal(403);
    expect((await api.request('DELETE', `/secrets/api/keys/${mine.body.secret.id}`, { key })).status).to.equal(204);
  });

  it("404 for another tenant's key and service account", async () => {
    const { key } = await api.otherTenant();
    const { body } = await create({ name: 'x', type: 'private_key' });
    expect((await api.request('DELETE', `/secrets/api/keys/${body.secret.id}`, { key })).status).to.equal(404);
    const { body: machine } = await api.request('POST', '/users', {
      body: { type: 'service_account', name: 'm', roles: ['event_ingestor'] },
    });
    const stolen = await create({ name: 'x', type: 'private_key', service_account_id: machine.id }, key);
    expect(stolen.status).to.equal(404);
    expect((await api.request('GET', '/users/me', { key: body.api_key })).status).to.equal(200);
  });
});

describe('roles', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi();
  });
  after(() => api.stop());

  it('200 for all, for those of one type of user, and for one', async () => {
    const ids = async (query: '' | `?${string}` = '') =>
      (await api.request('GET', `/rbac/roles${query}`)).body.roles.map((role) => role.id);
    const machines = ['event_ingestor', 'reserver', 'event_reader'];
    expect(await ids()).to.deep.equal(['super_admin', 'all_writer', 'all_reader', ...machines]);
    expect(await ids('?user_type=user')).to.deep.equal(['super_admin', 'all_writer', 'all_reader']);
    expect(await ids('?user_type=service_account')).to.deep.equal(['super_admin', ...machines]);
    const { body } = await api.request('GET', '/rbac/roles/event_ingestor');
    expect(body.role.permissions).to.deep.equal({ event: ['write'] });
    expect((await api.request('GET', '/rbac/roles/god')).status).to.equal(404);
  });
});
