/** docs/integrations/stripe.md, "Payments": the official library against our stateful fake. */
import { expect } from 'chai';
import type { ProviderAccount } from '../../../integrations/account.ts';
import type { AccountCharge, AccountPayments } from '../../../integrations/account-payments.ts';
import { ProviderError } from '../../../integrations/provider-error.ts';
import { stripe as provider } from '../../../integrations/stripe/provider.ts';
import { catchFailure } from '../../support/providers/failure.ts';
import { StripeFake } from '../../support/providers/stripe-fake.ts';
import {
  actOnIntent,
  addMethod,
  completeSession,
  completeSetup,
  detachMethod,
  endRefund,
  type IntentRecord,
  listRefunds,
} from '../../support/providers/stripe-fake-payments.ts';

const DAY_MS = 86_400_000;
describe('integrations/stripe/payments', () => {
  let fake: StripeFake;
  let account: ProviderAccount;
  let payments: AccountPayments;
  let customer: string;
  let keys = 0;

  const build = (change: Partial<AccountCharge> = {}): AccountCharge => ({
    ...{
      key: `pay_${++keys}/1`,
      requested_at: new Date(),
      key_age_seconds: 0,
      amount: '12.5',
      currency: 'usd',
      payment_id: `pay_${keys}`,
    },
    ...{ invoice_id: 'inv_1', invoice_number: 'INV-1', provider_customer_id: customer, provider_invoice_id: null },
    ...{ gateway_payment_id: null, is_page: false, success_url: null, provider_payment_method_id: 'pm_card_visa' },
    ...change,
  });
  const buildPage = (change: Partial<AccountCharge> = {}) => ({
    ...build({ is_page: true, success_url: 'https://shop.example/paid', ...change }),
    cancel_url: null,
    saves_payment_method: false,
  });
  const intentsOf = (key: string) => {
    const intents = fake.book.list<IntentRecord>('payment_intent');
    return intents.filter(({ metadata }) => metadata['farthing_key'] === key);
  };

  before(async () => {
    fake = await new StripeFake().start();
    account = await provider.account!.open({ secret_key: 'sk_test_fake' }, { address: fake.url });
    payments = account.payments!;
    customer = fake.book.createCustomer({ name: 'Acme' }).id;
  });
  afterEach(() => fake.clearDisturbances());
  after(() => fake.stop());

  describe('a charge', () => {
    it('is made once with one key', async () => {
      const charge = build();
      const first = await payments.charge!(charge);
      expect(first).to.deep.equal({ outcome: 'succeeded', gateway_payment_id: intentsOf(charge.key)[0]!.id });
      expect(await payments.charge!(charge)).to.deep.equal(first);
      expect(intentsOf(charge.key).map(({ amount, currency }) => [amount, currency])).to.deep.equal([[1250, 'usd']]);
    });

    for (const disturbance of ['lost_answer', 'lost_fault', 'closed'] as const)
      it(`is made once after ${disturbance}, also when Stripe has forgotten the key`, async () => {
        const charge = build({ requested_at: new Date(Date.now() - DAY_MS), key_age_seconds: 86_400 });
        fake.disturb(/POST payment_intents$/, disturbance);
        await payments.charge!(charge).catch((error) => expect(error).to.be.instanceOf(ProviderError));
        fake.forgetKeys();
        expect((await payments.findOutcome(charge))?.outcome).to.equal('succeeded');
        expect((await payments.charge!(charge)).outcome).to.equal('succeeded');
        expect(intentsOf(charge.key)).to.have.length(1);
      });

    it('that is in flight is unknown', async () => {
      const charge = build();
      const held = fake.hold(/POST payment_intents$/);
      const first = payments.charge!(charge);
      await held.arrived;
      const error = await catchFailure(() => payments.charge!(charge));
      expect([error.error_class, error.provider_code]).to.deep.equal(['wait', 'idempotency_key_in_use']);
      held.release();
      expect((await first).outcome).to.equal('succeeded');
    });

    it('that was never requested has no outcome', async () => {
      expect(await payments.findOutcome(build())).to.equal(null);
    });

    for (const [method, error] of [
      ['pm_card_chargeCustomerFail', 'card_declined, generic_decline: Your card was declined.'],
      ['pm_card_declinedWithoutCode', 'card_error: Your bank said no.'],
    ] as const)
      it(`of ${method} fails with the reason`, async () => {
        const charge = build({ provider_payment_method_id: method });
        const outcome = await payments.charge!(charge);
        const gateway_payment_id = intentsOf(charge.key)[0]!.id;
        expect(outcome).to.deep.equal({ outcome: 'failed', gateway_payment_id, error });
        expect(await payments.findOutcome(charge)).to.deep.equal(outcome);
      });

    it('below the smallest amount is refused with the reason', async () => {
      const error = await catchFailure(() => payments.charge!(build({ amount: '0.4' })));
      expect([error.error_class, error.provider_code]).to.deep.equal(['person', 'amount_too_small']);
      expect(error.message).to.match(/at least \$0\.50/);
    });

    it('that the customer must confirm has a page, and ends as the customer acts', async () => {
      for (const end of ['succeeded', 'failed'] as const) {
        const charge = build({ provider_payment_method_id: 'pm_card_authenticationRequired' });
        const outcome = await payments.charge!(charge);
        const [intent] = intentsOf(charge.key);
        expect(outcome).to.include({ outcome: 'processing', gateway_payment_id: intent!.id });
        expect(outcome).to.have.property('url', `https://hooks.stripe.example/redirect/${intent!.id}`);
        actOnIntent(fake.book, intent!.id, end);
        expect((await payments.findOutcome(charge))?.outcome).to.equal(end);
        expect(intentsOf(charge.key)).to.have.length(1);
      }
    });

    it('that was interrupted before the customer got a page continues with it', async () => {
      const charge = build({ provider_payment_method_id: 'pm_card_authenticationRequired' });
      fake.disturb(/confirm$/, 'lost_request');
      expect((await catchFailure(() => payments.charge!(charge))).error_class).to.equal('wait');
      expect(await payments.findOutcome(charge)).to.equal(null);
      expect((await payments.charge!(charge)).outcome).to.equal('processing');
      expect(intentsOf(charge.key)).to.have.length(1);
    });

    it('that nobody confirms within a day is cancelled', async () => {
      const charge = build({ provider_payment_method_id: 'pm_card_authenticationRequired' });
      await payments.charge!(charge);
      const [intent] = intentsOf(charge.key);
      intent!.created -= 2 * 86_400;
      const known = { ...charge, gateway_payment_id: intent!.id };
      expect((await payments.findOutcome(known))?.outcome).to.equal('failed');
      expect(intent!.status).to.equal('canceled');
    });

    it('of a bank account is processing until the bank decides', async () => {
      const charge = build({ provider_payment_method_id: 'pm_usBankAccount_success' });
      expect(await payments.charge!(charge)).to.include({ outcome: 'processing', url: null });
      actOnIntent(fake.book, intentsOf(charge.key)[0]!.id, 'failed');
      expect(await payments.findOutcome(charge)).to.include({ outcome: 'failed' });
    });

    it('of which Stripe received another amount has it', async () => {
      const charge = build();
      await payments.charge!(charge);
      intentsOf(charge.key)[0]!.amount_received = 1_000;
      expect(await payments.findOutcome(charge)).to.include({ outcome: 'succeeded', received_amount: '10' });
    });

    it('of which Stripe received another currency waits for a person', async () => {
      const charge = build();
      await payments.charge!(charge);
      intentsOf(charge.key)[0]!.currency = 'eur';
      const error = await catchFailure(() => payments.findOutcome(charge));
      expect([error.error_class, error.message]).to.deep.equal([
        'wait',
        `12.5 usd was requested, but Stripe received 12.5 eur (${intentsOf(charge.key)[0]!.id})`,
      ]);
    });

    it('pays the pushed invoice, and is no failure if that is paid already', async () => {
      const invoice = fake.book.createInvoice({ customer, currency: 'usd' });
      fake.book.addLines(invoice.id, [{ amount: 1_250 }]);
      fake.book.finalizeInvoice(invoice.id);
      const attached = () => fake.book.listPayments(invoice.id).filter(({ status }) => status === 'paid');
      for (const charge of [build({ provider_invoice_id: invoice.id }), build({ provider_invoice_id: invoice.id })]) {
        expect((await payments.charge!(charge)).outcome).to.equal('succeeded');
        expect([invoice.status, invoice.amount_paid, attached().length]).to.deep.equal(['paid', 1_250, 1]);
      }
    });
  });

  it('a charge that is greater than the rest of the pushed invoice pays the rest', async () => {
    const invoice = fake.book.createInvoice({ customer, currency: 'usd' });
    fake.book.addLines(invoice.id, [{ amount: 1_250 }]);
    fake.book.finalizeInvoice(invoice.id);
    fake.book.lowerRemaining(invoice, 250);
    const charge = build({ provider_invoice_id: invoice.id });
    fake.disturb(/POST invoices.*attach_payment$/, 'lost_answer');
    await catchFailure(() => payments.charge!(charge));
    expect((await payments.charge!(charge)).outcome).to.equal('succeeded');
    await payments.findOutcome(charge);
    const paid = fake.book.listPayments(invoice.id).filter(({ status }) => status === 'paid');
    expect([invoice.status, paid.map(({ amount_paid }) => amount_paid)]).to.deep.equal(['paid', [1_000]]);
    // The push of the invoice that follows attaches its charges.
    const [{ id: gateway_payment_id }] = intentsOf(charge.key) as [IntentRecord];
    await account.attachPayment!({
      provider_invoice_id: invoice.id,
      gateway_payment_id,
      payment_id: charge.payment_id,
    });
  });

  describe('a page', () => {
    it('is opened once, paid, and closed by the payment', async () => {
      const page = buildPage();
      fake.disturb(/POST checkout/, 'lost_answer');
      expect((await catchFailure(() => payments.openPage!(page))).error_class).to.equal('wait');
      const opened = await payments.openPage!(page);
      const sessions = fake.book
        .list('checkout.session')
        .filter(({ metadata }) => metadata['farthing_key'] === page.key);
      expect(sessions).to.have.length(1);
      const [{ id, url }] = sessions as [(typeof sessions)[0]];
      expect(opened).to.deep.equal({ outcome: 'processing', gateway_payment_id: id, url, check_at: null });
      fake.forgetKeys();
      expect(await payments.findOutcome(page)).to.deep.equal(opened);
      const intent = completeSession(fake.book, id, 'pm_card_visa')!;
      await payments.cancel(id);
      for (const gateway_payment_id of [null, id, intent.id])
        expect(await payments.findOutcome({ ...page, gateway_payment_id })).to.deep.equal({
          outcome: 'succeeded',
          gateway_payment_id: intent.id,
        });
      expect(intent.metadata).to.include({ farthing_payment_id: page.payment_id, farthing_key: page.key });
    });

    for (const [method, address] of [
      ['pm_oxxo', 'https://payments.stripe.example/voucher/1'],
      ['pm_wechat_pay', null],
    ] as const)
      it(`that is completed by ${method} is processing until the customer has paid`, async () => {
        const page = buildPage();
        await payments.openPage!(page);
        const [session] = fake.book
          .list('checkout.session')
          .filter(({ metadata }) => metadata['farthing_key'] === page.key);
        const { id } = completeSession(fake.book, session!.id, method)!;
        const waiting = { outcome: 'processing', gateway_payment_id: id, url: address, check_at: null };
        for (const gateway_payment_id of [session!.id, id])
          expect(await payments.findOutcome({ ...page, gateway_payment_id })).to.deep.equal(waiting);
        actOnIntent(fake.book, id, 'succeeded');
        expect((await payments.findOutcome({ ...page, gateway_payment_id: id }))!.outcome).to.equal('succeeded');
      });

    it('that is cancelled can no longer be paid', async () => {
      const page = buildPage();
      const { gateway_payment_id } = (await payments.openPage!(page)) as { gateway_payment_id: string };
      await payments.cancel(gateway_payment_id);
      expect(await payments.findOutcome(page)).to.include({ outcome: 'failed', gateway_payment_id });
      expect(() => completeSession(fake.book, gateway_payment_id, 'pm_card_visa')).to.throw(/is expired/);
    });

    it('names the payment method that it saves', async () => {
      const page = { ...buildPage(), saves_payment_method: true };
      const { gateway_payment_id } = (await payments.openPage!(page)) as { gateway_payment_id: string };
      const { payment_method } = completeSession(fake.book, gateway_payment_id, 'pm_card_visa')!;
      const outcome = await payments.findOutcome(page);
      expect(outcome).to.deep.include({ saved_payment_method: { id: payment_method, type: 'CARD' } });
    });
  });

  describe('a refund', () => {
    const charged = async (method = 'pm_card_visa') => {
      const charge = build({ provider_payment_method_id: method });
      await payments.charge!(charge);
      const [intent] = intentsOf(charge.key);
      if (intent!.status === 'processing') actOnIntent(fake.book, intent!.id, 'succeeded');
      return intent!.id;
    };
    const buildRefund = (gateway_payment_id: string, amount = '5') => {
      const key = `refund_${++keys}`;
      return {
        key,
        requested_at: new Date(),
        key_age_seconds: 0,
        gateway_payment_id,
        amount,
        currency: 'usd',
        refund_id: key,
      };
    };

    it('is made once with one key, also when Stripe has forgotten it', async () => {
      const id = await charged();
      const refund = { ...buildRefund(id), requested_at: new Date(Date.now() - DAY_MS), key_age_seconds: 86_400 };
      fake.disturb(/POST refunds/, 'lost_answer');
      await catchFailure(() => payments.refund!(refund));
      fake.forgetKeys();
      const [made] = listRefunds(fake.book, id);
      const outcome = { outcome: 'succeeded', gateway_refund_id: made!.id };
      expect(await payments.refund!(refund)).to.deep.equal(outcome);
      expect(listRefunds(fake.book, id).map(({ amount }) => amount)).to.deep.equal([500]);
    });

    it('of a payment that Stripe reported as a charge is made for the charge', async () => {
      const id = `ch_${(await charged()).slice(3)}`;
      const refund = buildRefund(id);
      const { outcome } = await payments.refund!(refund);
      await payments.refund!(refund);
      const made = fake.book.list('refund').filter((one) => one['charge'] === id);
      expect([outcome, made.length]).to.deep.equal(['succeeded', 1]);
    });

    it('of more than was paid is refused', async () => {
      const error = await catchFailure(async () => payments.refund!(buildRefund(await charged(), '13')));
      expect([error.error_class, /greater than/.test(error.message)]).to.deep.equal(['person', true]);
    });

    it('that was made and has failed since is failed, although the repeated request returns its first answer', async () => {
      const id = await charged();
      const refund = buildRefund(id);
      expect((await payments.refund!(refund)).outcome).to.equal('succeeded');
      endRefund(fake.book, listRefunds(fake.book, id)[0]!.id, 'failed');
      expect((await payments.refund!(refund)).outcome).to.equal('failed');
      expect(listRefunds(fake.book, id)).to.have.length(1);
    });

    for (const end of ['succeeded', 'failed'] as const)
      it(`that is pending ends ${end} under its key`, async () => {
        const id = await charged('pm_usBankAccount_success');
        const refund = buildRefund(id);
        expect((await payments.refund!(refund)).outcome).to.equal('pending');
        endRefund(fake.book, listRefunds(fake.book, id)[0]!.id, end);
        expect((await payments.refund!(refund)).outcome).to.equal(end);
        expect(listRefunds(fake.book, id)).to.have.length(1);
      });
  });

  describe('a setup', () => {
    const buildSetup = (change: { success_url?: string; sets_default?: boolean } = {}) => ({
      ...{ key: `setup_${++keys}`, customer_id: 'cust_1', provider_customer_id: customer, success_url: null },
      ...{ cancel_url: null, sets_default: false, ...change },
    });

    it('has a secret, or a page if there is one to return to; a repeated request starts nothing new', async () => {
      const setup = buildSetup();
      const started = await payments.startCardSetup!(setup);
      expect([started.url, /_secret_/.test(started.client_secret!)]).to.deep.equal([null, true]);
      expect(await payments.startCardSetup!(setup)).to.deep.equal(started);
      const page = await payments.startCardSetup!(buildSetup({ success_url: 'https://shop.example/cards' }));
      expect([page.client_secret, page.url]).to.deep.equal([
        null,
        `https://checkout.stripe.example/c/${page.provider_setup_id}`,
      ]);
    });

    it('is read as the payment method that it saved', async () => {
      const { provider_setup_id } = await payments.startCardSetup!(buildSetup({ sets_default: true }));
      expect(await payments.readPaymentMethod!(provider_setup_id)).to.equal(null);
      const id = completeSetup(fake.book, provider_setup_id, 'pm_card_visa');
      const read = { provider_payment_method_id: id, provider_customer_id: customer, payment_method_type: 'CARD' };
      expect(await payments.readPaymentMethod!(provider_setup_id)).to.deep.equal({ ...read, sets_default: true });
      expect(await payments.readPaymentMethod!(id)).to.deep.equal({ ...read, sets_default: false });
      detachMethod(fake.book, id);
      expect((await payments.readPaymentMethod!(id))?.provider_customer_id).to.equal(null);
    });

    it('by a page is read by the page, and a payment page saves nothing', async () => {
      const terms = buildSetup({ success_url: 'https://shop.example/cards' });
      const { provider_setup_id } = await payments.startCardSetup!(terms);
      completeSession(fake.book, provider_setup_id, 'pm_usBankAccount_success');
      expect(await payments.readPaymentMethod!(provider_setup_id)).to.include({ payment_method_type: 'ACH' });
      const { gateway_payment_id } = (await payments.openPage!(buildPage())) as { gateway_payment_id: string };
      expect(await payments.readPaymentMethod!(gateway_payment_id)).to.equal(null);
      expect(await payments.readPaymentMethod!('pm_unknown')).to.equal(null);
    });
  });

  describe('the saved payment methods', () => {
    it('are those of one customer, on several pages, with its default', async () => {
      const [own, other] = [1, 2].map(() => fake.book.createCustomer({ name: 'Acme' }));
      addMethod(fake.book, 'pm_card_visa', other!.id);
      const ids = Array.from({ length: 101 }, () => addMethod(fake.book, 'pm_card_visa', own!.id).id);
      const bank = addMethod(fake.book, 'pm_usBankAccount_success', own!.id).id;
      own!['invoice_settings'] = { default_payment_method: ids[0] };
      const listed = await payments.listPaymentMethods!(own!.id);
      expect(listed.map((one) => one.provider_payment_method_id)).to.have.members([bank, ...ids]);
      expect(listed.filter(({ is_default }) => is_default)).to.deep.equal([
        {
          ...{ provider_payment_method_id: ids[0], payment_method_type: 'CARD', is_default: true },
          card: { brand: 'visa', last4: '4242', exp_month: 12, exp_year: 2034 },
        },
      ]);
      expect(listed.find(({ card }) => card === null)).to.include({ payment_method_type: 'ACH' });
    });

    it('need a person for an id that is not one of a customer', async () => {
      for (const id of ['cus_unknown', '..', `${customer}/..`])
        expect(await catchFailure(() => payments.listPaymentMethods!(id)), id).to.include({ error_class: 'person' });
    });
  });
});
