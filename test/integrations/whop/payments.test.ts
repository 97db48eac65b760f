/** Charges, pages, refunds and setups at Whop: no payment or refund is made twice, whichever request or answer is lost. */
import { expect } from 'chai';
import type {
  AccountCharge,
  AccountPaymentPage,
  AccountPayments,
  AccountRefund,
  CardSetup,
} from '../../../integrations/account-payments.ts';
import { whop } from '../../../integrations/whop/provider.ts';
import { catchFailure } from '../../support/providers/failure.ts';
import { WHOP_DISTURBANCES, WhopFake } from '../../support/providers/whop-fake.ts';

const IDS = { farthing_payment_id: 'pay_1', farthing_invoice_id: 'inv_1', farthing_invoice_number: 'INV-0001' };

describe('integrations/whop/payments', () => {
  let fake: WhopFake;
  let payments: Required<AccountPayments>;

  beforeEach(async () => {
    fake = await new WhopFake().start();
    const secrets = { api_key: 'key_fake', company_id: 'biz_fake' };
    const account = await whop.account!.open(secrets, { address: fake.url });
    payments = account.payments as typeof payments;
  });
  afterEach(() => fake.stop());

  const requested = (key: string) => ({
    ...{ key, requested_at: new Date(), key_age_seconds: 0, amount: '119.10', currency: 'usd' },
    ...{ payment_id: 'pay_1', invoice_id: 'inv_1', invoice_number: 'INV-0001', provider_customer_id: 'cust_1' },
    ...{ provider_invoice_id: null, gateway_payment_id: null, is_page: false, success_url: null },
  });
  const made = () => [...fake.book.payments.values()];

  describe('charge', () => {
    const charge = (method: string, more: Partial<AccountCharge> = {}): AccountCharge => ({
      ...{ ...requested('tenant:env:payment:1'), provider_payment_method_id: method },
      ...more,
    });

    it('pays with the payment method of a member', async () => {
      const outcome = await payments.charge(charge(fake.book.addMethod('pays')));
      expect(outcome).to.deep.equal({ outcome: 'succeeded', gateway_payment_id: made()[0]!.id, refunds: [] });
      expect(made()[0]).to.deep.include({
        ...{ total: 119.1, currency: 'usd' },
        metadata: { farthing_key: 'tenant:env:payment:1', ...IDS },
      });
    });

    it('answers a decline with its reason, and does not try again with the same key', async () => {
      const declined = charge(fake.book.addMethod('declines'));
      for (let times = 0; times < 2; times++)
        expect(await payments.charge(declined)).to.include({ outcome: 'failed', error: 'Your card was declined' });
      expect(made()).to.have.length(1);
    });

    it('waits for the bank, and reads the result by key and by id', async () => {
      const waiting = charge(fake.book.addMethod('waits'));
      const { gateway_payment_id: id } = (await payments.charge(waiting)) as { gateway_payment_id: string };
      expect(await payments.findOutcome(waiting)).to.include({ outcome: 'processing', gateway_payment_id: id });
      expect((await catchFailure(() => payments.cancel(id))).message).to.match(/is in progress/);
      fake.book.changePayment(id, { substatus: 'succeeded', total: 100 });
      const paid = { outcome: 'succeeded', gateway_payment_id: id, received_amount: '100' };
      for (const gateway_payment_id of [null, id])
        expect(await payments.findOutcome({ ...waiting, gateway_payment_id })).to.deep.include(paid);
      await payments.cancel(id);
      expect(made()[0]!.substatus).to.equal('succeeded');
    });

    it('is voided if it has not been settled', async () => {
      const { gateway_payment_id: id } = (await payments.charge(charge(fake.book.addMethod('waits')))) as {
        gateway_payment_id: string;
      };
      fake.book.changePayment(id, { voidable: true });
      for (let times = 0; times < 2; times++) await payments.cancel(id);
      expect(made()[0]!.substatus).to.equal('canceled');
    });

    it('leaves another currency to a person', async () => {
      const one = charge(fake.book.addMethod('pays'));
      await payments.charge(one);
      fake.book.changePayment(made()[0]!.id, { currency: 'eur' });
      const failure = await catchFailure(() => payments.findOutcome(one));
      expect(failure).to.include({ error_class: 'wait', is_of_record: true });
      expect(failure.message).to.match(/^119\.10 usd was requested, but Whop received 119\.1 eur/);
    });

    for (const at of [/^GET payments$/, /^POST payments$/])
      for (const disturbance of WHOP_DISTURBANCES)
        it(`charges once after ${disturbance} at ${at.source}`, async () => {
          const once = charge(fake.book.addMethod('pays'));
          fake.disturb(at, disturbance);
          expect(await catchFailure(() => payments.charge(once))).to.include({ error_class: 'wait' });
          expect(await payments.charge(once)).to.include({ outcome: 'succeeded' });
          expect(made()).to.have.length(1);
        });

    it('needs a person for what is no payment method', async () => {
      const [member] = fake.book.addMethod('pays').split(':');
      for (const method of ['payt_1', 'mber_1:payt_1', `${member}:payt_other`, `${member}:a/b`, 'a:b:c'])
        expect(await catchFailure(() => payments.charge(charge(method)))).to.include({ error_class: 'person' });
      expect(made()).to.deep.equal([]);
    });

    it('is null if there was none, and missing if it is gone', async () => {
      const none = charge('mber_1:payt_1');
      expect(await payments.findOutcome(none)).to.equal(null);
      const gone = { ...none, gateway_payment_id: 'pay_gone' };
      expect(await catchFailure(() => payments.findOutcome(gone))).to.include({ is_missing: true });
    });
  });

  describe('openPage', () => {
    const page = (more: Partial<AccountPaymentPage> = {}): AccountPaymentPage => ({
      ...{ ...requested('key:page'), is_page: true, cancel_url: null, saves_payment_method: false },
      success_url: 'https://seller.example/paid',
      ...more,
    });
    const checkouts = () => [...fake.book.checkouts.values()];

    it('opens a page that is paid once, and is then known by its payment', async () => {
      const opened = (await payments.openPage(page())) as { gateway_payment_id: string; url: string };
      const [there] = checkouts();
      const { id, purchase_url } = there!;
      expect(opened).to.include({ outcome: 'processing', gateway_payment_id: id, url: purchase_url });
      expect(there).to.include({ redirect_url: 'https://seller.example/paid' });
      expect(JSON.parse(fake.last_body).plan).to.include({ stock: 1, unlimited_stock: false, initial_price: 119.1 });
      fake.book.payCheckout(id, 'failed');
      const asked = page({ gateway_payment_id: id });
      expect(await payments.findOutcome(asked)).to.include({ outcome: 'processing', gateway_payment_id: id });
      const paid = fake.book.payCheckout(id);
      const outcome = { outcome: 'succeeded', gateway_payment_id: paid.id };
      for (const gateway_payment_id of [null, id, paid.id])
        expect(await payments.findOutcome(page({ gateway_payment_id }))).to.deep.include(outcome);
      await payments.cancel(id);
      expect(await payments.findOutcome(asked)).to.deep.include(outcome);
    });

    it('is closed once, and has failed then', async () => {
      await payments.openPage(page());
      const { id } = checkouts()[0]!;
      for (let times = 0; times < 2; times++) await payments.cancel(id);
      expect(await payments.findOutcome(page({ gateway_payment_id: id }))).to.include({ outcome: 'failed' });
      expect(checkouts()).to.deep.equal([]);
    });

    for (const is_forgotten of [false, true])
      for (const disturbance of WHOP_DISTURBANCES)
        it(`opens one page after ${disturbance}, ${is_forgotten ? 'also if the key is forgotten' : 'with the key'}`, async () => {
          fake.disturb(/^POST checkout_configurations$/, disturbance);
          expect(await catchFailure(() => payments.openPage(page()))).to.include({ error_class: 'wait' });
          if (is_forgotten) fake.forgetKeys();
          expect(await payments.openPage(page())).to.include({ outcome: 'processing' });
          expect(checkouts()).to.have.length(1);
          expect(await payments.findOutcome(page())).to.include({ gateway_payment_id: checkouts()[0]!.id });
        });
  });

  describe('refund', () => {
    const refund = (gateway_payment_id: string, more: Partial<AccountRefund> = {}): AccountRefund => ({
      ...{ key: 'refund:1', refund_id: 'refund:1', requested_at: new Date(), key_age_seconds: 0 },
      ...{ gateway_payment_id, amount: '19.10', currency: 'usd', refunded_before: '0' },
      ...more,
    });
    const pay = async () => {
      const method = { provider_payment_method_id: fake.book.addMethod('pays') };
      await payments.charge({ ...requested('key:paid'), ...method });
      return made().at(-1)!;
    };

    it('refunds a part, and a second part of the same amount', async () => {
      const { id } = await pay();
      const first = await payments.refund(refund(id));
      const second = await payments.refund(refund(id, { key: 'refund:2', refunded_before: '19.1' }));
      const ids = fake.book.payments.get(id)!.refunds.map((one) => one.id);
      expect([second, first]).to.deep.equal(ids.map((one) => ({ outcome: 'succeeded', gateway_refund_id: one })));
    });

    for (const disturbance of WHOP_DISTURBANCES)
      it(`refunds once after ${disturbance}`, async () => {
        const { id } = await pay();
        fake.disturb(/^POST payments\/\w+\/refund$/, disturbance);
        const once = refund(id);
        expect(await catchFailure(() => payments.refund(once))).to.include({ error_class: 'wait' });
        expect(await payments.refund(once)).to.include({ outcome: 'succeeded' });
        expect(fake.book.payments.get(id)!.refunds.map(({ amount }) => amount)).to.deep.equal([19.1]);
      });

    it('is pending until the bank decides, and is not made again if it fails', async () => {
      const { id } = await pay();
      fake.book.refund_status = 'pending';
      const once = refund(id);
      for (let times = 0; times < 2; times++) expect(await payments.refund(once)).to.include({ outcome: 'pending' });
      fake.book.endRefund(id, 'failed');
      expect(await payments.refund(once)).to.deep.equal({ outcome: 'failed', error: 'the refund is failed at Whop' });
      expect(fake.book.payments.get(id)!.refunds).to.have.length(1);
    });

    it('has failed if Whop refuses it', async () => {
      const { id } = await pay();
      const outcome = await payments.refund(refund(id, { amount: '500' }));
      expect(outcome).to.include({ outcome: 'failed' });
    });

    it('finds the payment of a page, and needs a person without one', async () => {
      const opened = { ...requested('key:page'), is_page: true, cancel_url: null, saves_payment_method: false };
      await payments.openPage(opened);
      const [{ id } = { id: '' }] = fake.book.checkouts.values();
      expect((await catchFailure(() => payments.refund(refund(id)))).message).to.match(/nobody has paid/);
      fake.book.payCheckout(id);
      expect(await payments.refund(refund(id))).to.include({ outcome: 'succeeded' });
    });
  });

  describe('setups', () => {
    const setup = (more: Partial<CardSetup> = {}): CardSetup => ({
      ...{ key: 'setup:1', customer_id: 'cust_1', provider_customer_id: 'cust_1', cancel_url: null },
      ...{ success_url: 'https://seller.example/saved', sets_default: true },
      ...more,
    });

    for (const copies of [true, false])
      it(`save a payment method, ${copies ? 'with' : 'without'} metadata of the setup itself`, async () => {
        const started = await payments.startCardSetup(setup());
        expect((await payments.startCardSetup(setup())).provider_setup_id).to.equal(started.provider_setup_id);
        expect(await payments.readPaymentMethod(started.provider_setup_id)).to.equal(null);
        const { id, member, payment_method } = fake.book.completeSetup(started.provider_setup_id, { copies });
        const method = `${(member as { id: string }).id}:${(payment_method as { id: string }).id}`;
        for (const one of [id, started.provider_setup_id])
          expect(await payments.readPaymentMethod(one)).to.deep.equal({
            ...{ provider_payment_method_id: method, provider_customer_id: 'cust_1' },
            ...{ payment_method_type: 'CARD', sets_default: true },
          });
        const charge = { ...requested('key:saved'), provider_payment_method_id: method };
        expect(await payments.charge(charge)).to.include({ outcome: 'succeeded' });
      });

    it('tell a bank debit from a card', async () => {
      const { provider_setup_id } = await payments.startCardSetup(setup());
      const { id } = fake.book.completeSetup(provider_setup_id, { type: 'us_bank_account' });
      expect(await payments.readPaymentMethod(id)).to.include({ payment_method_type: 'ACH' });
    });

    it('of others are none of ours', async () => {
      const other = fake.book.createCheckout({ account_id: 'biz_fake', mode: 'setup' });
      const { id } = fake.book.completeSetup(other.id);
      for (const one of [id, 'sint_unknown', 'ch_unknown', 'mber_1:payt_1'])
        expect(await payments.readPaymentMethod(one)).to.equal(null);
    });

    it('need the address to which the page returns', async () => {
      const failure = await catchFailure(() => payments.startCardSetup(setup({ success_url: null })));
      expect(failure.message).to.match(/send success_url/);
    });
  });
});
