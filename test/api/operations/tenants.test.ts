import { expect } from 'chai';
import { startTestApi, type TestApi } from '../../support/api.ts';

describe('tenants', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi();
  });
  after(() => api.stop());

  it('200 for the own tenant, 404 for any other', async () => {
    const { status, body } = await api.request('GET', `/tenants/${api.scope.tenant_id}`);
    expect(status).to.equal(200);
    const keys = ['id', 'name', 'billing_details', 'status', 'suspended', 'created_at', 'updated_at', 'metadata'];
    expect(body).to.have.all.keys(...keys);
    const other = await api.otherTenant();
    for (const id of [other.scope.tenant_id, 'tenant_unknown'])
      expect((await api.request('GET', `/tenants/${id}`)).status).to.equal(404);
  });

  it('200 for an update: what was not sent stays, and every key is there', async () => {
    const billing_details = { email: 'pay@example.com', address: { address_country: 'IN' } };
    await api.request('PUT', '/tenants/update', { body: { name: 'Acme', metadata: { a: '1' } } });
    const { body } = await api.request('PUT', '/tenants/update', { body: { billing_details } });
    expect(body).to.deep.include({ name: 'Acme', metadata: { a: '1' } });
    expect(body.billing_details).to.deep.equal({
      email: 'pay@example.com',
      help_email: null,
      phone: null,
      address: {
        address_line1: null,
        address_line2: null,
        address_city: null,
        address_state: null,
        address_postal_code: null,
        address_country: 'IN',
      },
    });
  });

  it("touches no other tenant's record", async () => {
    const other = await api.otherTenant();
    await api.request('PUT', '/tenants/update', { body: { name: 'Changed' } });
    const { body } = await api.request('GET', `/tenants/${other.scope.tenant_id}`, { key: other.key });
    expect(body.name).to.equal('Another tenant');
  });

  const refused: [unknown, string][] = [
    [{ name: ' ' }, 'name'],
    [{ metadata: { a: 1 } }, 'metadata.a'],
    [{ billing_details: { email: 'nobody' } }, 'billing_details.email'],
    [{ billing_details: { address: { address_country: 'IND' } } }, 'billing_details.address.address_country'],
  ];
  for (const [body, field] of refused) {
    it(`400 naming ${field}`, async () => {
      const before = await api.request('GET', `/tenants/${api.scope.tenant_id}`);
      const answer = await api.request('PUT', '/tenants/update', { body });
      expect(answer.status).to.equal(400);
      expect(answer.body.details!.field).to.equal(field);
      expect((await api.request('GET', `/tenants/${api.scope.tenant_id}`)).body).to.deep.equal(before.body);
    });
  }

  it('403 for a reader', async () => {
    const key = await api.keyWithRoles(['all_reader']);
    expect((await api.request('PUT', '/tenants/update', { key, body: { name: 'x' } })).status).to.equal(403);
  });
});

describe('environments', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi();
  });
  after(() => api.stop());

  it('201, 200 by id, renamed, and in the list with its own envelope', async () => {
    const made = await api.request('POST', '/environments', { body: { name: 'Live', type: 'PRODUCTION' } });
    expect(made.status).to.equal(201);
    expect(made.body).to.have.all.keys('id', 'name', 'type', 'created_at', 'updated_at');
    expect(made.body.type).to.equal('production');
    expect(made.body.id).to.match(/^env_/);
    expect((await api.request('GET', `/environments/${made.body.id}`)).body).to.deep.equal(made.body);
    const renamed = await api.request('PUT', `/environments/${made.body.id}`, {
      body: { name: 'Main', type: 'production' },
    });
    expect([renamed.status, renamed.body.name]).to.deep.equal([200, 'Main']);
    const { body } = await api.request('GET', '/environments?limit=1&offset=1&sort=name&order=asc');
    expect(body).to.have.all.keys('environments', 'total', 'offset', 'limit', 'next_cursor');
    expect([body.total, body.offset, body.limit]).to.deep.equal([2, 1, 1]);
    expect(body.environments.map((one: { name: string }) => one.name)).to.deep.equal(['Main']);
  });

  it('records of one environment are not seen in another', async () => {
    const made = await api.request('POST', '/environments', { body: { name: 'Second', type: 'development' } });
    const meter = { name: 'm', event_name: 'e', aggregation: { type: 'COUNT' } };
    const { body } = await api.request('POST', '/meters', { body: meter });
    await api.services.postgres('secrets').update({ environment_id: null });
    const second = await startSecond(made.body.id);
    expect((await second('/meters')).body.items).to.deep.equal([]);
    expect((await second(`/meters/${body.id}`)).status).to.equal(404);
  });

  /** Asks with a key that leaves the environment to the header. */
  async function startSecond(environment: string) {
    const key = await api.keyWithRoles(['super_admin']);
    await api.services.postgres('secrets').update({ environment_id: null });
    return <Path extends string>(path: Path) =>
      api.request('GET', path, { key, headers: { 'x-environment-id': environment } });
  }

  it('400 for a missing name, an unknown type and a changed type', async () => {
    const { body } = await api.request('GET', '/environments');
    const first = body.environments[0];
    const rows = [
      ['POST', '/environments', { type: 'development' }, 'name'],
      ['POST', '/environments', { name: 'x', type: 'staging' }, 'type'],
      [
        'PUT',
        `/environments/${first!.id}`,
        { type: first!.type === 'production' ? 'development' : 'production' },
        'type',
      ],
    ] as const;
    for (const [method, path, sent, field] of rows) {
      const answer = await api.request(method, path, { body: sent });
      expect([answer.status, answer.body.details!.field]).to.deep.equal([400, field]);
    }
    expect((await api.request('GET', '/environments')).body).to.deep.equal(body);
  });

  it("404 for another tenant's, 401 without a key, 403 for an ingestor", async () => {
    const { scope } = await api.otherTenant();
    for (const [method, body] of [
      ['GET', undefined],
      ['PUT', { name: 'mine' }],
    ] as const)
      expect((await api.request(method, `/environments/${scope.environment_id}`, { body })).status).to.equal(404);
    expect((await api.request('GET', '/environments', { key: null })).status).to.equal(401);
    const key = await api.keyWithRoles(['event_ingestor']);
    expect((await api.request('GET', '/environments', { key })).status).to.equal(403);
  });
});
