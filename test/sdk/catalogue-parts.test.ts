/** The published client, unmodified, drives its operations of coupons, price units and groups. */
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
      entityId: plan.id!,
      entityType: 'PLAN',
      type: 'FIXED',
      billingModel: 'FLAT_FEE',
      billingCadence: 'RECURRING',
      billingPeriod: 'MONTHLY',
      invoiceCadence: 'ADVANCE',
      currency: 'usd',
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
    const created = await client.groups.createGroup({ name: 'Core', entityType: 'feature', lookupKey: 'core' });
    expect(created).to.deep.include({ name: 'Core', entityType: 'feature', lookupKey: 'core', entityIds: [] });
    const read = await client.groups.getGroup(created.id!);
    expect(read).to.deep.equal(created);
    expect((await client.groups.queryGroup({ lookupKey: 'core', entityType: 'feature' })).items).to.deep.equal([read]);
    expect(await client.groups.deleteGroup(created.id!)).to.equal(undefined);
    expect((await client.groups.getGroup(created.id!)).entityIds).to.deep.equal([]);
  });
});
