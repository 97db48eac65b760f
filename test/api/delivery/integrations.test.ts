/**
 * docs/integrations/README.md, "Mappings". In an environment with a test clock no provider is called, so these tests need none;
 * test/actions/delivery/integrations has those that send records.
 */
import { Flexprice } from '@flexprice/sdk';
import { expect } from 'chai';
import { listCapable } from '../../../integrations/find-capability.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

const KEY = 'a key of the settings that has 32 characters';

describe('mappings over HTTP', () => {
  let api: TestApi;
  let connection_id: string;
  let customers = 0;
  const credentials = { secret_key: 'sk_test_of_these_tests' };
  before(async () => {
    api = await startTestApi({ now: '2026-03-15T12:00:00Z', config: { SECRETS_KEYS: KEY } });
    await api.request('POST', '/test-clocks', { body: { frozen_time: '2026-03-15T12:00:00Z' } });
    const body = { name: 'Stripe', provider_type: 'stripe', encrypted_secret_data: { stripe: credentials } };
    connection_id = (await api.request('POST', '/connections', { body })).body.id;
  });
  after(() => api.stop());

  const newCustomer = async (fields: object = {}) => {
    const body = { external_id: `customer ${++customers}`, ...fields };
    const answer = await api.request('POST', '/customers', { body });
    expect(answer.status, answer.text).to.equal(201);
    return answer.body.id;
  };
  const link = (entity_id: string, provider_entity_id: string, fields: object = {}) =>
    api.request('POST', '/integrations/link', {
      body: { entity_type: 'customer', entity_id, provider_type: 'stripe', provider_entity_id, ...fields },
    });
  const unlink = (entity_id: string) =>
    api.request('DELETE', '/integrations/link', {
      body: { entity_type: 'customer', entity_id, provider_type: 'stripe' },
    });
  const mappings = async (entity_id: string) =>
    (await api.request('GET', `/integrations/mappings?entity_type=customer&entity_id=${entity_id}`)).body.items;

  it('200: a record and its counterpart are linked, and listed', async () => {
    const id = await newCustomer();
    const { status, body } = await link(id, 'cus_1', { metadata: { from: 'import' } });
    expect(status).to.equal(200);
    expect(body.mapping).to.deep.include({
      connection_id,
      provider_type: 'stripe',
      entity_type: 'customer',
      entity_id: id,
      provider_entity_id: 'cus_1',
      mapping_state: 'made',
      metadata: { from: 'import' },
      status: 'published',
    });
    expect(await mappings(id)).to.deep.equal([body.mapping]);
  });

  it('409: either of them is linked already, also at the same time', async () => {
    const [one, other] = [await newCustomer(), await newCustomer()];
    const answers = await Promise.all([link(one, 'cus_2'), link(one, 'cus_3'), link(other, 'cus_2')]);
    expect(answers.filter(({ status }) => status === 409).length).to.be.within(1, 2);
    for (const { body } of answers.filter(({ status }) => status === 409)) expect(body.code).to.equal('already_exists');
    expect((await link(one, 'cus_4')).status).to.equal(409);
  });

  it('an unlinked record can be linked again, and so can its counterpart', async () => {
    const [one, other] = [await newCustomer(), await newCustomer()];
    await link(one, 'cus_5');
    expect((await unlink(one)).status).to.equal(200);
    expect((await unlink(one)).status).to.equal(404);
    expect(await mappings(one)).to.deep.equal([]);
    expect((await link(other, 'cus_5')).status).to.equal(200);
    expect((await link(one, 'cus_6')).status).to.equal(200);
  });

  it('400 and 404: an unknown provider, an unknown kind, a record that is not there', async () => {
    const id = await newCustomer();
    const cases: [object, number, string | undefined][] = [
      [{ provider_type: 'tabs' }, 400, 'provider_type'],
      [{ entity_type: 'wallet' }, 400, 'entity_type'],
      [{ entity_type: 'item' }, 400, 'entity_type'],
      [{ provider_entity_id: '' }, 400, 'provider_entity_id'],
      [{ entity_id: 'cust_none' }, 404, 'entity_id'],
      [{ entity_type: 'invoice' }, 404, 'entity_id'],
    ];
    for (const [fields, status, field] of cases) {
      const answer = await link(id, 'cus_7', fields);
      expect([answer.status, answer.body.details?.field], JSON.stringify(fields)).to.deep.equal([status, field]);
    }
  });

  it('404: an archived record is not linked, and its mapping is not used', async () => {
    const [unlinked, linked] = [await newCustomer(), await newCustomer()];
    expect((await link(linked, 'cus_archived')).status).to.equal(200);
    for (const id of [unlinked, linked]) expect((await api.request('DELETE', `/customers/${id}`)).status).to.equal(204);
    expect((await link(unlinked, 'cus_archived_too')).status).to.equal(404);
    const body = { entity_type: 'customer', entity_id: linked };
    const sent = await api.request('POST', '/integrations/sync', { body });
    expect(sent.status, sent.text).to.equal(404);
  });

  it('of another tenant are not there', async () => {
    const id = await newCustomer();
    const { body } = await link(id, 'cus_8');
    const { key } = await api.otherTenant();
    const listed = await api.request('GET', `/integrations/mappings?entity_type=customer&entity_id=${id}`, { key });
    expect(listed.body.items).to.deep.equal([]);
    const path = `/entity-integration-mappings/${body.mapping.id}` as const;
    expect((await api.request('DELETE', path, { key })).status).to.equal(404);
    expect(await mappings(id)).to.have.length(1);
  });

  it('are gone when their connection is archived', async () => {
    const id = await newCustomer();
    await link(id, 'cus_9');
    await api.request('DELETE', `/connections/${connection_id}`);
    expect(await mappings(id)).to.deep.equal([]);
    expect((await link(id, 'cus_9')).body.details).to.deep.include({ field: 'provider_type', allowed: [] });
    const body = { name: 'Stripe', provider_type: 'stripe', encrypted_secret_data: { stripe: credentials } };
    connection_id = (await api.request('POST', '/connections', { body })).body.id;
    expect((await link(id, 'cus_9')).status).to.equal(200);
  });

  it('a customer brings its own, and shows them on request', async () => {
    const integration_entity_mapping = [{ provider: 'stripe', id: 'cus_10' }];
    const id = await newCustomer({ integration_entity_mapping });
    const [mapping] = await mappings(id);
    expect(mapping).to.include({ provider_entity_id: 'cus_10', mapping_state: 'made' });
    const path = `/customers/${id}` as const;
    expect((await api.request('GET', path)).body.integrations).to.equal(null);
    expect((await api.request('GET', `${path}?expand=integrations`)).body.integrations).to.deep.equal([mapping]);
    const listed = await api.request('GET', '/customers?expand=integrations&limit=1000');
    expect(listed.body.items.find((customer) => customer.id === id)!.integrations).to.deep.equal([mapping]);
    const change = (links: object[]) =>
      api.request('PUT', path, { body: { name: 'Renamed', integration_entity_mapping: links } });
    expect((await change(integration_entity_mapping)).status).to.equal(200);
    expect((await change([{ provider: 'stripe', id: 'cus_11' }])).status).to.equal(409);
    expect((await change([{ provider: 'paypal', id: 'x' }])).body.details!.field).to.equal(
      'integration_entity_mapping[0].provider',
    );
  });

  it('the configuration has the directions and capabilities of each connection', async () => {
    const { body } = await api.request('GET', '/integrations/config');
    expect(body.integrations).to.have.length(1);
    const [entry] = body.integrations;
    expect(entry).to.include({ provider: 'stripe', connection_id, current_config: null });
    expect(entry!.base_config).to.deep.include({
      customer: { inbound: false, outbound: true },
      invoice: { inbound: true, outbound: true },
      plan: null,
    });
    expect(entry!.capabilities).to.deep.equal(listCapable('account')['stripe']!.exchanges);
  });

  describe('sync', () => {
    const sync = (body: object) => api.request('POST', '/integrations/sync', { body });

    it('400: a kind that no provider receives, a pull of what is not read, an environment that never calls', async () => {
      const entity_id = await newCustomer();
      for (const body of [
        { entity_type: 'customer', entity_id, method: 'pull' },
        { entity_type: 'customer', entity_id },
      ]) {
        const answer = await sync(body);
        expect([answer.status, answer.body.code], answer.text).to.deep.equal([400, 'invalid_operation']);
      }
      const plan = await api.request('POST', '/plans', { body: { name: 'Pro' } });
      const answer = await sync({ entity_type: 'plan', entity_id: plan.body.id });
      expect([answer.status, answer.body.code]).to.deep.equal([400, 'invalid_operation']);
      expect((await sync({ entity_type: 'plan', entity_id: 'plan_none' })).status).to.equal(404);
    });
  });

  it('the published client calls the older operations', async () => {
    const sdk = new Flexprice({ serverURL: `${api.url}/v1`, apiKeyAuth: api.key });
    const entityId = await newCustomer();
    const wanted = { entityType: 'customer', entityId, providerType: 'stripe', providerEntityId: 'cus_12' } as const;
    const made = await sdk.entityIntegrationMappings.createEntityIntegrationMapping(wanted);
    expect(made).to.include({ ...wanted, status: 'published' });
    await sdk.entityIntegrationMappings.deleteEntityIntegrationMapping(made.id!);
    expect(await mappings(entityId)).to.deep.equal([]);

    const { integrations } = sdk;
    expect((await integrations.listLinkedIntegrations()).providers).to.deep.equal(['stripe']);
    const found = await integrations.getIntegration('stripe');
    expect(found).to.include({ id: connection_id, provider: 'stripe', type: 'integration' });
    const given = { provider: 'stripe', name: 'Renamed', credentials: { secret_key: 'rk_test_another' } } as const;
    const updated = await integrations.createOrUpdateIntegration('stripe', given);
    expect(updated).to.include({ id: connection_id, name: 'Renamed' });
    await integrations.deleteIntegration(connection_id);
    expect((await integrations.listLinkedIntegrations()).providers).to.deep.equal([]);
    const created = await integrations.createOrUpdateIntegration('stripe', given);
    expect(created.id).to.not.equal(connection_id);
    connection_id = created.id!;
  });

  it('400: credentials of the older operation are named by their key', async () => {
    const store = (provider: string, body: object) =>
      api.request('POST', `/secrets/integrations/create/${provider}`, { body });
    const given = { name: 'x', provider: 'stripe', credentials: {} };
    const cases: [string, object, string][] = [
      ['stripe', given, 'credentials.secret_key'],
      ['stripe', { ...given, credentials: { secret: 'x' } }, 'credentials.secret'],
      ['razorpay', given, 'provider'],
      ['flexprice', { ...given, provider: 'flexprice' }, 'provider'],
    ];
    for (const [provider, body, field] of cases) {
      const answer = (await store(provider, body)) as { status: number; body: { details?: { field?: string } } };
      expect([answer.status, answer.body.details?.field], JSON.stringify(body)).to.deep.equal([400, field]);
    }
  });
});
