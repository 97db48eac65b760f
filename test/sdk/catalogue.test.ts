/**
 * The published client, unmodified, drives its operations of customers, features, plans and prices. An answer that lacks a
 * declared key or has another status makes a call of it fail.
 */
import { Flexprice } from '@flexprice/sdk';
import { expect } from 'chai';
import { startTestApi, type TestApi } from '../support/api.ts';

describe('the published client', () => {
  let api: TestApi;
  let client: Flexprice;
  before(async () => {
    api = await startTestApi({ now: '2026-03-15T12:00:00Z' });
    client = new Flexprice({ serverURL: `${api.url}/v1`, apiKeyAuth: api.key });
  });
  after(() => api.stop());

  const planOf = async (name: string) => (await client.plans.createPlan({ name })).id!;
  const flatFee = (entityId: string, amount: string) => ({
    amount,
    billingCadence: 'RECURRING' as const,
    billingModel: 'FLAT_FEE' as const,
    billingPeriod: 'MONTHLY' as const,
    currency: 'usd',
    entityId,
    entityType: 'PLAN' as const,
    invoiceCadence: 'ADVANCE' as const,
    priceUnitType: 'FIAT' as const,
    type: 'FIXED' as const,
  });

  it('customers: create, get, get by external id, query, update, delete', async () => {
    const created = await client.customers.createCustomer({
      externalId: 'acme',
      email: 'billing@example.com',
      addressCountry: 'DE',
      metadata: { tier: 'gold' },
      skipOnboardingWorkflow: true,
    });
    expect(created).to.deep.include({ externalId: 'acme', name: 'acme', addressCountry: 'DE', status: 'published' });
    expect(await client.customers.getCustomer(created.id!)).to.deep.equal(created);
    expect(await client.customers.getCustomerByExternalId('acme')).to.deep.equal(created);
    const found = await client.customers.queryCustomer({ externalIds: ['acme'], limit: 10 });
    expect(found.items).to.deep.equal([created]);
    expect(found.pagination).to.deep.include({ total: 1, limit: 10, offset: 0 });
    const renamed = await client.customers.updateCustomer({ name: 'Acme' }, created.id!, 'acme');
    expect(renamed).to.deep.equal({ ...created, name: 'Acme' });
    expect(await client.customers.deleteCustomer(created.id!)).to.equal(undefined);
  });

  it('features: create with an inline meter, query, update, delete', async () => {
    const created = await client.features.createFeature({
      name: 'API calls',
      type: 'metered',
      meter: {
        name: 'API calls',
        eventName: 'api.call',
        aggregation: { type: 'SUM', field: 'tokens' },
        filters: [{ key: 'region', values: ['eu'] }],
        resetUsage: 'BILLING_PERIOD',
      },
      unitSingular: 'call',
      unitPlural: 'calls',
      alertSettings: { alertEnabled: true, critical: { threshold: 0.5, condition: 'below' } },
    });
    expect(created).to.deep.include({ lookupKey: 'api-calls', type: 'metered', unitPlural: 'calls' });
    expect(created.meter).to.deep.include({ eventName: 'api.call', id: created.meterId });
    expect(created.alertSettings?.critical).to.deep.equal({ threshold: 0.5, condition: 'below' });
    const found = await client.features.queryFeature({ featureIds: [created.id!], expand: 'meters' });
    expect(found.items).to.deep.equal([created]);
    const filters = [{ key: 'region', values: ['us'] }];
    const updated = await client.features.updateFeature(created.id!, { description: 'Calls', filters });
    expect(updated).to.deep.include({ description: 'Calls', name: 'API calls' });
    expect(updated.meter?.filters).to.deep.equal(filters);
    expect((await client.features.deleteFeature(created.id!)).message).to.be.a('string');
  });

  it('plans: create, get, query, update, clone, delete', async () => {
    const created = await client.plans.createPlan({
      name: 'Pro',
      lookupKey: 'pro',
      displayOrder: 1,
      metadata: { a: 'b' },
    });
    expect(created).to.deep.include({ name: 'Pro', lookupKey: 'pro', displayOrder: 1, prices: [] });
    const price = await client.prices.createPrice(flatFee(created.id!, '10'));
    const plan = await client.plans.getPlan(created.id!);
    expect(plan.prices).to.deep.equal([price]);
    const found = await client.plans.queryPlan({ lookupKey: 'pro', expand: 'prices,entitlements,credit_grant' });
    expect(found.items).to.deep.equal([plan]);
    const updated = await client.plans.updatePlan(created.id!, { description: 'For teams' });
    expect(updated).to.deep.equal({ ...plan, description: 'For teams' });
    const copy = await client.plans.postPlansIdClone(created.id!, { name: 'Pro 2', lookupKey: 'pro-2' });
    expect(copy.prices?.map(({ amount }) => amount)).to.deep.equal(['10']);
    expect((await client.plans.deletePlan(created.id!)).message).to.be.a('string');
  });

  it('plans: synchronise the subscriptions', async () => {
    const planId = await planOf('Synchronised');
    const run = await client.plans.syncPlanPrices(planId);
    const found = await client.workflows.queryWorkflow({ workflowId: run.workflowId! });
    expect(found.items?.[0]).to.include({ runId: run.runId, workflowType: 'PriceSyncWorkflow', entityId: planId });
  });

  it('prices: create, get, get by key, query, update, delete', async () => {
    const planId = await planOf('Priced');
    const created = await client.prices.createPrice({ ...flatFee(planId, '12.50'), lookupKey: 'seat', minQuantity: 2 });
    expect(created).to.deep.include({ amount: '12.5', displayAmount: '$12.50', minQuantity: '2', parentPriceId: '' });
    expect(await client.prices.getPrice(created.id!)).to.deep.equal(created);
    expect(await client.prices.getPriceByLookupKey('seat')).to.deep.equal(created);
    const found = await client.prices.queryPrice({ planIds: [planId], entityType: 'PLAN', expand: 'meters,plan' });
    expect(found.items?.[0]).to.deep.include({ id: created.id, displayName: 'Priced' });
    expect(found.items?.[0]?.plan?.id).to.equal(planId);
    const named = await client.prices.updatePrice(created.id!, { displayName: 'Seat' });
    expect(named).to.deep.equal({ ...created, displayName: 'Seat' });
    const dearer = await client.prices.updatePrice(created.id!, {
      amount: '15',
      effectiveFrom: '2026-04-01T00:00:00Z',
    });
    expect(dearer).to.deep.include({ amount: '15', parentPriceId: created.id, startDate: '2026-04-01T00:00:00Z' });
    expect((await client.prices.deletePrice(dearer.id!, { endDate: '2026-05-01T00:00:00Z' })).message).to.be.a(
      'string',
    );
    expect((await client.prices.deletePrice(created.id!, {})).message).to.be.a('string');
  });

  it('prices: every model in one bulk', async () => {
    const entityId = await planOf('Bulk');
    const feature = await client.features.createFeature({
      name: 'Tokens',
      type: 'metered',
      meter: { name: 'Tokens', eventName: 'tokens', aggregation: { type: 'COUNT' }, resetUsage: 'NEVER' },
    });
    const usage = {
      ...flatFee(entityId, '3'),
      type: 'USAGE' as const,
      invoiceCadence: 'ARREAR' as const,
      meterId: feature.meterId!,
    };
    const { items } = await client.prices.createPricesBulk({
      items: [
        flatFee(entityId, '1'),
        { ...usage, billingModel: 'PACKAGE', transformQuantity: { divideBy: 100, round: 'down' } },
        {
          ...usage,
          amount: undefined,
          billingModel: 'TIERED',
          tierMode: 'VOLUME',
          tiers: [{ upTo: 10, unitAmount: '2', flatAmount: '1' }, { unitAmount: '1' }],
        },
      ],
    });
    expect(items?.map(({ billingModel }) => billingModel)).to.deep.equal(['FLAT_FEE', 'PACKAGE', 'TIERED']);
    expect(items?.[1]?.transformQuantity).to.deep.equal({ divideBy: 100, round: 'down' });
    expect(items?.[2]?.tiers?.map(({ upTo }) => upTo)).to.deep.equal([10, undefined]);
  });

  it('a refusal is an error that says why', async () => {
    const body = { ...flatFee(await planOf('Refused'), '1'), type: 'USAGE' as const };
    const error = await client.prices.createPrice(body).then(
      () => expect.fail('the client did not refuse'),
      (reason: unknown) => reason as { statusCode: number; body: string },
    );
    expect(error.statusCode).to.equal(400);
    expect(JSON.parse(error.body)).to.deep.include({ code: 'validation_error', success: false });
    const unknown = await client.plans.getPlan('plan_unknown').catch((reason: { statusCode: number }) => reason);
    expect(unknown).to.include({ statusCode: 404 });
  });
});
