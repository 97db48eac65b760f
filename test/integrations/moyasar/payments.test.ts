/** Charges, pages and refunds at Moyasar: no payment or refund is made twice, whichever request or answer is lost. */
import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal } from '../../../core/foundation/decimal.ts';
import type {
  AccountCharge,
  AccountPaymentPage,
  AccountPayments,
  AccountRefund,
} from '../../../integrations/account-payments.ts';
import { toGivenId } from '../../../integrations/moyasar/payments.ts';
import { moyasar } from '../../../integrations/moyasar/provider.ts';
import { catchFailure } from '../../support/providers/failure.ts';
import { MOYASAR_DISTURBANCES, MoyasarFake } from '../../support/providers/moyasar-fake.ts';

describe('integrations/moyasar/payments', () => {
  let fake: MoyasarFake;
  let payments: Required<Pick<AccountPayments, 'charge' | 'openPage' | 'findOutcome' | 'cancel' | 'refund'>>;

  beforeEach(async () => {
    fake = await new MoyasarFake().start();
    const account = await moyasar.account!.open({ secret_key: 'sk_test_fake' }, { address: fake.url });
    payments = account.payments as typeof payments;
  });
  afterEach(() => fake.stop());

  const requested = (key: string) => ({
    ...{ key, requested_at: new Date(), key_age_seconds: 0, amount: '119.10', currency: 'sar' },
    ...{ payment_id: 'pay_1', invoice_id: 'inv_1', invoice_number: 'INV-0001', provider_customer_id: 'cust_1' },
    ...{ provider_invoice_id: null, gateway_payment_id: null, is_page: false, success_url: null },
  });
  const made = () => [...fake.book.payments.values()];

  describe('charge', () => {
    const charge = (token: string, more: Partial<AccountCharge> = {}): AccountCharge => ({
      ...{ ...requested('tenant:env:payment:1'), provider_payment_method_id: token },
      ...more,
    });

    it('pays with a token, and its id is derived from the key', async () => {
      const outcome = await payments.charge(charge(fake.book.addToken('pays')));
      const id = toGivenId('tenant:env:payment:1');
      expect(outcome).to.deep.equal({ outcome: 'succeeded', gateway_payment_id: id });
      expect(made()[0]).to.deep.include({
        ...{ id, status: 'paid', amount: 11_910, currency: 'SAR' },
        metadata: {
          ...{ farthing_payment_id: 'pay_1', farthing_invoice_id: 'inv_1', farthing_invoice_number: 'INV-0001' },
        },
      });
    });

    it('answers a decline with its reason, and does not try again with the same key', async () => {
      const declined = charge(fake.book.addToken('declines'));
      for (let times = 0; times < 2; times++)
        expect(await payments.charge(declined)).to.include({ outcome: 'failed', error: 'failed: INSUFFICIENT FUNDS' });
      expect(made()).to.have.length(1);
      await payments.charge(charge(fake.book.addToken('pays'), { key: 'key:2' }));
      expect(made().map(({ status }) => status)).to.deep.equal(['failed', 'paid']);
    });

    it('waits for a cardholder who has to confirm, and reads the result', async () => {
      const confirmed = charge(fake.book.addToken('confirms'));
      const { gateway_payment_id: id, url } = (await payments.charge(confirmed)) as Record<string, string>;
      expect(url).to.match(/form$/);
      expect(await payments.findOutcome(confirmed)).to.include({ outcome: 'processing', url });
      fake.book.endPayment(id!, 'paid');
      const succeeded = { outcome: 'succeeded', gateway_payment_id: id };
      expect(await payments.findOutcome(confirmed)).to.deep.equal(succeeded);
      expect(await payments.findOutcome({ ...confirmed, gateway_payment_id: id! })).to.deep.equal(succeeded);
    });

    for (const disturbance of MOYASAR_DISTURBANCES)
      it(`charges once although the first answer is: ${disturbance}`, async () => {
        const once = charge(fake.book.addToken('pays'));
        fake.disturb(/^POST payments$/, disturbance);
        expect(await catchFailure(() => payments.charge(once))).to.include({ error_class: 'wait' });
        expect(await payments.charge(once)).to.include({ outcome: 'succeeded' });
        expect(made()).to.have.length(1);
      });

    it('charges once if two requests with one key race', async () => {
      const once = charge(fake.book.addToken('pays'));
      const [first, second] = await Promise.all([payments.charge(once), payments.charge(once)]);
      expect(first).to.deep.equal(second);
      expect(made()).to.have.length(1);
    });

    it('needs a person for what is no token, or no active one', async () => {
      for (const token of ['pm_card', 'token_unknown'])
        expect(await catchFailure(() => payments.charge(charge(token)))).to.include({ error_class: 'person' });
      expect(made()).to.deep.equal([]);
    });

    it('does not call a charge with an unknown status refused, because it may have moved money', async () => {
      const unknown = charge(fake.book.addToken('invents'));
      for (let times = 0; times < 2; times++)
        expect(await catchFailure(() => payments.charge(unknown))).to.include({ is_of_record: true });
      expect(made()).to.have.length(1);
    });

    it('finds no outcome before the charge; a stored payment that is gone needs a person', async () => {
      const asked = charge(fake.book.addToken('pays'));
      expect(await payments.findOutcome(asked)).to.equal(null);
      const gone = { ...asked, gateway_payment_id: fake.book.makeId() };
      expect(await catchFailure(() => payments.findOutcome(gone))).to.include({ is_missing: true });
    });

    it('reads how much a payment brought that a person has stored', async () => {
      const body = { amount: 5_000, currency: 'SAR', source: { type: 'token', token: fake.book.addToken('pays') } };
      const { id } = fake.book.createPayment(body);
      const asked = { ...charge('token_x'), gateway_payment_id: id };
      expect(await payments.findOutcome(asked)).to.include({ outcome: 'succeeded', received_amount: '50' });
      const other = await catchFailure(() => payments.findOutcome({ ...asked, currency: 'usd' }));
      expect(other).to.include({ error_class: 'wait', is_of_record: true });
    });

    it('reads how much of its own charge a person has captured, also after a refund', async () => {
      const asked = charge(fake.book.addToken('authorizes'));
      await payments.charge(asked);
      const [payment] = made();
      Object.assign(payment!, { status: 'captured', captured: 4_000, captured_at: new Date().toISOString() });
      const captured = { outcome: 'succeeded', received_amount: '40' };
      expect(await payments.findOutcome({ ...asked, gateway_payment_id: payment!.id })).to.include(captured);
      Object.assign(payment!, { status: 'refunded', refunded: 1_000 });
      expect(await payments.findOutcome(asked)).to.include({ ...captured, refunded_amount: '10' });
      payment!.currency = 'USD';
      expect(await catchFailure(() => payments.findOutcome(asked))).to.include({ is_of_record: true });
    });

    it('cancels what the bank only reserved, and cannot cancel what waits for the customer', async () => {
      await payments.charge(charge(fake.book.addToken('authorizes')));
      await payments.cancel(made()[0]!.id);
      expect(made()[0]!.status).to.equal('voided');
      await payments.charge(charge(fake.book.addToken('confirms'), { key: 'key:2' }));
      expect(await catchFailure(() => payments.cancel(made()[1]!.id))).to.include({ error_class: 'person' });
    });
  });

  describe('openPage', () => {
    const page = (more: Partial<AccountPaymentPage> = {}): AccountPaymentPage => ({
      ...{ ...requested('tenant:env:payment:2'), is_page: true, success_url: 'https://acme.example/thanks' },
      ...{ cancel_url: 'https://acme.example/back', saves_payment_method: false, ...more },
    });
    const pages = () => [...fake.book.invoices.values()];
    const open = () => pages().filter(({ status }) => status === 'initiated');

    it('is an invoice of Moyasar that returns to the tenant and ends in a day', async () => {
      const outcome = await payments.openPage(page());
      const [there] = pages();
      const { id, url } = there as unknown as Record<string, string>;
      expect(outcome).to.deep.equal({ outcome: 'processing', gateway_payment_id: id, url, check_at: null });
      expect(there).to.include({ amount: 11_910, currency: 'SAR', description: 'Invoice INV-0001' });
      expect(there).to.include({ success_url: 'https://acme.example/thanks', back_url: 'https://acme.example/back' });
      expect(Date.parse(String(there!['expired_at'])) - Date.now()).to.be.within(86_000_000, 86_400_000);
    });

    it('is paid with the id of the payment, after a failed attempt too', async () => {
      await payments.openPage(page());
      const [{ id } = { id: '' }] = pages();
      fake.book.payInvoice(id, 'failed');
      expect(await payments.findOutcome(page())).to.include({ outcome: 'processing', gateway_payment_id: id });
      const paid = fake.book.payInvoice(id);
      const succeeded = { outcome: 'succeeded', gateway_payment_id: paid.id };
      for (const gateway_payment_id of [null, id, paid.id])
        expect(await payments.findOutcome(page({ gateway_payment_id }))).to.deep.equal(succeeded);
      expect(await payments.openPage(page())).to.deep.equal(succeeded);
      fake.book.refundPayment(paid.id, { amount: 1_910 });
      expect(await payments.findOutcome(page())).to.include({ outcome: 'succeeded', refunded_amount: '19.1' });
    });

    it('is the only open one, although two requests at once were interrupted', async () => {
      await payments.openPage(page());
      const [{ amount, currency, description, metadata } = { amount: 0 }] = pages();
      fake.book.createInvoice({ amount, currency, description, metadata });
      await payments.openPage(page());
      expect(open()).to.have.length(1);
    });

    it('can no longer be paid after it is cancelled, and is not cancelled after it was paid', async () => {
      await payments.openPage(page());
      const [{ id } = { id: '' }] = pages();
      for (let times = 0; times < 2; times++) await payments.cancel(id);
      expect(await payments.findOutcome(page({ gateway_payment_id: id }))).to.include({ outcome: 'failed' });
      await payments.openPage(page());
      fake.book.payInvoice(pages()[1]!.id);
      await payments.cancel(pages()[1]!.id);
      expect(pages().map(({ status }) => status)).to.deep.equal(['canceled', 'paid']);
    });

    for (const at of [/^GET invoices$/, /^POST invoices$/])
      for (const disturbance of MOYASAR_DISTURBANCES)
        it(`opens one page although ${disturbance} happens at ${at.source}`, async () => {
          fake.disturb(at, disturbance);
          expect(await catchFailure(() => payments.openPage(page()))).to.include({ error_class: 'wait' });
          await payments.openPage(page());
          expect(open()).to.have.length(1);
        });
  });

  describe('refund', () => {
    let payment_id: string;
    beforeEach(async () => {
      await payments.charge({
        ...{ ...requested('key:refunded'), provider_payment_method_id: fake.book.addToken('pays') },
      });
      payment_id = made()[0]!.id;
    });
    const refund = (more: Partial<AccountRefund> = {}): AccountRefund => ({
      ...{ key: 'r:1', requested_at: new Date(), key_age_seconds: 0, gateway_payment_id: payment_id },
      ...{ amount: '19.10', currency: 'sar', refund_id: 'refund_1', ...more },
    });
    const refunded = () => fake.book.findPayment(payment_id).refunded;

    it('refunds the amount once per key, and keeps the metadata of the payment', async () => {
      const first = await payments.refund(refund());
      expect(first).to.include({ outcome: 'succeeded' });
      expect(await payments.refund(refund())).to.deep.equal(first);
      expect(refunded()).to.equal(1_910);
      await payments.refund(refund({ key: 'r:2' }));
      expect(refunded()).to.equal(3_820);
      expect(made()[0]!.metadata).to.include({ farthing_payment_id: 'pay_1' });
    });

    for (const at of [/^GET payments/, /^PUT payments/, /refund$/])
      for (const disturbance of MOYASAR_DISTURBANCES)
        it(`refunds once although ${disturbance} happens at ${at.source}`, async () => {
          fake.disturb(at, disturbance);
          expect(await catchFailure(() => payments.refund(refund()))).to.include({ error_class: 'wait' });
          expect(await payments.refund(refund())).to.include({ outcome: 'succeeded' });
          expect(refunded()).to.equal(1_910);
        });

    it('refunds once after any interruptions', async () => {
      const step = fc.constantFrom(/^GET payments/, /^PUT payments/, /refund$/);
      const interruption = fc.record({ step, disturbance: fc.constantFrom(...MOYASAR_DISTURBANCES) });
      let number = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(interruption, { maxLength: 5 }), async (interruptions) => {
          const key = `random:${++number}`;
          const before = refunded();
          for (const { step: at, disturbance } of interruptions) {
            fake.disturb(at, disturbance);
            await payments
              .refund(refund({ key, amount: '1' }))
              .catch((error: unknown) => expect(error).to.include({ error_class: 'wait' }));
          }
          fake.clearDisturbances();
          expect(await payments.refund(refund({ key, amount: '1' }))).to.include({ outcome: 'succeeded' });
          expect(refunded() - before).to.equal(100);
        }),
        { numRuns: 25 },
      );
    }).timeout(60_000);

    it('repeats one of two attempts that write at the same time', async () => {
      const held = fake.hold(/^PUT payments/);
      const first = payments.refund(refund());
      await held.arrived;
      expect(await payments.refund(refund())).to.include({ outcome: 'succeeded' });
      held.release();
      expect(await catchFailure(() => first)).to.include({ error_class: 'wait', is_of_record: true });
      expect(refunded()).to.equal(1_910);
    });

    for (const first of ['lost_request', 'lost_answer'] as const)
      for (const second of ['lost_request', 'lost_answer', null] as const)
        it(`refunds one amount twice although the answers are: ${first}, ${second ?? 'none lost'}`, async () => {
          const open = new Set(['r:1', 'r:2']);
          const request = async (key: string) => {
            const refunded_before = String(new Decimal('19.10').times(2 - open.size));
            const outcome = await payments.refund(refund({ key, refunded_before })).catch(() => null);
            if (outcome?.outcome === 'succeeded') open.delete(key);
          };
          fake.disturb(/refund$/, first);
          await request('r:1');
          if (second !== null) fake.disturb(/refund$/, second);
          await request('r:2');
          for (let times = 0; times < 2; times++) for (const key of [...open]) await request(key);
          expect([...open]).to.deep.equal([]);
          expect(refunded()).to.equal(3_820);
        });

    it('asks a person if another amount was refunded after a lost answer', async () => {
      fake.disturb(/refund$/, 'lost_request');
      await catchFailure(() => payments.refund(refund()));
      fake.book.refundPayment(payment_id, { amount: 500 });
      const failure = await catchFailure(() => payments.refund(refund()));
      expect(failure).to.include({ error_class: 'wait', is_of_record: true });
      expect(failure.message).to.contain('19.10 sar').and.to.contain('5 was refunded');
    });

    it('fails if less is left, and says why', async () => {
      const failed = await payments.refund(refund({ amount: '200' }));
      expect(failed).to.include({ outcome: 'failed' });
      expect((failed as { error: string }).error).to.contain('exceeds the amount that is left');
    });

    it('finds the payment of a page by the id of its invoice', async () => {
      const { id } = fake.book.createInvoice({ amount: 11_910, currency: 'SAR', description: 'page' });
      const unpaid = await catchFailure(() => payments.refund(refund({ gateway_payment_id: id })));
      expect(unpaid.message).to.contain('nobody has paid');
      const paid = fake.book.payInvoice(id);
      expect(await payments.refund(refund({ gateway_payment_id: id }))).to.include({ outcome: 'succeeded' });
      expect(paid.refunded).to.equal(1_910);
    });
  });
});
