/** Pages and refunds at Nomod: no page is paid twice and no refund made twice, whichever request or answer is lost. */
import { expect } from 'chai';
import fc from 'fast-check';
import type { AccountPaymentPage, AccountPayments, AccountRefund } from '../../../integrations/account-payments.ts';
import { nomod } from '../../../integrations/nomod/provider.ts';
import { catchFailure } from '../../support/providers/failure.ts';
import { NOMOD_DISTURBANCES, NomodFake } from '../../support/providers/nomod-fake.ts';

describe('integrations/nomod/payments', () => {
  let fake: NomodFake;
  let payments: AccountPayments & Required<Pick<AccountPayments, 'openPage' | 'refund'>>;

  beforeEach(async () => {
    fake = await new NomodFake().start();
    const account = await nomod.account!.open({ api_key: 'sk_test_fake.1' }, { address: fake.url });
    payments = account.payments as typeof payments;
  });
  afterEach(() => fake.stop());

  const page = (more: Partial<AccountPaymentPage> = {}): AccountPaymentPage => ({
    ...{ key: 'tenant:env:payment:1', requested_at: new Date(), key_age_seconds: 0, amount: '119.10', currency: 'aed' },
    ...{ payment_id: 'pay_1', invoice_id: 'inv_1', invoice_number: 'INV-0001', provider_customer_id: 'x' },
    ...{ provider_invoice_id: null, gateway_payment_id: null, is_page: true, saves_payment_method: false },
    ...{ success_url: 'https://acme.example/thanks', cancel_url: 'https://acme.example/back', ...more },
  });
  const links = () => fake.book.records.links;

  it('charges no saved cards', () => {
    expect(payments).not.to.have.any.keys('charge', 'startCardSetup');
  });

  describe('openPage', () => {
    it('is a link that can be paid once, without fee and tip', async () => {
      const outcome = await payments.openPage(page());
      const [link] = links();
      const { id, url } = link as unknown as Record<string, string>;
      expect(outcome).to.deep.equal({ outcome: 'processing', gateway_payment_id: id, url, check_at: null });
      expect(link).to.deep.include({
        ...{ amount: '119.100', currency: 'AED', payment_expiry_limit: 1, allow_tip: false, title: 'Invoice INV-0001' },
        ...{ success_url: 'https://acme.example/thanks', failure_url: 'https://acme.example/back' },
      });
    });

    it('is paid with the id of the charge, after a failed attempt too', async () => {
      await payments.openPage(page());
      const [{ id } = { id: '' }] = links();
      fake.book.payLink(id, 'failed');
      expect(await payments.findOutcome(page())).to.include({ outcome: 'processing', gateway_payment_id: id });
      const paid = fake.book.payLink(id);
      const succeeded = { outcome: 'succeeded', gateway_payment_id: paid.id };
      for (const gateway_payment_id of [null, id, paid.id])
        expect(await payments.findOutcome(page({ gateway_payment_id }))).to.deep.equal(succeeded);
      expect(await payments.openPage(page())).to.deep.equal(succeeded);
      expect(links()[0]!['status']).to.equal('disabled');
      fake.book.refundCharge(paid.id, { amount: '19.10' });
      expect(await payments.findOutcome(page())).to.include({ outcome: 'succeeded', refunded_amount: '19.1' });
    });

    it('brings what was paid, although a person has edited the page', async () => {
      await payments.openPage(page());
      const [link] = links();
      const paid = fake.book.payLink(link!.id);
      Object.assign(paid, { total: '100.00' });
      for (const gateway_payment_id of [null, link!.id, paid.id])
        expect(await payments.findOutcome(page({ gateway_payment_id }))).to.include({ received_amount: '100' });
    });

    it('is the only open one, although two requests at once were interrupted', async () => {
      await payments.openPage(page());
      fake.book.editLink(links()[0]!.id, { status: 'disabled' });
      await payments.openPage(page());
      fake.book.editLink(links()[0]!.id, { status: 'enabled' });
      await payments.openPage(page());
      expect(links().map(({ status }) => status)).to.have.members(['enabled', 'disabled']);
    });

    it('opens one of two requests with one key that race', async () => {
      await Promise.allSettled([payments.openPage(page()), payments.openPage(page())]);
      const { gateway_payment_id } = await payments.openPage(page());
      const open = links().filter(({ status }) => status === 'enabled');
      expect(open.map(({ id }) => id)).to.deep.equal([gateway_payment_id]);
    });

    it('can no longer be paid after it is cancelled, twice', async () => {
      await payments.openPage(page());
      const [{ id } = { id: '' }] = links();
      for (let times = 0; times < 2; times++) await payments.cancel(id);
      expect(await payments.findOutcome(page({ gateway_payment_id: id }))).to.include({ outcome: 'failed' });
      fake.book.editLink(id, { status: 'enabled' });
      const held = fake.hold(/edit$/);
      const cancelled = payments.cancel(id);
      await held.arrived;
      fake.book.editLink(id, { status: 'disabled' });
      held.release();
      await cancelled;
    });

    it('asks a person about a link of another amount, and disables it', async () => {
      fake.book.surcharge = '5';
      const failure = await catchFailure(() => payments.openPage(page()));
      expect(failure.message).to.contain('119.10 aed').and.to.contain('124.1 aed');
      expect(links()[0]!['status']).to.equal('disabled');
    });

    it('names a currency that Nomod does not take', async () => {
      const failure = await catchFailure(() => payments.openPage(page({ currency: 'eur' })));
      expect(failure.message).to.match(/^Nomod takes no payments in eur: /);
    });

    it('finds no outcome before the page; a stored payment that is gone needs a person', async () => {
      expect(await payments.findOutcome(page())).to.equal(null);
      const gone = page({ gateway_payment_id: fake.book.makeId() });
      expect(await catchFailure(() => payments.findOutcome(gone))).to.include({ is_missing: true });
    });

    it('reads how much a charge brought that a person has stored', async () => {
      await payments.openPage(page({ amount: '50', key: 'other' }));
      const { id } = fake.book.payLink(links()[0]!.id);
      const stored = { ...page({ gateway_payment_id: id }), is_page: false };
      expect(await payments.findOutcome(stored)).to.include({ outcome: 'succeeded', received_amount: '50' });
      const other = await catchFailure(() => payments.findOutcome({ ...stored, currency: 'usd' }));
      expect(other).to.include({ error_class: 'wait', is_of_record: true });
    });

    for (const at of [/^GET links$/, /^POST links$/, /^GET charges$/])
      for (const disturbance of NOMOD_DISTURBANCES)
        it(`opens one page although ${disturbance} happens at ${at.source}`, async () => {
          fake.disturb(at, disturbance);
          expect(await catchFailure(() => payments.openPage(page()))).to.include({ error_class: 'wait' });
          await payments.openPage(page());
          await payments.openPage(page({ key: 'tenant:env:payment:2' }));
          expect(links()).to.have.length(2);
        });
  });

  describe('refund', () => {
    let charge_id: string;
    beforeEach(async () => {
      await payments.openPage(page());
      charge_id = fake.book.payLink(links()[0]!.id).id;
    });
    const refund = (more: Partial<AccountRefund> = {}): AccountRefund => ({
      ...{ key: 'r:1', requested_at: new Date(), key_age_seconds: 0, gateway_payment_id: charge_id },
      ...{ amount: '19.1', currency: 'aed', refund_id: 'refund_1', refunded_before: '0', ...more },
    });
    const refunded = () => fake.book.find('charges', charge_id)['refund_total'];

    it('refunds once, and again the same amount after the first is recorded', async () => {
      const first = await payments.refund(refund());
      expect(first).to.include({ outcome: 'succeeded' });
      expect(await payments.refund(refund())).to.deep.equal(first);
      expect(refunded()).to.equal('19.10');
      const second = refund({ key: 'r:2', refunded_before: '19.1' });
      for (let times = 0; times < 2; times++) await payments.refund(second);
      expect(refunded()).to.equal('38.20');
    });

    for (const at of [/^GET charges/, /refund$/])
      for (const disturbance of NOMOD_DISTURBANCES)
        it(`refunds once although ${disturbance} happens at ${at.source}`, async () => {
          fake.disturb(at, disturbance);
          expect(await catchFailure(() => payments.refund(refund()))).to.include({ error_class: 'wait' });
          expect(await payments.refund(refund())).to.include({ outcome: 'succeeded' });
          expect(refunded()).to.equal('19.10');
        });

    it('refunds each once after any interruptions', async () => {
      const step = fc.constantFrom(/^GET charges/, /refund$/);
      const interruption = fc.record({ step, disturbance: fc.constantFrom(...NOMOD_DISTURBANCES) });
      let before = 0;
      const property = fc.asyncProperty(fc.array(interruption, { maxLength: 5 }), async (interruptions) => {
        const one = refund({ key: `random:${before}`, amount: '1', refunded_before: String(before) });
        for (const { step: at, disturbance } of interruptions) {
          fake.disturb(at, disturbance);
          await payments.refund(one).catch((error: unknown) => expect(error).to.include({ error_class: 'wait' }));
        }
        fake.clearDisturbances();
        await payments.refund(one);
        before += 1;
        expect(refunded()).to.equal(`${before}.00`);
      });
      await fc.assert(property, { numRuns: 25 });
    }).timeout(60_000);

    it('is not taken for an older refund, or for one of another amount', async () => {
      fake.book.refundCharge(charge_id, { amount: '19.10' });
      await payments.refund(refund({ requested_at: new Date(Date.now() + 120_000) }));
      expect(refunded()).to.equal('38.20');
      fake.book.refundCharge(charge_id, { amount: '30.00' });
      await payments.refund(refund({ amount: '20', refunded_before: '38.2' }));
      expect(refunded()).to.equal('88.20');
    });

    it('fails if less is left, and says why', async () => {
      const failed = await payments.refund(refund({ amount: '200' }));
      expect(failed).to.include({ outcome: 'failed' });
      expect((failed as { error: string }).error).to.contain('refund_amount_exceeds');
    });

    it('finds the charge of a page by the id of its link', async () => {
      await payments.openPage(page({ key: 'other' }));
      const { id } = links()[1]!;
      const unpaid = await catchFailure(() => payments.refund(refund({ gateway_payment_id: id })));
      expect(unpaid.message).to.contain('nobody has paid');
      const paid = fake.book.payLink(id);
      expect(await payments.refund(refund({ gateway_payment_id: id }))).to.include({ outcome: 'succeeded' });
      expect(paid['refund_total']).to.equal('19.10');
    });
  });
});
