/** Charges, pages and refunds at Razorpay: no payment or refund is made twice, whichever request or answer is lost. */
import { expect } from 'chai';
import fc from 'fast-check';
import type {
  AccountCharge,
  AccountPaymentPage,
  AccountPayments,
  AccountRefund,
} from '../../../integrations/account-payments.ts';
import { razorpay } from '../../../integrations/razorpay/provider.ts';
import { toReference } from '../../../integrations/razorpay/texts.ts';
import { catchFailure } from '../../support/providers/failure.ts';
import { type Disturbance, RazorpayFake } from '../../support/providers/razorpay-fake.ts';
import type {
  LinkRecord,
  OrderRecord,
  PaymentRecord,
  RefundRecord,
} from '../../support/providers/razorpay-fake-book.ts';

const DISTURBANCES: Disturbance[] = [
  'lost_request',
  'lost_answer',
  'fault',
  'lost_fault',
  'rate_limit',
  'html',
  'bad_gateway',
];

describe('integrations/razorpay/payments', () => {
  let fake: RazorpayFake;
  let payments: Required<Omit<AccountPayments, 'startCardSetup'>>;
  let customer_id: string;

  beforeEach(async () => {
    fake = await new RazorpayFake().start();
    const account = await razorpay.account!.open(
      { key_id: 'rzp_test_fake', secret_key: 'secret_fake' },
      { address: fake.url },
    );
    payments = account.payments as typeof payments;
    customer_id = fake.book.createCustomer({ name: 'Acme', email: 'a@acme.example', contact: '+919876543210' }).id;
  });
  afterEach(() => fake.stop());

  const requested = (key: string) => ({
    ...{
      key,
      requested_at: new Date(),
      key_age_seconds: 0,
      amount: '119.10',
      currency: 'inr',
      payment_id: 'pay_1',
      invoice_id: 'inv_1',
    },
    ...{ invoice_number: 'INV-0001', provider_customer_id: customer_id, provider_invoice_id: null },
    ...{ gateway_payment_id: null, is_page: false, success_url: null },
  });
  const made = () => fake.book.list<PaymentRecord>('payment');
  const paid = () => made().filter(({ status }) => status === 'captured');

  describe('charge', () => {
    const chargeOf = (token_id: string, more: Partial<AccountCharge> = {}): AccountCharge => ({
      ...requested('tenant:env:payment:1'),
      provider_payment_method_id: token_id,
      ...more,
    });
    const addToken = (...rest: [behaviour: 'pays' | 'declines' | 'pends', fields?: object]) =>
      fake.book.addToken(customer_id, rest[0], rest[1] as Record<string, unknown>).id;

    it('pays an order of its own and has our ids', async () => {
      const outcome = await payments.charge(chargeOf(addToken('pays')));
      expect(outcome).to.deep.equal({ outcome: 'succeeded', gateway_payment_id: paid()[0]!.id });
      const [order] = fake.book.list<OrderRecord>('order');
      expect(order).to.include({ amount: 11_910, currency: 'INR', status: 'paid' });
      const ids = { farthing_payment_id: 'pay_1', farthing_invoice_id: 'inv_1', farthing_invoice_number: 'INV-0001' };
      expect(order!.notes).to.deep.equal(ids);
      expect(paid()[0]!.notes).to.deep.equal(ids);
    });

    it('makes a new order for each key', async () => {
      const token = addToken('pays');
      for (const key of ['key:1', 'key:2']) await payments.charge(chargeOf(token, { key }));
      expect(paid().map(({ order_id }) => order_id)).to.have.length(2);
      expect(new Set(paid().map(({ order_id }) => order_id))).to.have.length(2);
    });

    it('answers a decline with its reason, and does not try again with the same key', async () => {
      const charge = chargeOf(addToken('declines'));
      const declined = await payments.charge(charge);
      expect(declined).to.deep.equal({
        outcome: 'failed',
        gateway_payment_id: made()[0]!.id,
        error: 'payment_declined: Declined.',
      });
      expect(await payments.charge(charge)).to.deep.equal(declined);
      expect(made()).to.have.length(1);
    });

    it('waits for a bank that decides later, and reads its decision', async () => {
      const charge = chargeOf(addToken('pends'));
      const { id } = (await payments.charge(charge), made()[0]!);
      const processing = { outcome: 'processing', gateway_payment_id: id, url: null, check_at: null };
      expect(await payments.findOutcome(charge)).to.deep.equal(processing);
      fake.book.endPayment(id, 'failed');
      expect(await payments.findOutcome(charge)).to.include({ outcome: 'failed', gateway_payment_id: id });
      // Razorpay calls this a late authorization.
      fake.book.endPayment(id, 'captured');
      expect(await payments.findOutcome(charge)).to.include({ outcome: 'succeeded', gateway_payment_id: id });
    });

    it('stays succeeded after it was refunded', async () => {
      const charge = chargeOf(addToken('pays'));
      await payments.charge(charge);
      const refund = fake.book.createRefund(paid()[0]!.id, {});
      expect(await payments.findOutcome(charge)).to.include({ outcome: 'succeeded', refunded_amount: '119.1' });
      fake.book.endRefund(refund.id, 'failed');
      const outcome = await payments.findOutcome(charge);
      expect(outcome).to.include({ outcome: 'succeeded', refunded_amount: '0' });
      expect(outcome).to.have.nested.include({ 'refunds[0].refund_status': 'failed', 'refunds[0].amount': '119.1' });
    });

    it('needs a person if the customer has no phone number there', async () => {
      const { id } = fake.book.createCustomer({ name: 'Mute', email: 'm@acme.example' });
      const token = fake.book.addToken(id, 'pays').id;
      const failure = await catchFailure(() => payments.charge(chargeOf(token, { provider_customer_id: id })));
      expect(failure.error_class).to.equal('person');
      expect(failure.message).to.contain('phone number').and.to.contain(id);
      expect(made()).to.deep.equal([]);
    });

    it('needs a person for a token of another customer, and for what is no token', async () => {
      const other = fake.book.createCustomer({ name: 'Other', email: 'o@acme.example' });
      const token = fake.book.addToken(other.id, 'pays').id;
      expect(await catchFailure(() => payments.charge(chargeOf(token)))).to.include({ error_class: 'person' });
      expect(await catchFailure(() => payments.charge(chargeOf('pm_card', { key: 'key:2' })))).to.include({
        error_class: 'person',
      });
      expect(made()).to.deep.equal([]);
    });

    const STEPS = [/^GET orders$/, /^POST orders$/, /^GET customers/, /recurring$/, /^GET orders\/\w+\/payments$/];
    for (const at of STEPS)
      for (const disturbance of DISTURBANCES)
        it(`charges once although ${disturbance} happens at ${at.source}`, async () => {
          const charge = chargeOf(addToken('pays'));
          fake.disturb(at, disturbance);
          expect(await catchFailure(() => payments.charge(charge))).to.include({ error_class: 'wait' });
          const outcome = await payments.charge(charge);
          expect(paid().map(({ id, amount }) => ({ id, amount }))).to.deep.equal([
            { id: (outcome as { gateway_payment_id: string }).gateway_payment_id, amount: 11_910 },
          ]);
          expect(await payments.findOutcome(charge)).to.deep.equal(outcome);
        });

    it('charges once after any interruptions', async () => {
      const interruption = fc.record({
        at: fc.constantFrom(...STEPS),
        disturbance: fc.constantFrom(...DISTURBANCES),
        isAsked: fc.boolean(),
      });
      let number = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(interruption, { maxLength: 5 }), async (interruptions) => {
          number += 1;
          const charge = chargeOf(addToken('pays'), { key: `random:${number}`, payment_id: `pay_${number}` });
          for (const { at, disturbance, isAsked } of interruptions) {
            fake.disturb(at, disturbance);
            const run = () => (isAsked ? payments.findOutcome(charge) : payments.charge(charge));
            await run().catch((error: unknown) => expect(error).to.include({ error_class: 'wait' }));
          }
          fake.clearDisturbances();
          await payments.charge(charge);
          const ours = made().filter(
            ({ notes }) => (notes as Record<string, string>)['farthing_payment_id'] === charge.payment_id,
          );
          expect(ours.map(({ status }) => status)).to.deep.equal(['captured']);
        }),
        { numRuns: 60 },
      );
    }).timeout(60_000);

    it('charges once after requests at once that are repeated', async () => {
      for (let n = 0; n < 20; n++) {
        const charge = chargeOf(addToken('pays'), { key: `race:${n}`, payment_id: `pay_race_${n}` });
        const run = () => payments.charge(charge);
        for (const result of await Promise.allSettled([run(), run(), run()]))
          if (result.status === 'rejected') expect(result.reason).to.include({ error_class: 'wait' });
        await run();
        const ours = made().filter(
          ({ notes }) => (notes as Record<string, string>)['farthing_payment_id'] === charge.payment_id,
        );
        expect(ours.map(({ status }) => status)).to.deep.equal(['captured']);
      }
    });

    it('finds no outcome before the charge, or of an order that nobody has paid yet', async () => {
      const charge = chargeOf(addToken('pays'));
      expect(await payments.findOutcome(charge)).to.equal(null);
      fake.disturb(/recurring$/, 'lost_request');
      await catchFailure(() => payments.charge(charge));
      expect(await payments.findOutcome(charge)).to.equal(null);
    });

    it('reads the stored payment first, and the order if that payment has failed', async () => {
      const charge = chargeOf(addToken('declines'));
      await payments.charge(charge);
      const declined = made()[0]!.id;
      const elsewhere = fake.book.payLink(fake.book.createLink({ amount: 5_000, currency: 'INR' }).id).id;
      const read = (gateway_payment_id: string) => payments.findOutcome({ ...charge, gateway_payment_id });
      expect(await read(elsewhere)).to.deep.equal({
        ...{ outcome: 'succeeded', gateway_payment_id: elsewhere, received_amount: '50' },
      });
      expect(await read(declined)).to.include({ outcome: 'failed', gateway_payment_id: declined });
      const [order] = fake.book.list<OrderRecord>('order', { receipt: toReference(charge.key) });
      const token = addToken('pays');
      const customer = { email: 'a@acme.example', contact: '+919876543210', customer_id, token };
      const paid_later = fake.book.createRecurring({ ...customer, order_id: order!.id, amount: order!.amount });
      const outcome = { outcome: 'succeeded', gateway_payment_id: paid_later.razorpay_payment_id };
      expect(await read(declined)).to.deep.equal(outcome);
    });

    it('needs a person if Razorpay has no longer the stored payment', async () => {
      const charge = { ...chargeOf(addToken('pays')), gateway_payment_id: 'pay_00000000000000' };
      const failure = await catchFailure(() => payments.findOutcome(charge));
      expect(failure).to.include({ error_class: 'person', is_missing: true });
    });

    it('cannot cancel a charge in progress, and leaves one that has ended', async () => {
      await payments.charge(chargeOf(addToken('pends')));
      const { id } = made()[0]!;
      expect(await catchFailure(() => payments.cancel(id))).to.include({ error_class: 'person' });
      fake.book.endPayment(id, 'captured');
      await payments.cancel(id);
      expect(made()[0]!.status).to.equal('captured');
    });
  });

  describe('openPage', () => {
    const page = (more: Partial<AccountPaymentPage> = {}): AccountPaymentPage => ({
      ...requested('tenant:env:payment:2'),
      ...{ success_url: 'https://acme.example/thanks', cancel_url: null, saves_payment_method: false },
      ...more,
    });
    const links = () => fake.book.list<LinkRecord>('payment_link');

    it('opens a payment link that returns to the tenant', async () => {
      const outcome = await payments.openPage(page());
      const [link] = links();
      const url = `https://rzp.example/l/${link!.id}`;
      expect(outcome).to.deep.equal({ outcome: 'processing', gateway_payment_id: link!.id, url, check_at: null });
      expect(link).to.deep.include({
        ...{ amount: 11_910, currency: 'INR', accept_partial: false, notify: { sms: false, email: false } },
        ...{ callback_url: 'https://acme.example/thanks', callback_method: 'get', description: 'Invoice INV-0001' },
      });
    });

    it('refuses an amount that cannot be paid there before any request', async () => {
      expect(await catchFailure(() => payments.openPage(page({ amount: '0.50' })))).to.include({
        error_class: 'person',
      });
      expect(fake.requests).to.deep.equal([]);
    });

    it('is paid with the id of the payment, after a failed attempt too', async () => {
      await payments.openPage(page());
      fake.book.payLink(links()[0]!.id, 'failed');
      expect(await payments.findOutcome(page())).to.include({ outcome: 'processing' });
      const { id } = fake.book.payLink(links()[0]!.id);
      expect(await payments.findOutcome(page())).to.deep.equal({ outcome: 'succeeded', gateway_payment_id: id });
      expect(await payments.openPage(page())).to.deep.equal({ outcome: 'succeeded', gateway_payment_id: id });
      fake.book.createRefund(id, { amount: 1_910 });
      expect(await payments.findOutcome(page())).to.include({ outcome: 'succeeded', refunded_amount: '19.1' });
    });

    it('can no longer be paid after it is cancelled, and cancels twice', async () => {
      await payments.openPage(page());
      for (let n = 0; n < 2; n++) await payments.cancel(links()[0]!.id);
      expect(await payments.findOutcome(page())).to.include({ outcome: 'failed' });
      expect(links()[0]!.status).to.equal('cancelled');
    });

    it('is not cancelled after it was paid', async () => {
      await payments.openPage(page());
      fake.book.payLink(links()[0]!.id);
      await payments.cancel(links()[0]!.id);
      expect(links()[0]!.status).to.equal('paid');
    });

    it('fails if nobody pays in time', async () => {
      await payments.openPage(page());
      fake.book.expireLink(links()[0]!.id);
      expect(await payments.findOutcome(page())).to.deep.include({
        outcome: 'failed',
        gateway_payment_id: links()[0]!.id,
      });
    });

    for (const at of [/^GET payment_links/, /^POST payment_links$/])
      for (const disturbance of DISTURBANCES)
        it(`opens one page although ${disturbance} happens at ${at.source}`, async () => {
          fake.disturb(at, disturbance);
          expect(await catchFailure(() => payments.openPage(page()))).to.include({ error_class: 'wait' });
          const outcome = await payments.openPage(page());
          expect(links().map(({ id }) => id)).to.deep.equal([
            (outcome as { gateway_payment_id: string }).gateway_payment_id,
          ]);
        });

    it('two requests at once open one page', async () => {
      const [first, second] = await Promise.all([payments.openPage(page()), payments.openPage(page())]);
      expect(first).to.deep.equal(second);
      expect(links()).to.have.length(1);
    });
  });

  describe('refund', () => {
    let payment_id: string;
    beforeEach(async () => {
      const token = fake.book.addToken(customer_id, 'pays').id;
      await payments.charge({ ...requested('key:refunded'), provider_payment_method_id: token });
      payment_id = paid()[0]!.id;
    });
    const refund = (more: Partial<AccountRefund> = {}): AccountRefund => ({
      ...{
        key: 'r:1',
        requested_at: new Date(),
        key_age_seconds: 0,
        gateway_payment_id: payment_id,
        amount: '19.10',
        currency: 'inr',
      },
      ...{ refund_id: 'refund_1', ...more },
    });
    const refunds = () => fake.book.list<RefundRecord>('refund');

    it('refunds the amount, once per key', async () => {
      const first = await payments.refund(refund());
      expect(first).to.deep.equal({ outcome: 'succeeded', gateway_refund_id: refunds()[0]!.id });
      expect(await payments.refund(refund())).to.deep.equal(first);
      expect(refunds().map(({ amount, notes }) => ({ amount, notes }))).to.deep.equal([
        { amount: 1_910, notes: { farthing_refund_id: 'refund_1' } },
      ]);
      await payments.refund(refund({ key: 'r:2' }));
      expect(refunds()).to.have.length(2);
    });

    for (const disturbance of DISTURBANCES)
      it(`refunds once although the first answer is: ${disturbance}`, async () => {
        fake.disturb(/refund$/, disturbance);
        expect(await catchFailure(() => payments.refund(refund()))).to.include({ error_class: 'wait' });
        await payments.refund(refund());
        expect(refunds().map(({ amount }) => amount)).to.deep.equal([1_910]);
      });

    it('refunds once if two requests with one key race, because the key is sent', async () => {
      await Promise.all([payments.refund(refund()), payments.refund(refund())]);
      expect(refunds()).to.have.length(1);
    });

    it('fails if less is left, and says why', async () => {
      const failed = await payments.refund(refund({ amount: '200' }));
      expect(failed.outcome).to.equal('failed');
      expect((failed as { error: string }).error).to.contain('greater than the refund payment amount');
    });

    it('tells a pending refund from one that Razorpay could not send', async () => {
      fake.book.refund_status = 'pending';
      expect(await payments.refund(refund())).to.include({ outcome: 'pending' });
      fake.book.refund_status = 'failed';
      expect(await payments.refund(refund({ key: 'r:2' }))).to.include({ outcome: 'failed' });
    });

    it('finds the payment of a page by the id of its link', async () => {
      const page = { ...requested('key:page'), success_url: null, cancel_url: null, saves_payment_method: false };
      const { gateway_payment_id } = (await payments.openPage(page)) as { gateway_payment_id: string };
      const unpaid = await catchFailure(() => payments.refund(refund({ gateway_payment_id })));
      expect(unpaid.message).to.contain('nobody has paid');
      const { id } = fake.book.payLink(gateway_payment_id);
      expect(await payments.refund(refund({ gateway_payment_id }))).to.include({ outcome: 'succeeded' });
      expect(refunds()[0]!.payment_id).to.equal(id);
    });
  });

  describe('listPaymentMethods', () => {
    it('lists the confirmed tokens of a customer', async () => {
      const card = fake.book.addToken(customer_id, 'pays').id;
      const upi = fake.book.addToken(customer_id, 'pays', { method: 'upi', card: undefined }).id;
      const bank = fake.book.addToken(customer_id, 'pays', { method: 'emandate', card: undefined }).id;
      fake.book.addToken(customer_id, 'pays', { recurring_details: { status: 'rejected', failure_reason: 'x' } });
      fake.book.addToken(customer_id, 'pays', { method: 'wallet', card: undefined });
      const common = { is_default: false, card: null };
      expect(await payments.listPaymentMethods(customer_id)).to.deep.equal([
        { ...common, provider_payment_method_id: bank, payment_method_type: 'ACH' },
        { ...common, provider_payment_method_id: upi, payment_method_type: 'UPI' },
        {
          ...{ provider_payment_method_id: card, payment_method_type: 'CARD', is_default: false },
          card: { brand: 'visa', last4: '1111', exp_month: 9, exp_year: 2030 },
        },
      ]);
    });

    it('needs a person for what is no customer of Razorpay', async () => {
      expect(await catchFailure(() => payments.listPaymentMethods('cus_1/../x'))).to.include({ error_class: 'person' });
      expect(fake.requests).to.deep.equal([]);
    });
  });
});
