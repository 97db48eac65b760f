// Every change is told in its own transaction: who, what, before, after (docs/rules/records.md, "The audit log").
import { expect } from 'chai';
import { SecretModel } from '../../../storage/models/operations/secret.ts';
import type { AuditEntry } from '../../support/answers.ts';
import { fixed, startWorld, usage, type World } from '../../support/world.ts';

describe('/audit-logs', () => {
  let world: World;
  let api: World['api'];
  before(async () => {
    world = await startWorld();
    api = world.api;
  });
  after(() => world.stop());

  const logs = async (query: '' | `?${string}` = '', key?: string) =>
    (await api.request('GET', `/audit-logs${query}`, key ? { key } : {})).body;
  const post = async <Path extends string>(path: Path, body: unknown, headers: Record<string, string> = {}) => {
    const { status, body: made } = await api.request('POST', path, { body, headers });
    expect(status, JSON.stringify(made)).to.be.below(300);
    return made;
  };

  it('tells who made, changed and archived a record, with the record before and after', async () => {
    const plan = await post('/plans', { name: 'Basic' }, { 'x-request-id': 'made-it' });
    await api.request('PUT', `/plans/${plan.id}`, { body: { name: 'Better' } });
    await api.request('DELETE', `/plans/${plan.id}`);
    const { items, pagination } = await logs(`?entity_id=${plan.id}`);
    expect(pagination.total).to.equal(3);
    const told = items.map((entry) => [
      entry.action,
      entry.before?.name ?? null,
      entry.after!.name,
      entry.after!.status,
    ]);
    expect(told).to.deep.equal([
      ['archived', 'Better', 'Better', 'archived'],
      ['updated', 'Basic', 'Better', 'published'],
      ['created', null, 'Basic', 'published'],
    ]);
    const me = (await api.request('GET', '/users/me')).body;
    const keys = (await api.request('GET', '/secrets/api/keys')).body.items;
    expect(items[2]).to.deep.include({
      entity_type: 'plan',
      entity_id: plan.id,
      environment_id: api.scope.environment_id,
      user_id: me.id,
      secret_id: keys[0]!.id,
      request_id: 'made-it',
      created_at: '2026-01-01T00:00:00Z',
    });
    expect((await api.request('GET', `/audit-logs/${items[0]!.id}`)).body).to.deep.equal(items[0]);
  });

  it('names the author and the record', async () => {
    const me = (await api.request('GET', '/users/me')).body;
    const actor = { type: 'user', id: me.id, name: me.name || null, email: me.email };
    const plan = await post('/plans', { name: 'Named' });
    await api.request('PUT', `/plans/${plan.id}`, { body: { name: 'Renamed' } });
    const { items } = await logs(`?entity_id=${plan.id}`);
    expect(items.map(({ entity_name }) => entity_name)).to.deep.equal(['Renamed', 'Named']);
    for (const entry of items) expect(entry.actor).to.deep.equal(actor);
    const service = await api.keyWithRoles(['super_admin'], { user_type: 'service_account' });
    const { body: other } = await api.request('POST', '/plans', { body: { name: 'By a service' }, key: service });
    expect((await logs(`?entity_id=${other.id}`)).items[0]!.actor).to.include({ type: 'service_account' });

    const { postgres } = api.services;
    const row = { entity_type: 'invoice', action: 'updated', before: null, after: null, created_at: new Date() };
    const made = (id: string, user_id: string) => ({ ...api.scope, ...row, id, entity_id: `of ${id}`, user_id });
    await postgres('audit_entries').insert([made('audit_system', 'system'), made('audit_gone', 'user_gone')]);
    const read = async (id: string) => (await api.request('GET', `/audit-logs/${id}`)).body;
    expect(await read('audit_system')).to.deep.include({
      actor: { type: 'system', id: 'system', name: null, email: null },
      entity_name: null,
    });
    expect((await read('audit_gone')).actor).to.equal(null);
    await postgres('audit_entries').whereIn('id', ['audit_system', 'audit_gone']).delete();
  });

  it('tells nothing of what was refused or undone', async () => {
    const before = (await logs()).pagination.total;
    expect((await api.request('POST', '/plans', { body: { name: '' } })).status).to.equal(400);
    await post('/plans', { name: 'Keyed', lookup_key: 'keyed' });
    expect((await api.request('POST', '/plans', { body: { name: 'Again', lookup_key: 'keyed' } })).status).to.equal(
      409,
    );
    expect((await logs()).pagination.total).to.equal(before + 1);
  });

  it('400 for a kind of record that there is not, with those that there are; any case will do', async () => {
    const answer = await api.request('GET', '/audit-logs?entity_type=plann');
    expect(answer.status).to.equal(400);
    expect(answer.body.message).to.match(/^entity_type: must be addon, .*plan, price.* or webhook_endpoint$/);
    expect((await logs('?entity_type=PLAN')).pagination.total).to.be.above(0);
  });

  it('a decimal is told as it is answered', async () => {
    await world.meter('calls');
    await world.plan('Priced', [usage('calls', '0.010000000000000001'), fixed('10')]);
    const { items } = await logs('?entity_type=price');
    expect(items.map((entry) => entry.after!.amount)).to.deep.equal(['10', '0.010000000000000001']);
  });

  it('never holds a secret, neither of a key nor of what anybody adds later', async () => {
    const { secret, api_key } = await post('/secrets/api/keys', { name: 'Hidden', type: 'private_key' });
    const row = (await SecretModel.in(api.scope, api.services.postgres).where('id', secret.id))[0]!;
    const { items } = await logs(`?entity_id=${secret.id}`);
    expect(items[0]).to.deep.include({ entity_type: 'api_key', action: 'created' });
    expect(items[0]!.after!.key_hash).to.equal('[redacted]');
    const all = (await api.services.postgres.raw(`select string_agg(e::text, '') as text from audit_entries e`)).rows[0]
      .text;
    expect(all).to.not.contain(row.key_hash).and.to.not.contain(api_key);
    await api.request('DELETE', `/secrets/api/keys/${secret.id}`);
    expect((await logs(`?entity_id=${secret.id}`)).items[0]!.action).to.equal('deleted');
  });

  it('the clock is `system`: an invoice that it drafts and finalizes', async () => {
    await world.on('2026-01-01', () => world.subscribe('acme', 'Priced'));
    await world.on('2026-02-01');
    await world.finalize();
    const { items } = await logs('?entity_type=invoice&user_id=system');
    expect(items[0]!.after!.invoice_status).to.equal('FINALIZED');
    expect(items.at(-1)!.action).to.equal('created');
    expect(items.every((entry) => entry.secret_id === null && entry.request_id === null)).to.equal(true);
  });

  it('lists newest first, by pages and by every condition', async () => {
    const { items } = await logs('?limit=1000');
    const times = items.map((entry) => entry.created_at);
    expect(times).to.deep.equal([...times].sort().reverse());
    const pages = [...(await logs('?limit=2')).items!, ...(await logs('?limit=2&offset=2')).items!];
    expect(pages).to.deep.equal(items.slice(0, 4));
    const count = async (query: string) => (await logs(`?limit=1000&${query}`)).items;
    const where = (keep: (entry: AuditEntry) => boolean) => items.filter(keep);
    expect(await count('entity_type=plan')).to.deep.equal(where((entry) => entry.entity_type === 'plan'));
    expect(await count('action=archived')).to.deep.equal(where((entry) => entry.action === 'archived'));
    expect(await count('user_id=system')).to.deep.equal(where((entry) => entry.user_id === 'system'));
    expect(await count('end_time=2026-01-15T00:00:00Z')).to.deep.equal(
      where((entry) => entry.created_at < '2026-01-15'),
    );
    expect(await count('start_time=2026-01-15T00:00:00Z')).to.deep.equal(
      where((entry) => entry.created_at > '2026-01-15'),
    );
  });

  it('what lies above the environments is a list of its own', async () => {
    const machine = await post('/users', { type: 'service_account', name: 'Robot', roles: ['event_reader'] });
    expect((await logs(`?entity_id=${machine.id}`)).items).to.deep.equal([]);
    const { items } = await logs(`?tenant_wide=true&entity_id=${machine.id}`);
    expect(items[0]).to.deep.include({ entity_type: 'user', action: 'created', environment_id: '' });
    expect((await api.request('GET', `/audit-logs/${items[0]!.id}`)).status).to.equal(200);
  });

  it('is answered from an index, whatever is asked', async () => {
    const { postgres } = api.services;
    await postgres.raw(
      `insert into audit_entries (id, tenant_id, environment_id, entity_type, entity_id, action, user_id, created_at)
       select 'audit_' || i, ?, ?, 't' || i % 50, 'e' || i % 500, 'updated', 'u' || i % 50, now() - i * interval '1 second'
         from generate_series(1, 10000) i`,
      [api.scope.tenant_id, 'env_many'],
    );
    await postgres.raw('analyze audit_entries');
    for (const [condition, index] of [
      ['true', 'audit_entries_list'],
      [`entity_id = 'e7'`, 'audit_entries_entity'],
      [`entity_type = 't7'`, 'audit_entries_type'],
      [`user_id = 'u7'`, 'audit_entries_user'],
    ] as const) {
      const { rows } = await postgres.raw(
        `explain select * from audit_entries where tenant_id = ? and environment_id = 'env_many' and ${condition}
          order by created_at desc, id desc limit 50`,
        [api.scope.tenant_id],
      );
      const plan = rows.map((row: Record<string, string>) => row['QUERY PLAN']).join('\n');
      expect(plan).to.contain(`Index Scan Backward using ${index}`).and.to.not.contain('Sort');
    }
  });

  it('400 for an end before the start, 401, 403 without its own permission, 404 for an unknown id and for another tenant', async () => {
    const wrong = await api.request('GET', '/audit-logs?start_time=2026-02-01T00:00:00Z&end_time=2026-01-01T00:00:00Z');
    expect([wrong.status, wrong.body.details!.field]).to.deep.equal([400, 'end_time']);
    expect((await api.request('GET', '/audit-logs', { key: null })).status).to.equal(401);
    const ingestor = await api.keyWithRoles(['event_ingestor'], { user_type: 'service_account' });
    const refused = await api.request('GET', '/audit-logs', { key: ingestor });
    expect([refused.status, refused.body.details!.permission]).to.deep.equal([403, 'audit_log:read']);
    const own = (await logs('?limit=1')).items[0]!.id;
    const other = await api.otherTenant();
    expect((await api.request('GET', `/audit-logs/${own}`, { key: other.key })).status).to.equal(404);
    expect((await logs('', other.key)).items).to.deep.equal([]);
    expect((await api.request('GET', '/audit-logs/audit_none')).status).to.equal(404);
  });
});
