/** The published client, unmodified, drives its operations of subscriptions and invoices. */
import { Flexprice } from '@flexprice/sdk';
import { expect } from 'chai';
import { startTestApi, type TestApi } from '../support/api.ts';

describe('the published client: billing', () => {
  let api: TestApi;
  let sdk: Flexprice;
  let customerId: string;
  /** Whom nothing was given back, so that all of an invoice is to be paid. */
  let payerId: string;
  let planId: string;
  let tokensId: string;

  before(async () => {
    api = await startTestApi({ now: '2026-03-15T12:00:00Z' });
    sdk = new Flexprice({ serverURL: `${api.url}/v1`, apiKeyAuth: api.key });
    customerId = (await sdk.customers.createCustomer({ externalId: 'acme' })).id!;
    payerId = (await sdk.customers.createCustomer({ externalId: 'payer' })).id!;
    planId = (await sdk.plans.createPlan({ name: 'Pro' })).id!;
    const feature = await sdk.features.createFeature({
      name: 'Tokens',
      type: 'metered',
      meter: {
        name: 'Tokens',
        eventName: 'tokens',
        aggregation: { type: 'SUM', field: 'n' },
        resetUsage: 'BILLING_PERIOD',
      },
    });
    const shared = {
      billingCadence: 'RECURRING' as const,
      billingPeriod: 'MONTHLY' as const,
      currency: 'usd',
      entityId: planId,
      entityType: 'PLAN' as const,
      priceUnitType: 'FIAT' as const,
    };
    await sdk.prices.createPrice({
      ...shared,
      billingModel: 'FLAT_FEE',
      type: 'FIXED',
      invoiceCadence: 'ADVANCE',
      amount: '40',
    });
    const tokens = await sdk.prices.createPrice({
      ...shared,
      billingModel: 'TIERED',
      tierMode: 'SLAB',
      tiers: [{ upTo: 100, unitAmount: '0.10' }, { unitAmount: '0.05' }],
      type: 'USAGE',
      invoiceCadence: 'ARREAR',
      meterId: feature.meterId!,
    });
    tokensId = tokens.id!;
  });
  after(() => api.stop());

  const subscribe = (more: Record<string, unknown> = {}) =>
    sdk.subscriptions.createSubscription({
      customerId,
      planId,
      currency: 'usd',
      billingCadence: 'RECURRING',
      billingPeriod: 'MONTHLY',
      ...more,
    });

  it('subscriptions: create, get, get v2, update, query, usage', async () => {
    const created = await subscribe({
      metadata: { a: '1' },
      customerTimezone: 'Europe/Berlin',
      billingCycle: 'anniversary',
    });
    expect(created).to.include({ subscriptionStatus: 'active', customerTimezone: 'Europe/Berlin', version: 1 });
    expect(created.latestInvoice?.total).to.equal('40');
    expect(created.lineItems).to.have.length(2);
    const read = await sdk.subscriptions.getSubscription(created.id!);
    expect(read).to.deep.equal({ ...created, latestInvoice: undefined });
    const parts = await sdk.subscriptions.getSubscriptionV2(created.id!, 'plan,subscription_line_items.prices.meters');
    expect(parts.plan?.id).to.equal(planId);
    expect(parts.lineItems?.map((line) => line.price?.id)).to.include(tokensId);
    expect((await sdk.subscriptions.updateSubscription(created.id!, {})).id).to.equal(created.id);
    const found = await sdk.subscriptions.querySubscription({ subscriptionIds: [created.id!], withLineItems: true });
    expect(found.items?.[0]?.lineItems).to.have.length(2);
    const used = await sdk.subscriptions.getSubscriptionUsage({ subscriptionId: created.id! });
    expect(used).to.include({ amount: 0, currency: 'usd', hasOverage: false });
    expect(used.charges?.[0]).to.include({ quantity: 0, amount: 0 });
  });

  it('subscriptions: overrides, draft, activate, cancel', async () => {
    const draft = await subscribe({
      subscriptionStatus: 'draft',
      overrideLineItems: [{ priceId: tokensId, tiers: [{ unitAmount: '0.01' }] }],
    });
    expect(draft.subscriptionStatus).to.equal('draft');
    const active = await sdk.subscriptions.activateSubscription(draft.id!, { startDate: '2026-03-10T00:00:00Z' });
    expect(active).to.include({ subscriptionStatus: 'active', startDate: '2026-03-10T00:00:00Z' });
    const cancelled = await sdk.subscriptions.cancelSubscription(draft.id!, {
      cancellationType: 'immediate',
      cancelImmediatelyInovicePolicy: 'generate_invoice',
      reason: 'test',
    });
    expect(cancelled).to.include({ subscriptionId: draft.id, status: 'cancelled' });
  });

  it('subscriptions: line items are added, changed and ended', async () => {
    const { id } = await subscribe();
    const price = {
      type: 'FIXED' as const,
      billingModel: 'FLAT_FEE' as const,
      billingPeriod: 'MONTHLY' as const,
      billingCadence: 'RECURRING' as const,
      invoiceCadence: 'ADVANCE' as const,
      priceUnitType: 'FIAT' as const,
      amount: '31',
    };
    const added = await sdk.subscriptions.createSubscriptionLineItem(id!, {
      price,
      quantity: 2,
      displayName: 'Support',
    });
    expect(added).to.include({ subscriptionId: id, quantity: '2', displayName: 'Support', entityType: 'subscription' });
    const changed = await sdk.subscriptions.updateSubscriptionLineItem(added.id!, { amount: '62' });
    expect(changed.price?.amount).to.equal('62');
    expect(changed.price?.parentPriceId).to.equal(added.priceId);
    const ended = await sdk.subscriptions.deleteSubscriptionLineItem(changed.id!, {
      effectiveFrom: '2026-03-20T00:00:00Z',
    });
    expect(ended.endDate).to.equal('2026-03-20T00:00:00Z');
  });

  it('subscriptions: add-ons are attached, listed and detached', async () => {
    const { id } = await subscribe();
    const addon = await sdk.addons.createAddon({ name: 'More', lookupKey: 'more', type: 'onetime' });
    const attached = await sdk.subscriptions.addSubscriptionAddon({
      subscriptionId: id!,
      addonId: addon.id!,
      metadata: { seats: 3 },
    });
    expect(attached).to.include({ addonId: addon.id, entityId: id, addonStatus: 'active' });
    const held = await sdk.subscriptions.getSubscriptionAddonAssociations(id!);
    expect(held.map((one) => [one.id, one.addon?.name])).to.deep.equal([[attached.id, 'More']]);
    const removed = await sdk.subscriptions.removeSubscriptionAddon({
      addonAssociationId: attached.id!,
      reason: 'enough',
    });
    expect(removed.message).to.contain('is held until 2026-04-15');
  });

  it('subscriptions: a refusal is the typed error', async () => {
    const refused = await subscribe({ trialStart: '2026-03-15T12:00:00Z' }).then(
      () => null,
      (error) => error,
    );
    expect(refused?.statusCode).to.equal(400);
    expect(refused?.error?.message).to.match(/trial_start/);
  });

  it('invoices: create, get, update, finalize, query, payment, void, summary', async () => {
    const created = await sdk.invoices.createInvoice({
      customerId: payerId,
      currency: 'usd',
      amountDue: '12.5',
      subtotal: '12.5',
      total: '12.5',
      lineItems: [{ displayName: 'Set-up', amount: '12.5', quantity: '1' }],
      idempotencyKey: 'order-1',
    });
    expect(created).to.include({ invoiceStatus: 'DRAFT', amountRemaining: '12.5' });
    const updated = await sdk.invoices.updateInvoice(created.id!, {
      dueDate: '2026-04-01T00:00:00Z',
      metadata: { a: 'b' },
    });
    expect(updated.dueDate).to.equal('2026-04-01T00:00:00Z');
    expect((await sdk.invoices.finalizeInvoice(created.id!)).message).to.be.a('string');
    const final = await sdk.invoices.getInvoice(created.id!);
    expect(final.invoiceNumber).to.match(/^INV-202603-\d{5}$/);
    expect(await sdk.invoices.getInvoicePdf(created.id!, true)).to.be.instanceOf(ReadableStream);
    const found = await sdk.invoices.queryInvoice({ invoiceIds: [created.id!], amountDueGt: 12, skipLineItems: false });
    expect(found.items?.[0]?.lineItems).to.have.length(1);
    const paid = await sdk.invoices.updateInvoicePaymentStatus(created.id!, { paymentStatus: 'SUCCEEDED' });
    expect(paid).to.include({ paymentStatus: 'SUCCEEDED', amountRemaining: '0' });
    const other = await sdk.invoices.createInvoice({
      customerId: payerId,
      currency: 'usd',
      amountDue: '1',
      subtotal: '1',
      total: '1',
    });
    expect((await sdk.invoices.voidInvoice(other.id!)).message).to.be.a('string');
    const summary = await sdk.invoices.getCustomerInvoiceSummary(payerId);
    expect(summary.summaries?.[0]?.currency).to.equal('usd');
  });

  it('credit notes: create, process, get, void', async () => {
    const invoice = await sdk.invoices.createInvoice({
      customerId: payerId,
      currency: 'usd',
      amountDue: '20',
      subtotal: '20',
      total: '20',
      invoiceStatus: 'FINALIZED',
    });
    const draft = await sdk.creditNotes.createCreditNote({
      invoiceId: invoice.id!,
      reason: 'DUPLICATE',
      lineItems: [{ invoiceLineItemId: invoice.lineItems![0]!.id!, amount: '5' }],
      processCreditNote: false,
    });
    expect(draft).to.include({ creditNoteStatus: 'DRAFT', totalAmount: '5' });
    const done = await sdk.creditNotes.processCreditNote(draft.id!);
    expect(done).to.include({ id: draft.id, creditNoteStatus: 'FINALIZED' });
    expect((await sdk.creditNotes.getCreditNote(draft.id!)).invoice?.amountDue).to.equal('15');
    expect((await sdk.creditNotes.voidCreditNote(draft.id!)).creditNoteStatus).to.equal('VOIDED');
  });

  it('invoices: recalculate, comms, breakdown', async () => {
    const { latestInvoice } = await subscribe({ customerId: payerId });
    await sdk.invoices.voidInvoice(latestInvoice!.id!);
    const again = await sdk.invoices.recalculateInvoice(latestInvoice!.id!, true);
    expect(again).to.include({ invoiceStatus: 'FINALIZED', total: '40' });
    expect((await sdk.invoices.triggerInvoiceCommsWebhook(again.id!)).message).to.be.a('string');
    const whole = await sdk.invoices.getInvoice(again.id!, true, ['source', 'feature_id']);
    expect(whole.lineItems?.[0]?.usageBreakdown).to.equal(undefined);
  });

  it('invoices: preview', async () => {
    const { id } = await subscribe();
    const preview = await sdk.invoices.getInvoicePreview({ subscriptionId: id! });
    expect(preview).to.include({ subtotal: '40', subscriptionId: id });
    expect(preview.lineItems).not.to.have.length(0);
  });

  it('payments: create, get, list, update, process, delete, and an attempt of an invoice', async () => {
    const invoice = await sdk.invoices.createInvoice({
      customerId: payerId,
      currency: 'usd',
      amountDue: '30',
      subtotal: '30',
      total: '30',
      invoiceStatus: 'FINALIZED',
    });
    const said = { destinationType: 'INVOICE' as const, destinationId: invoice.id!, currency: 'USD' };
    const made = await sdk.payments.createPayment({ ...said, paymentMethodType: 'OFFLINE', amount: '10' });
    expect(made).to.include({ paymentStatus: 'SUCCEEDED', invoiceNumber: invoice.invoiceNumber, currency: 'usd' });
    const waiting = { ...said, paymentMethodType: 'OFFLINE' as const, amount: '20', processPayment: false };
    const { id } = await sdk.payments.createPayment({ ...waiting, metadata: { order: '7' } });
    expect(await sdk.payments.updatePayment(id!, { metadata: { order: '8' } })).to.deep.include({
      metadata: { order: '8' },
    });
    expect((await sdk.payments.processPayment(id!)).paymentStatus).to.equal('SUCCEEDED');
    expect((await sdk.payments.getPayment(id!)).attempts).to.deep.equal([]);
    const listed = await sdk.payments.listPayments({ paymentIds: [id!, made.id!], destinationType: 'INVOICE' });
    expect(listed.pagination?.total).to.equal(2);
    expect((await sdk.invoices.getInvoice(invoice.id!)).paymentStatus).to.equal('SUCCEEDED');

    const settings = { headers: { 'x-api-key': api.key, 'content-type': 'application/json' }, method: 'PUT' };
    const body = JSON.stringify({ value: { default_gateway: 'sandbox' } });
    await fetch(`${api.url}/v1/settings/payment_config`, { ...settings, body });
    const other = await sdk.invoices.createInvoice({
      customerId: payerId,
      currency: 'usd',
      amountDue: '7',
      subtotal: '7',
      total: '7',
      invoiceStatus: 'FINALIZED',
    });
    const link = { ...said, destinationId: other.id!, paymentMethodType: 'PAYMENT_LINK' as const, amount: '3' };
    expect((await sdk.payments.createPayment(link)).paymentUrl).to.be.a('string');
    const charge = { ...said, destinationId: other.id!, paymentMethodType: 'CARD' as const, amount: '3' };
    const card = { paymentMethodId: 'pm_sandbox_card', saveCardAndMakeDefault: true };
    const declined = await sdk.payments.createPayment({ ...charge, paymentMethodId: 'pm_sandbox_declined' });
    expect(declined.attempts?.[0]?.errorMessage).to.match(/^card_declined/);
    expect((await sdk.payments.deletePayment(declined.id!)).message).to.be.a('string');
    expect((await sdk.payments.createPayment({ ...charge, ...card })).paymentStatus).to.equal('SUCCEEDED');
    expect((await sdk.invoices.attemptInvoicePayment(other.id!)).message).to.match(/SUCCEEDED$/);
  });

  it('invoices: one with coupons, taxes, a payment and a credit note is read with all of them', async () => {
    const coupon = await sdk.coupons.createCoupon({
      name: 'Tenth',
      type: 'percentage',
      percentageOff: '10',
      cadence: 'forever',
    });
    const rate = await sdk.taxRates.createTaxRate({ name: 'VAT', code: 'vat', percentageValue: '20' });
    const { id: payer } = await sdk.customers.createCustomer({ externalId: 'taxed' });
    await sdk.taxAssociations.createTaxAssociation({ entityType: 'customer', entityId: payer!, taxRateCode: 'vat' });
    const invoice = await sdk.invoices.createInvoice({
      customerId: payer!,
      currency: 'usd',
      subtotal: '100',
      total: '100',
      amountDue: '100',
      invoiceStatus: 'FINALIZED',
      lineItems: [
        { displayName: 'Setup', amount: '70', quantity: '1' },
        { displayName: 'Training', amount: '30', quantity: '2' },
      ],
      invoiceCoupons: [{ couponId: coupon.id! }],
    });
    await sdk.payments.createPayment({
      destinationType: 'INVOICE',
      destinationId: invoice.id!,
      currency: 'usd',
      paymentMethodType: 'OFFLINE',
      amount: '48',
    });
    const note = await sdk.creditNotes.createCreditNote({
      invoiceId: invoice.id!,
      reason: 'DUPLICATE',
      lineItems: [{ invoiceLineItemId: invoice.lineItems![1]!.id!, amount: '10' }],
    });
    const read = await sdk.invoices.getInvoice(invoice.id!);
    expect(read).to.include({
      subtotal: '100',
      totalDiscount: '10',
      totalTax: '18',
      total: '108',
      amountPaid: '48',
      adjustmentAmount: note.totalAmount,
      paymentStatus: 'PENDING',
    });
    const left = 108 - Number(note.totalAmount);
    expect([read.amountDue, read.amountRemaining]).to.deep.equal([String(left), String(left - 48)]);
    const discounts = read.lineItems?.map((line) => [line.invoiceLevelDiscount, line.lineItemDiscount]);
    expect(discounts).to.deep.equal([
      ['7', '0'],
      ['3', '0'],
    ]);
    expect(read.couponApplications?.map((one) => [one.couponId, one.discountedAmount])).to.deep.equal([
      [coupon.id, '10'],
    ]);
    expect(read.taxes?.map((one) => [one.taxRateId, one.taxableAmount, one.taxAmount])).to.deep.equal([
      [rate.id, '90', '18'],
    ]);
    const { items } = await sdk.invoices.queryInvoice({ customerId: payer! });
    expect(items?.[0]).to.include({ id: invoice.id, totalTax: '18', totalDiscount: '10', amountPaid: '48' });
    // Of a subscription, as it was opened.
    const { latestInvoice } = await subscribe({ customerId: payer!, coupons: [coupon.id!] });
    const opening = await sdk.invoices.getInvoice(latestInvoice!.id!);
    expect([opening.subtotal, opening.totalDiscount, opening.totalTax, opening.total]).to.deep.equal([
      '40',
      '4',
      '7.2',
      '43.2',
    ]);
    expect([opening.couponApplications?.length, opening.taxes?.length]).to.deep.equal([1, 1]);
  });
});
