/** Pages and refunds of Paddle. */
import { expect } from 'chai';
import type { ProviderAccount } from '../../../integrations/account.ts';
import type { AccountPaymentPage, AccountPayments, AccountRefund } from '../../../integrations/account-payments.ts';
import { paddle } from '../../../integrations/paddle/provider.ts';
import { catchFailure } from '../../support/providers/failure.ts';
import { PaddleFake } from '../../support/providers/paddle-fake.ts';
import type { TransactionRecord } from '../../support/providers/paddle-fake-book.ts';

const KEY = { key: 'pay_1/1', requested_at: new Date(), key_age_seconds: 0 };

describe('integrations/paddle/payments', () => {
  let fake: PaddleFake;
  let account: ProviderAccount;
  let payments: AccountPayments;
  let customer_id: string;

  beforeEach(async () => {
    fake = await new PaddleFake().start();
    account = await paddle.account!.open({ api_key: fake.api_key }, { address: fake.url });
    payments = account.payments!;
    customer_id = fake.book.createCustomer({ email: 'a@acme.example', name: 'Acme' }).id;
  });
  afterEach(() => fake.stop());

  const page = (more: Partial<AccountPaymentPage> = {}): AccountPaymentPage => ({
    ...KEY,
    ...{ amount: '100', currency: 'usd', payment_id: 'pay_1', invoice_id: 'inv_1', invoice_number: 'INV-1' },
    ...{ provider_customer_id: customer_id, provider_invoice_id: null, gateway_payment_id: null, is_page: true },
    ...{ success_url: null, cancel_url: null, saves_payment_method: false },
    ...more,
  });
  const refund = (gateway_payment_id: string, more: Partial<AccountRefund> = {}): AccountRefund => ({
    ...KEY,
    ...{ gateway_payment_id, amount: '40', currency: 'usd', refund_id: 'ref_1' },
    ...more,
  });
  const addAddress = () => fake.book.createAddress(customer_id, { country_code: 'DE' });
  const openPage = async (more: Partial<AccountPaymentPage> = {}) =>
    (await payments.openPage!(page(more))).gateway_payment_id!;
  const statuses = () => fake.book.list<TransactionRecord>('txn').map(({ status }) => status);

  it('a page is paid: the net amount, and the tax beside it', async () => {
    addAddress();
    const opened = await payments.openPage!(page());
    const id = opened.gateway_payment_id!;
    expect(opened).to.deep.equal({
      ...{ outcome: 'processing', gateway_payment_id: id, url: `https://pay.example/?_ptxn=${id}`, check_at: null },
    });
    fake.book.declinePayment(id);
    expect(await payments.findOutcome(page())).to.include({ outcome: 'processing' });
    fake.book.payTransaction(id, { isProcessed: false });
    expect(await payments.findOutcome(page())).to.include({ outcome: 'processing', url: null });
    fake.book.completeTransaction(id);
    const paid = { outcome: 'succeeded', gateway_payment_id: id, received_amount: '100', provider_tax: '19' };
    expect(await payments.findOutcome(page())).to.deep.equal(paid);
    expect(await payments.findOutcome(page({ key: 'x', gateway_payment_id: id }))).to.deep.equal(paid);
    expect(await payments.openPage!(page())).to.deep.equal(paid);
  });

  it('a page of an unknown key is null, and of an unknown id an error', async () => {
    expect(await payments.findOutcome(page())).to.equal(null);
    const gateway_payment_id = `txn_${'z'.repeat(26)}`;
    expect((await catchFailure(() => payments.findOutcome(page({ gateway_payment_id })))).is_missing).to.equal(true);
  });

  for (const failure of ['lost_answer', 'lost_fault', 'lost_request', 'rate_limit'] as const)
    it(`${failure} opens one page`, async () => {
      fake.disturb(/^POST transactions$/, failure);
      expect((await catchFailure(() => payments.openPage!(page()))).error_class).to.equal('wait');
      await openPage();
      await openPage();
      expect(statuses()).to.deep.equal(['draft']);
    });

  it('is the only open one, although two requests at once were interrupted', async () => {
    addAddress();
    const held = fake.hold(/^POST transactions$/);
    const opening = openPage();
    await held.arrived;
    await openPage();
    fake.disturb(/^GET transactions$/, 'lost_request');
    held.release();
    await opening.catch(() => null);
    await openPage();
    expect(statuses().filter((status) => status === 'ready')).to.have.length(1);
  });

  it('is closed once; one without an address only after the customer has entered it', async () => {
    const draft = await openPage();
    expect((await catchFailure(() => payments.cancel(draft))).message).to.contain('invalid_status_change');
    addAddress();
    const ready = await openPage({ key: 'pay_2/1' });
    for (let times = 0; times < 2; times++) await payments.cancel(ready);
    expect(await payments.findOutcome(page({ gateway_payment_id: ready }))).to.include({ outcome: 'failed' });
    const paid = await openPage({ key: 'pay_3/1' });
    fake.book.payTransaction(paid, { isProcessed: false });
    expect((await catchFailure(() => payments.cancel(paid))).message).to.contain('is paid at Paddle');
    fake.book.completeTransaction(paid);
    await payments.cancel(paid);
  });

  it('a page of another amount is closed, and the error names both', async () => {
    addAddress();
    fake.book.surcharge = 250;
    const { message } = await catchFailure(() => payments.openPage!(page()));
    expect(message).to.match(/^the amount of pay_1 is 100 usd, but 102\.5 usd without tax at Paddle/);
    expect(statuses()).to.deep.equal(['canceled']);
  });

  it('money in another currency is not counted', async () => {
    addAddress();
    const id = await openPage();
    fake.book.payTransaction(id);
    fake.book.find<TransactionRecord>(id, 'txn').currency_code = 'EUR';
    const failure = await catchFailure(() => payments.findOutcome(page()));
    expect(failure).to.include({ error_class: 'wait', is_of_record: true });
    expect(failure.message).to.contain('Paddle received 100 eur');
  });

  describe('refund', () => {
    let id: string;
    beforeEach(async () => {
      addAddress();
      id = await openPage();
      fake.book.payTransaction(id);
    });

    it('returns the net amount with its tax, once', async () => {
      const made = await payments.refund!(refund(id));
      expect(await payments.refund!(refund(id))).to.deep.equal(made);
      const [adjustment, ...others] = fake.adjustments.list(id);
      expect(others).to.deep.equal([]);
      expect(made).to.deep.equal({ outcome: 'succeeded', gateway_refund_id: adjustment!.id });
      expect(adjustment!.totals).to.deep.include({ subtotal: '4000', tax: '760' });
      const outcome = await payments.findOutcome(page());
      expect(outcome).to.deep.include({ received_amount: '100', refunded_amount: '40' });
      await payments.refund!(refund(id, { refund_id: 'ref_2', amount: '60' }));
      expect(fake.adjustments.list(id)[0]!.totals).to.deep.include({ subtotal: '6000', tax: '1140' });
      const { error_class } = await catchFailure(() =>
        payments.refund!(refund(id, { refund_id: 'ref_3', amount: '1' })),
      );
      expect(error_class).to.equal('person');
    });

    it('is uncertain, not failed, if Paddle has returned another amount', async () => {
      fake.disturb(/^POST adjustments$/, 'lost_answer');
      await catchFailure(() => payments.refund!(refund(id)));
      Object.assign(fake.adjustments.list(id)[0]!.totals, { subtotal: '3361', tax: '639' });
      const failure = await catchFailure(() => payments.refund!(refund(id)));
      expect(failure.is_of_record).to.equal(true);
      expect(failure.message).to.contain('is 40 usd, but 33.61 without tax');
      expect(fake.adjustments.list(id)).to.have.length(1);
    });

    it('is pending until Paddle decides; the next one waits', async () => {
      fake.adjustments.refund_status = 'pending_approval';
      const pending = await payments.refund!(refund(id));
      expect(pending.outcome).to.equal('pending');
      const next = await catchFailure(() => payments.refund!(refund(id, { refund_id: 'ref_2' })));
      expect(next).to.include({ error_class: 'wait', is_of_record: true });
      const adjustment_id = fake.adjustments.list(id)[0]!.id;
      fake.adjustments.decide(adjustment_id, 'rejected');
      expect(await payments.refund!(refund(id))).to.deep.equal({
        ...{ outcome: 'failed', error: `rejected: Paddle did not make the refund ${adjustment_id}` },
      });
      expect((await payments.refund!(refund(id, { refund_id: 'ref_2' }))).outcome).to.equal('pending');
    });

    for (const failure of ['lost_answer', 'lost_fault', 'lost_request'] as const)
      it(`${failure} refunds once`, async () => {
        fake.disturb(/^POST adjustments$/, failure);
        expect((await catchFailure(() => payments.refund!(refund(id)))).error_class).to.equal('wait');
        expect((await payments.refund!(refund(id))).outcome).to.equal('succeeded');
        expect(fake.adjustments.list(id)).to.have.length(1);
      });

    it('waits until the transaction is completed, and is refused before it is paid', async () => {
      const [paid, unpaid] = [await openPage({ key: 'pay_2/1' }), await openPage({ key: 'pay_3/1' })];
      fake.book.payTransaction(paid, { isProcessed: false });
      expect((await catchFailure(() => payments.refund!(refund(paid)))).error_class).to.equal('wait');
      expect((await catchFailure(() => payments.refund!(refund(unpaid)))).message).to.contain('nobody has paid');
    });
  });
});
