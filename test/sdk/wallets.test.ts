/** The published client, unmodified, keeps wallets. */
import { Flexprice } from '@flexprice/sdk';
import { expect } from 'chai';
import { startTestApi, type TestApi } from '../support/api.ts';

describe('the published client: wallets', () => {
  let api: TestApi;
  let sdk: Flexprice;
  let customerId: string;

  before(async () => {
    api = await startTestApi({ now: '2026-03-01T00:00:00Z' });
    sdk = new Flexprice({ serverURL: `${api.url}/v1`, apiKeyAuth: api.key });
    customerId = (await sdk.customers.createCustomer({ externalId: 'acme' })).id!;
  });
  after(() => api.stop());

  it('creates, fills, reads, finds, changes and closes one', async () => {
    const wallet = await sdk.wallets.createWallet({ customerId, currency: 'usd', initialCreditsToLoad: '10' });
    expect([wallet.balance, wallet.walletStatus]).to.deep.equal(['10', 'active']);
    const id = wallet.id!;
    const bought = await sdk.wallets.topUpWallet(id, {
      creditsToAdd: '5',
      transactionReason: 'PURCHASED_CREDIT_DIRECT',
    });
    expect([bought.wallet?.creditBalance, bought.walletTransaction?.creditsAvailable]).to.deep.equal(['15', '5']);
    const invoiced = await sdk.wallets.topUpWallet(id, { amount: '7', transactionReason: 'PURCHASED_CREDIT_INVOICED' });
    expect(invoiced.walletTransaction?.transactionStatus).to.equal('pending');
    await sdk.payments.createPayment({
      destinationType: 'INVOICE',
      destinationId: invoiced.invoiceId!,
      paymentMethodType: 'OFFLINE',
      amount: '7',
      currency: 'usd',
    });
    expect((await sdk.wallets.getWallet(id)).creditBalance).to.equal('22');
    const autoTopup = { enabled: true, threshold: 5, amount: 10, invoicing: false };
    const changed = await sdk.wallets.updateWallet(id, {
      name: 'Main',
      autoTopup,
      config: { allowedPriceTypes: ['ALL'] },
    });
    expect(changed.name).to.equal('Main');
    const balance = await sdk.wallets.getWalletBalance(id, 'credits_available_breakdown');
    expect([balance.realTimeBalance, balance.creditsAvailableBreakdown?.purchased]).to.deep.equal(['22', '12']);
    const found = await sdk.wallets.queryWallet({ walletIds: [id], status: 'active' });
    expect(found.items?.map((one) => one.id)).to.deep.equal([id]);
    const transactions = await sdk.wallets.getWalletTransactions({ idPathParameter: id, type: 'credit' as never });
    expect(transactions.items).to.have.length(3);
    const searched = await sdk.wallets.queryWalletTransaction({
      transactionReason: 'PURCHASED_CREDIT_DIRECT',
      creditsAvailableGt: 1,
    } as never);
    expect(searched.items?.map((one) => one.walletId)).to.deep.equal([id]);
    expect((await sdk.wallets.getWalletsByCustomerId(customerId))[0]?.id).to.equal(id);
    const [mine] = await sdk.wallets.getCustomerWallets({ id: customerId, includeRealTimeBalance: true });
    expect(mine?.balance).to.equal('22');
    expect((await sdk.wallets.terminateWallet(id)).walletStatus).to.equal('closed');
  });

  it('reads the log of alerts', async () => {
    const customer = await sdk.customers.createCustomer({ externalId: 'watched' });
    const wallet = await sdk.wallets.createWallet({
      customerId: customer.id!,
      currency: 'usd',
      initialCreditsToLoad: '5',
      alertSettings: { alertEnabled: true, critical: { threshold: 10, condition: 'below' } },
    });
    expect(wallet.alertState).to.equal('in_alarm');
    const { items } = await sdk.alerts.queryAlertLog({ customerId: customer.id!, expand: 'customer,wallet' });
    expect(items).to.have.length(1);
    expect(items![0]).to.deep.include({
      entityType: 'wallet',
      entityId: wallet.id,
      alertType: 'low_credit_balance',
      alertStatus: 'in_alarm',
    });
    expect(items![0]!.alertInfo).to.deep.include({ valueAtTime: 5 });
    expect(items![0]!.alertInfo!.alertSettings!.critical).to.deep.equal({ threshold: 10, condition: 'below' });
    expect([items![0]!.customer!.externalId, items![0]!.wallet!.id]).to.deep.equal(['watched', wallet.id]);
  });
});
