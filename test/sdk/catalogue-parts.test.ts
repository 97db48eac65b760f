/**
 * The published client, unmodified, drives its operations of coupons, price units, groups, tax rates and their associations,
 * cost sheets and credit grants.
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

  const flatFee = (entityId: string, entityType: 'PLAN' | 'COSTSHEET' = 'PLAN') => ({
    entityId,
    entityType,
    type: 'FIXED' as const,
    billingModel: 'FLAT_FEE' as const,
    billingCadence: 'RECURRING' as const,
    billingPeriod: 'MONTHLY' as const,
    invoiceCadence: 'ADVANCE' as const,
    currency: 'usd',
    priceUnitType: 'FIAT' as const,
  });

  it('coupons: create, get, query, update, delete', async () => {
    const created = await client.coupons.createCoupon({
      name: 'Launch',
      type: 'fixed',
      amountOff: '12.50',
      currency: 'USD',
      cadence: 'repeated',
      durationInPeriods: 3,
      redeemBefore: '2026-12-31T00:00:00Z',
      maxRedemptions: 10,
      rules: { plan: 'pro' },
      metadata: { a: 'b' },
    });
    expect(created).to.deep.include({
      amountOff: '12.5',
      currency: 'usd',
      totalRedemptions: 0,
      rules: { plan: 'pro' },
    });
    expect(await client.coupons.getCoupon(created.id!)).to.deep.equal(created);
    const found = await client.coupons.queryCoupon({ couponIds: [created.id!], limit: 10 });
    expect(found.items).to.deep.equal([created]);
    const renamed = await client.coupons.updateCoupon(created.id!, { name: 'Start', metadata: { c: 'd' } });
    expect(renamed).to.deep.equal({ ...created, name: 'Start', metadata: { c: 'd' } });
    expect((await client.coupons.deleteCoupon(created.id!)).message).to.be.a('string');
  });

  it('price units: create, get, get by code, list, query, update, delete', async () => {
    const { priceUnits } = client;
    const stated = { name: 'Credits', code: 'crd', symbol: 'c', baseCurrency: 'usd', conversionRate: '0.010' };
    const created = await priceUnits.createPriceUnit(stated);
    expect(created).to.deep.include({ ...stated, conversionRate: '0.01', status: 'published' });
    expect(await priceUnits.getPriceUnit(created.id!)).to.deep.equal(created);
    expect(await priceUnits.getPriceUnitByCode('crd')).to.deep.equal(created);
    expect((await priceUnits.listPriceUnits()).items).to.deep.equal([created]);
    const found = await priceUnits.queryPriceUnit({
      priceUnitIds: [created.id!],
      sort: [{ field: 'code', direction: 'asc' }],
    });
    expect(found.items).to.deep.equal([created]);
    const renamed = await priceUnits.updatePriceUnit(created.id!, { name: 'Points' });
    expect(renamed).to.deep.equal({ ...created, name: 'Points' });
    const plan = await client.plans.createPlan({ name: 'Pro' });
    const price = await client.prices.createPrice({
      ...flatFee(plan.id!),
      priceUnitType: 'CUSTOM',
      priceUnitConfig: { priceUnit: 'crd', amount: '250' },
    });
    expect(price).to.deep.include({
      amount: '2.5',
      priceUnitAmount: '250',
      priceUnitId: created.id,
      conversionRate: '0.01',
    });
    const [shown] = (await client.prices.queryPrice({ priceIds: [price.id!], expand: 'priceunit' })).items!;
    expect(shown?.pricingUnit).to.deep.equal(renamed);
    expect((await priceUnits.deletePriceUnit(created.id!)).message).to.be.a('string');
  });

  it('groups: create, get, query, delete', async () => {
    const created = await client.groups.createGroup({ name: 'Core', entityType: 'price', lookupKey: 'core' });
    expect(created).to.deep.include({ name: 'Core', entityType: 'price', lookupKey: 'core', entityIds: [] });
    const plan = await client.plans.createPlan({ name: 'Grouped' });
    const price = await client.prices.createPrice({ ...flatFee(plan.id!), amount: '1', groupId: created.id! });
    const read = await client.groups.getGroup(created.id!);
    expect(read).to.deep.equal({ ...created, entityIds: [price.id] });
    const [shown] = (await client.prices.queryPrice({ priceIds: [price.id!], expand: 'groups' })).items!;
    expect(shown?.group?.id).to.equal(created.id);
    expect((await client.groups.queryGroup({ lookupKey: 'core', entityType: 'price' })).items).to.deep.equal([read]);
    expect(await client.groups.deleteGroup(created.id!)).to.equal(undefined);
    expect((await client.groups.getGroup(created.id!)).entityIds).to.deep.equal([]);
  });

  it('tax rates: create, get, list, update, delete', async () => {
    const { taxRates } = client;
    const created = await taxRates.createTaxRate({
      name: 'VAT',
      code: 'vat',
      taxRateType: 'percentage',
      percentageValue: '19.00',
      scope: 'EXTERNAL',
    });
    expect(created).to.deep.include({ code: 'vat', percentageValue: '19', taxRateStatus: 'ACTIVE', scope: 'EXTERNAL' });
    expect(await taxRates.getTaxRate(created.id!)).to.deep.equal(created);
    expect(await taxRates.getTaxRates()).to.deep.equal([created]);
    expect(await taxRates.getTaxRates({ taxrateCodes: ['vat', 'other'], scope: 'EXTERNAL' })).to.deep.equal([created]);
    const changed = await taxRates.updateTaxRate(created.id!, { name: 'VAT DE', taxRateStatus: 'INACTIVE' });
    expect(changed).to.deep.equal({ ...created, name: 'VAT DE', taxRateStatus: 'INACTIVE' });
    expect(await taxRates.deleteTaxRate(created.id!)).to.equal(undefined);
    expect(await taxRates.getTaxRates()).to.deep.equal([]);
  });

  it('tax associations: create, get, list, update, delete', async () => {
    const { taxAssociations } = client;
    const rate = await client.taxRates.createTaxRate({
      name: 'Fee',
      code: 'fee',
      taxRateType: 'fixed',
      fixedValue: '2',
    });
    const customer = await client.customers.createCustomer({ externalId: 'acme' });
    const created = await taxAssociations.createTaxAssociation({
      taxRateCode: 'fee',
      entityType: 'customer',
      entityId: customer.id!,
      priority: 1,
      autoApply: false,
      currency: 'usd',
    });
    expect(created).to.deep.include({ taxRateId: rate.id, entityId: customer.id, priority: 1, autoApply: false });
    expect(created.taxRate).to.deep.equal(rate);
    expect(await taxAssociations.getTaxAssociation(created.id!)).to.deep.equal(created);
    const found = await taxAssociations.listTaxAssociations('customer', customer.id, 'acme', rate.id);
    expect(found.items?.map(({ id }) => id)).to.deep.equal([created.id]);
    const changed = await taxAssociations.updateTaxAssociation(created.id!, { priority: 3, autoApply: true });
    expect(changed).to.deep.equal({ ...created, priority: 3, autoApply: true });
    expect(await taxAssociations.deleteTaxAssociation(created.id!)).to.deep.equal({ ...changed, status: 'archived' });
  });

  it('cost sheets: create, get, get the active one, query, update, delete', async () => {
    const { costs } = client;
    const { costsheet: created } = await costs.createCostsheet({ name: 'Models', lookupKey: 'models' });
    expect(created).to.deep.include({ name: 'Models', lookupKey: 'models', status: 'published' });
    const id = created!.id!;
    const price = await client.prices.createPrice({ ...flatFee(id, 'COSTSHEET'), amount: '3' });
    const read = (await costs.getCostsheet(id, 'prices')).costsheet!;
    expect(read.prices?.map((one) => one.id)).to.deep.equal([price.id]);
    expect(await costs.getActiveCostsheet()).to.deep.equal(read);
    const found = await costs.queryCostsheet({
      queryFilter: { limit: 5, expand: 'prices' },
      timeRangeFilter: { startTime: '2026-01-01T00:00:00Z' },
      costsheetIDs: [id],
      lookupKey: 'models',
      tenantID: api.scope.tenant_id,
      sort: [{ field: 'name', direction: 'asc' }],
    });
    expect(found).to.deep.equal({ items: [read], pagination: { total: 1, limit: 5, offset: 0 } });
    const { costsheet: changed } = await costs.updateCostsheet(id, { description: 'Ours' });
    expect(changed).to.deep.equal({ ...created, description: 'Ours' });
    expect(await costs.deleteCostsheet(id)).to.deep.include({ id });
  });

  it('cost analytics: under both names, with what is expanded', async () => {
    const { costs } = client;
    const { costsheet } = await costs.createCostsheet({ name: 'Analysed' });
    const range = { startTime: '2026-01-01T00:00:00Z', endTime: '2026-01-08T00:00:00Z' };
    const asked = { ...range, expand: ['meter', 'price'], limit: 10, offset: 0 };
    const analysed = await costs.getDetailedCostAnalyticsV2(asked);
    expect(analysed).to.deep.include({
      totalRevenue: '0',
      totalCost: '0',
      margin: '0',
      marginPercent: '0',
      roi: '0',
      roiPercent: '0',
      costAnalytics: [],
    });
    const older = await costs.getDetailedCostAnalytics(asked);
    expect(older).to.deep.equal(analysed);
    await costs.deleteCostsheet(costsheet!.id!);
  });

  it('credit grants: create, get, of a plan, update, delete', async () => {
    const { creditGrants } = client;
    const plan = await client.plans.createPlan({ name: 'Granting' });
    const created = await creditGrants.createCreditGrant({
      name: 'Monthly',
      scope: 'PLAN',
      planId: plan.id!,
      credits: '100.50',
      cadence: 'RECURRING',
      period: 'MONTHLY',
      periodCount: 1,
      expirationType: 'DURATION',
      expirationDuration: 2,
      expirationDurationUnit: 'WEEK',
      conversionRate: '0.5',
      priority: 1,
    });
    expect(created).to.deep.include({ credits: '100.5', planId: plan.id, conversionRate: '0.5', periodCount: 1 });
    expect(await creditGrants.getCreditGrant(created.id!)).to.deep.equal(created);
    expect((await creditGrants.getPlanCreditGrants(plan.id!)).items).to.deep.equal([created]);
    expect((await client.plans.getPlan(plan.id!)).creditGrants).to.deep.equal([created]);
    const changed = await creditGrants.updateCreditGrant(created.id!, { name: 'Each month', metadata: { a: 'b' } });
    expect(changed).to.deep.equal({ ...created, name: 'Each month', metadata: { a: 'b' } });
    const other = await creditGrants.createCreditGrant({
      name: 'Once',
      scope: 'PLAN',
      planId: plan.id!,
      credits: '5',
      cadence: 'ONETIME',
      conversionRate: '0.5',
    });
    expect((await creditGrants.deleteCreditGrant(created.id!)).message).to.be.a('string');
    const effectiveDate = '2026-03-01T00:00:00Z';
    expect((await creditGrants.deleteCreditGrant(other.id!, { effectiveDate })).message).to.be.a('string');
  });

  it('credit grants: what is to come of a subscription, and of a customer', async () => {
    const plan = await client.plans.createPlan({ name: 'Giving' });
    await client.prices.createPrice({ ...flatFee(plan.id!, 'PLAN'), amount: '3' });
    const grant = await client.creditGrants.createCreditGrant({
      name: 'Monthly',
      scope: 'PLAN',
      planId: plan.id!,
      credits: '100.5',
      cadence: 'RECURRING',
      period: 'MONTHLY',
      periodCount: 1,
    });
    const customer = await client.customers.createCustomer({ externalId: 'given' });
    const subscription = await client.subscriptions.createSubscription({
      customerId: customer.id!,
      planId: plan.id!,
      currency: 'usd',
      billingPeriod: 'MONTHLY',
      billingPeriodCount: 1,
      billingCadence: 'RECURRING',
    });
    const { items } = await client.subscriptions.getSubscriptionUpcomingGrants(subscription.id!);
    expect(items).to.have.length(1);
    expect(items![0]).to.deep.include({
      creditGrantId: grant.id,
      subscriptionId: subscription.id,
      applicationStatus: 'pending',
      applicationReason: 'recurring_credit_grant',
      credits: 100.5,
    });
    expect((await client.customers.getCustomerUpcomingGrants(customer.id!)).items).to.deep.equal(items);
    const [wallet] = await client.wallets.getWalletsByCustomerId(customer.id!);
    expect(wallet!.creditBalance).to.equal('100.5');
  });
});
