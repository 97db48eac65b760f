/**
 * The published client, unmodified, drives its operations of add-ons and entitlements, and those of customers that tell
 * what is granted and used.
 */
import { Flexprice } from '@flexprice/sdk';
import { expect } from 'chai';
import { newId } from '../../storage/foundation/new-id.ts';
import { AddonAssociationModel } from '../../storage/models/subscriptions/addon-association.ts';
import { fixed, startWorld, type World } from '../support/world.ts';

describe('the published client on what is granted', () => {
  let world: World;
  let client: Flexprice;
  let planId: string;
  let featureId: string;
  before(async () => {
    world = await startWorld({ now: '2026-01-05T00:00:00Z' });
    client = new Flexprice({ serverURL: `${world.api.url}/v1`, apiKeyAuth: world.api.key });
    planId = (await world.plan('Pro', [fixed('10')])).id;
    const meterId = (await world.meter('calls')).id;
    featureId = (await client.features.createFeature({ name: 'Calls', type: 'metered', meterId })).id!;
  });
  after(() => world.stop());

  it('add-ons: create, get, get by key, query, update, delete', async () => {
    const created = await client.addons.createAddon({
      name: 'Seats',
      lookupKey: 'seats',
      type: 'multiple_instance',
      metadata: { places: 5 },
    });
    expect(created).to.deep.include({ lookupKey: 'seats', type: 'multiple_instance', metadata: { places: 5 } });
    expect(await client.addons.getAddon(created.id!)).to.deep.equal(created);
    expect(await client.addons.getAddonByLookupKey('seats')).to.deep.equal(created);
    const expand = 'prices,entitlements,credit_grant';
    const found = await client.addons.queryAddon({ addonIds: [created.id!], addonType: 'multiple_instance', expand });
    expect(found.items?.map(({ id }) => id)).to.deep.equal([created.id]);
    const updated = await client.addons.updateAddon(created.id!, { description: 'Five more' });
    expect(updated).to.deep.include({ description: 'Five more', name: 'Seats' });
    expect((await client.addons.deleteAddon(created.id!)).message).to.be.a('string');
  });

  it('entitlements: create, bulk, get, of a plan, of an add-on, query, update, delete', async () => {
    const created = await client.entitlements.createEntitlement({
      planId,
      featureId,
      featureType: 'metered',
      isEnabled: true,
      usageLimit: 1000,
      usageResetPeriod: 'MONTHLY',
      isSoftLimit: false,
    });
    expect(created).to.deep.include({ planId, entityType: 'PLAN', usageLimit: 1000, usageResetPeriod: 'MONTHLY' });
    expect(await client.entitlements.getEntitlement(created.id!)).to.deep.equal(created);
    const addon = await client.addons.createAddon({ name: 'More', lookupKey: 'more', type: 'onetime' });
    const { items } = await client.entitlements.createEntitlementsBulk({
      items: [{ entityType: 'ADDON', entityId: addon.id!, featureId, featureType: 'metered', usageLimit: 250 }],
    });
    expect(items?.[0]).to.deep.include({ entityType: 'ADDON', entityId: addon.id, usageLimit: 250 });
    expect((await client.entitlements.getPlanEntitlements(planId)).id).to.equal(planId);
    const ofAddon = await client.entitlements.getAddonEntitlements(addon.id!);
    expect(ofAddon.items?.map(({ feature }) => feature?.id)).to.deep.equal([featureId]);
    const found = await client.entitlements.queryEntitlement({
      planIds: [planId],
      isEnabled: true,
      expand: 'features',
    });
    expect(found.items?.map(({ id }) => id)).to.deep.equal([created.id]);
    const updated = await client.entitlements.updateEntitlement(created.id!, { usageLimit: 2000 });
    expect(updated).to.deep.equal({ ...created, usageLimit: 2000 });
    expect((await client.entitlements.deleteEntitlement(items![0]!.id!)).message).to.be.a('string');
    await client.entitlements.createEntitlement({
      entityType: 'ADDON',
      entityId: addon.id!,
      featureId,
      featureType: 'metered',
      usageLimit: 500,
    });
  });

  it('customers and subscriptions: what is granted, and what is used of it', async () => {
    const subscription = await world.subscribe('acme', 'Pro');
    const addon = await client.addons.getAddonByLookupKey('more');
    await AddonAssociationModel.add(
      world.api.scope,
      {
        id: newId('addon_association'),
        entity_id: subscription.id,
        addon_id: addon.id,
        quantity: 2,
        start_date: world.now.toISOString(),
      },
      { database: world.api.services.postgres },
    );
    await world.use('acme', 'calls', 750);
    await world.waitForPipeline();
    world.at('2026-01-20T00:00:00Z');
    const { customerId, features } = await client.customers.getCustomerEntitlements(subscription.customer_id);
    expect(customerId).to.equal(subscription.customer_id);
    expect(features?.[0]?.entitlement).to.deep.include({ usageLimit: 3000, usageResetPeriod: 'MONTHLY' });
    expect(
      features?.[0]?.sources?.map(({ entityType, quantity, usageLimit }) => [entityType, quantity, usageLimit]),
    ).to.deep.equal([
      ['plan', 1, 2000],
      ['addon', 2, 500],
    ]);
    const same = await client.subscriptions.getSubscriptionEntitlements(subscription.id, [featureId]);
    expect(same).to.deep.include({ subscriptionId: subscription.id, planId, features });
    const summary = await client.customers.getCustomerUsageSummary({
      customerId: subscription.customer_id,
      featureIds: [featureId],
      featureLookupKeys: ['calls'],
      subscriptionIds: [subscription.id],
    });
    expect(summary.period?.period).to.equal('MONTHLY');
    expect(summary.features?.[0]).to.deep.include({
      totalLimit: 3000,
      currentUsage: '750',
      usagePercent: '25',
      isUnlimited: false,
      nextUsageResetAt: '2026-02-05T00:00:00Z',
    });
  });

  it('customers: one that belongs to another', async () => {
    const parent = await client.customers.createCustomer({ externalId: 'group' });
    const child = await client.customers.createCustomer({ externalId: 'north', parentCustomerExternalId: 'group' });
    expect([child.parentCustomerId, child.parentCustomer?.externalId]).to.deep.equal([parent.id, 'group']);
    const found = await client.customers.queryCustomer({ parentCustomerIds: [parent.id!] });
    expect(found.items).to.deep.equal([child]);
    const moved = await client.customers.updateCustomer({ parentCustomerId: '' }, child.id!);
    expect(moved.parentCustomer).to.be.oneOf([null, undefined]);
  });
});
