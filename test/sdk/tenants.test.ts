/** The published client, unmodified, against the operations of tenants, environments, users, keys and roles. */
import { Flexprice } from '@flexprice/sdk';
import { expect } from 'chai';
import { startTestApi, type TestApi } from '../support/api.ts';

describe('the published client: tenants, environments, users, keys, roles', () => {
  let api: TestApi;
  let sdk: Flexprice;
  before(async () => {
    api = await startTestApi();
    sdk = new Flexprice({ serverURL: `${api.url}/v1`, apiKeyAuth: api.key });
  });
  after(() => api.stop());

  it('environments', async () => {
    const made = await sdk.environments.createEnvironment({ name: 'Staging', type: 'development' });
    expect(made).to.include({ name: 'Staging', type: 'development' });
    const renamed = await sdk.environments.updateEnvironment(made.id!, { name: 'Test' });
    expect(renamed).to.include({ id: made.id, name: 'Test' });
  });

  it('tenants', async () => {
    const changed = await sdk.tenants.updateTenant({
      name: 'Acme',
      billingDetails: { email: 'pay@example.com', address: { addressCountry: 'IN' } },
    });
    expect(changed.name).to.equal('Acme');
    const read = await sdk.tenants.getTenantById(api.scope.tenant_id);
    expect(read).to.deep.equal(changed);
    expect(read.billingDetails?.address?.addressCountry).to.equal('IN');
  });

  it('users', async () => {
    const me = await sdk.users.getUserInfo();
    expect(me.tenant?.id).to.equal(api.scope.tenant_id);
    const machine = await sdk.users.createUser({ type: 'service_account', roles: ['event_ingestor'] });
    expect(machine).to.deep.include({ type: 'service_account', roles: ['event_ingestor'] });
    const found = await sdk.users.queryUser({ userIds: [machine.id!] });
    expect(found.items?.map((item) => item.id)).to.deep.equal([machine.id]);
    expect(found.pagination).to.deep.include({ total: 1, limit: 50, offset: 0 });
  });

  it('keys', async () => {
    const made = await sdk.secrets.createApiKey({
      name: 'Collector',
      type: 'private_key',
      expiresAt: '2030-01-01T00:00:00Z',
    });
    expect(made.apiKey).to.match(/^sk_/);
    const listed = await sdk.secrets.listApiKeys(10, 0, 'published');
    expect(listed.items?.map((item) => item.id)).to.include(made.secret?.id);
    expect(await sdk.secrets.deleteApiKey(made.secret!.id!)).to.equal(undefined);
    const after = await sdk.secrets.listApiKeys();
    expect(after.items?.map((item) => item.id)).to.not.include(made.secret?.id);
  });

  it('roles', async () => {
    expect(await sdk.rbac.listRbacRoles()).to.have.property('roles');
    expect(await sdk.rbac.getRbacRole('all_reader')).to.have.property('role');
  });

  it('errors arrive as the typed error of the client, with our message', async () => {
    const failed = await sdk.environments.createEnvironment({ name: ' ', type: 'development' }).catch((error) => error);
    expect(failed.statusCode).to.equal(400);
    expect(failed.name).to.equal('ErrorsErrorsErrorResponse');
    expect(failed.success).to.equal(false);
    expect(failed.error.message).to.equal('name: must not be blank');
    const unknown = await sdk.tenants.getTenantById('tenant_unknown').catch((error) => error);
    expect([unknown.statusCode, unknown.name]).to.deep.equal([404, 'ErrorsErrorsErrorResponse']);
    const nobody = new Flexprice({ serverURL: `${api.url}/v1`, apiKeyAuth: 'sk_unknown' });
    const refused = await nobody.users.getUserInfo().catch((error) => error);
    expect([refused.statusCode, refused.name]).to.deep.equal([401, 'ErrorsErrorsErrorResponse']);
  });
});
