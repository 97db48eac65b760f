/** The published client, unmodified, changes plans, undoes what is scheduled, and reads wallets. */
import { Flexprice } from '@flexprice/sdk';
import { expect } from 'chai';
import { startTestApi, type TestApi } from '../support/api.ts';

describe('the published client: changes of subscriptions', () => {
  let api: TestApi;
  let sdk: Flexprice;
  let customerId: string;
  const planIds: string[] = [];

  before(async () => {
    api = await startTestApi({ now: '2026-03-01T00:00:00Z' });
    sdk = new Flexprice({ serverURL: `${api.url}/v1`, apiKeyAuth: api.key });
    customerId = (await sdk.customers.createCustomer({ externalId: 'acme' })).id!;
    for (const amount of ['31', '62']) {
      const { id } = await sdk.plans.createPlan({ name: `Plan of ${amount}` });
      planIds.push(id!);
      await sdk.prices.createPrice({
        entityId: id!,
        entityType: 'PLAN',
        type: 'FIXED',
        billingModel: 'FLAT_FEE',
        billingCadence: 'RECURRING',
        billingPeriod: 'MONTHLY',
        invoiceCadence: 'ADVANCE',
        priceUnitType: 'FIAT',
        currency: 'usd',
        amount,
      });
    }
  });
  after(() => api.stop());

  const subscribe = async (planId: string) => {
    api.setNow('2026-03-01T00:00:00Z');
    const terms = { customerId, currency: 'usd', billingCadence: 'RECURRING', billingPeriod: 'MONTHLY' } as const;
    const { id } = await sdk.subscriptions.createSubscription({ ...terms, planId });
    const { items } = (await api.request('POST', '/invoices/search', { body: { subscription_id: id! } })).body;
    const { id: destination_id, amount_remaining: amount, currency } = items[0]!;
    const received = { destination_type: 'INVOICE', destination_id, payment_method_type: 'OFFLINE', amount, currency };
    expect((await api.request('POST', '/payments', { body: received })).status).to.equal(201);
    api.setNow('2026-03-11T00:00:00Z');
    return id!;
  };
  const change = (targetPlanId: string) =>
    ({
      targetPlanId,
      prorationBehavior: 'create_prorations',
      billingCadence: 'RECURRING',
      billingPeriod: 'MONTHLY',
      billingCycle: 'anniversary',
    }) as const;

  it('previews and executes a change of plan, and reads what went into the wallet', async () => {
    const id = await subscribe(planIds[1]!);
    const preview = await sdk.subscriptions.previewSubscriptionChange(id, change(planIds[0]!));
    const done = await sdk.subscriptions.executeSubscriptionChange(id, change(planIds[0]!));
    expect([preview.changeType, preview.prorationDetails?.netAmount]).to.deep.equal(['downgrade', '-21']);
    expect([done.newSubscription?.id, done.newSubscription?.planId]).to.deep.equal([id, planIds[0]]);
    const [wallet] = await sdk.wallets.getWalletsByCustomerId(customerId);
    expect([wallet?.balance, wallet?.walletType]).to.deep.equal(['21', 'PRE_PAID']);
    expect((await sdk.wallets.getWallet(wallet!.id!)).creditBalance).to.equal('21');
    const { items } = await sdk.wallets.getWalletTransactions({ idPathParameter: wallet!.id! });
    expect(items?.map(({ amount, transactionReason }) => [amount, transactionReason])).to.deep.equal([
      ['21', 'CREDIT_NOTE'],
    ]);
  });

  it('schedules a change, finds it, and undoes it, at the doubled path that the client asks', async () => {
    const id = await subscribe(planIds[0]!);
    const request = { ...change(planIds[1]!), changeAt: 'end_of_period' as const };
    const { isScheduled, scheduleId } = await sdk.subscriptions.executeSubscriptionChange(id, request);
    expect(isScheduled).to.equal(true);
    const all = await sdk.subscriptions.listAllSubscriptionSchedules(true);
    const own = await sdk.subscriptions.listSubscriptionSchedules(id);
    expect([all.count, own.schedules?.[0]?.id]).to.deep.equal([1, scheduleId]);
    expect((await sdk.subscriptions.getSubscriptionSchedule(scheduleId!)).canBeCancelled).to.equal(true);
    expect((await sdk.subscriptions.cancelSubscriptionSchedule(scheduleId!)).status).to.equal('cancelled');
  });

  it('cancels with a credit', async () => {
    const id = await subscribe(planIds[0]!);
    const request = { cancellationType: 'immediate', prorationBehavior: 'create_prorations' } as const;
    const answer = await sdk.subscriptions.cancelSubscription(id, request);
    expect([answer.totalCreditAmount, answer.prorationDetails?.[0]?.prorationDays]).to.deep.equal(['21', 21]);
  });
});
