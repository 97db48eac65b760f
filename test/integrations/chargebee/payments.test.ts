/** Charges, pages, refunds and saved payment methods of a site of Chargebee. Each exists once, whatever is interrupted. */
import { expect } from 'chai';
import type { ProviderAccount, PushedInvoice } from '../../../integrations/account.ts';
import type { AccountCharge, AccountPaymentPage, AccountRefund } from '../../../integrations/account-payments.ts';
import { chargebee } from '../../../integrations/chargebee/provider.ts';
import { API_KEY, ChargebeeFake } from '../../support/providers/chargebee-fake.ts';
import type { InvoiceRecord, SiteRecord, TransactionRecord } from '../../support/providers/chargebee-fake-site.ts';
import { catchFailure } from '../../support/providers/failure.ts';

const PAYMENT_ID = 'pay_01JZ8K3M5N7P9Q1R3S5T7V9W1X';
const OTHER_ID = 'pay_01JZ8K3M5N7P9Q1R3S5T7V9W1Y';
const CUSTOMER_ID = 'cust_1';
const HOUR_S = 3_600;
const PAGE_S = 5 * 86_400;
const PUSH = { key: 'imap_1', key_age_seconds: 0, key_created_at: new Date(), is_key_renewed: false };

describe('integrations/chargebee/payments', () => {
  let fake: ChargebeeFake;
  let account: ProviderAccount;
  let copy_id: string;

  const push = async (invoice_id: string): Promise<string> => {
    const lines = [{ description: 'a', amount: '100', line_item_id: null, period_start: null, period_end: null }];
    const terms = { invoice_number: 'INV-1', provider_customer_id: CUSTOMER_ID, currency: 'usd', due_date: null };
    const invoice: PushedInvoice = { ...PUSH, ...terms, key: invoice_id, invoice_id, lines, total: '100' };
    return (await account.pushInvoice!(invoice)).provider_entity_id;
  };

  beforeEach(async () => {
    fake = await new ChargebeeFake().start();
    account = await chargebee.account!.open({ site: 'fake-test', api_key: API_KEY }, { address: fake.url });
    const address = { line1: '', line2: '', city: '', state: '', postal_code: '', country: '' };
    const customer = { customer_id: CUSTOMER_ID, external_id: 'acme', name: 'Acme', email: '', address };
    await account.pushCustomer!({ ...PUSH, key: 'customer', ...customer });
    copy_id = await push('inv_1');
  });
  afterEach(() => fake.stop());

  const requested = () => ({
    ...{ key: 'k1', requested_at: new Date(), key_age_seconds: 0, amount: '100', currency: 'usd' },
    ...{ payment_id: PAYMENT_ID, invoice_id: 'inv_1', invoice_number: 'INV-1', provider_customer_id: CUSTOMER_ID },
    ...{ provider_invoice_id: copy_id as string | null, gateway_payment_id: null as string | null },
  });
  const charge = (source: SiteRecord, more: Partial<AccountCharge> = {}): AccountCharge => ({
    ...requested(),
    is_page: false,
    provider_payment_method_id: source.id,
    success_url: null,
    ...more,
  });
  const page = (more: Partial<AccountPaymentPage> = {}): AccountPaymentPage => ({
    ...requested(),
    is_page: true,
    success_url: 'https://shop.example/done',
    cancel_url: null,
    saves_payment_method: false,
    ...more,
  });
  const payments = () => account.payments!;
  const source = (behaviour: 'pays' | 'declines' | 'pends' | 'breaks') => fake.site.addSource(CUSTOMER_ID, behaviour);
  const transactions = () => fake.site.list<TransactionRecord>('transaction');
  const copy = () => fake.site.find<InvoiceRecord>('invoice', copy_id);

  describe('charge', () => {
    it('pays the copy of the invoice by the payment source', async () => {
      const card = source('pays');
      const outcome = await payments().charge!(charge(card));
      const [made] = transactions();
      expect(outcome).to.deep.equal({ outcome: 'succeeded', gateway_payment_id: made!.id });
      expect(made).to.include({ amount: 10_000, payment_source_id: card.id, initiator_type: 'merchant' });
      expect(copy().status).to.equal('paid');
    });

    it('of a part pays a part', async () => {
      await payments().charge!(charge(source('pays'), { amount: '40' }));
      expect(copy().amount_due).to.equal(6_000);
    });

    it('that is declined has failed, with the reason', async () => {
      const outcome = await payments().charge!(charge(source('declines')));
      expect(outcome).to.include({ outcome: 'failed', gateway_payment_id: transactions()[0]!.id });
      expect(outcome)
        .to.have.property('error')
        .that.contains('payment_processing_failed')
        .and.contains('card declined');
      expect(copy().amount_due).to.equal(10_000);
    });

    it('whose result Chargebee does not know pends, although it answers a failure', async () => {
      const outcome = await payments().charge!(charge(source('breaks')));
      expect(outcome).to.include({ outcome: 'processing', gateway_payment_id: transactions()[0]!.id });
    });

    it('that Chargebee refuses because it was made already has succeeded', async () => {
      const card = source('pays');
      fake.disturb(/collect_payment/, 'lost_answer');
      await catchFailure(() => payments().charge!(charge(card)));
      fake.forgetKeys();
      const repeated = await payments().charge!(charge(card, { key_age_seconds: 60 }));
      expect(repeated).to.deep.equal({ outcome: 'succeeded', gateway_payment_id: transactions()[0]!.id });
    });

    it('after another of the invoice is not confused with it', async () => {
      const card = source('pays');
      await payments().charge!(charge(card, { key: 'k2', payment_id: OTHER_ID, amount: '40' }));
      const late = charge(card, { amount: '40', key_age_seconds: HOUR_S });
      expect(await payments().findOutcome(late)).to.equal(null);
      const repeated = { ...late, key: 'k4', payment_id: OTHER_ID };
      expect(await payments().findOutcome(repeated), 'another attempt').to.equal(null);
      const declined = charge(source('declines'), { key: 'k3', amount: '40' });
      expect((await payments().charge!(declined)).outcome).to.equal('failed');
    });

    it('that pends is read until it ends', async () => {
      const outcome = await payments().charge!(charge(source('pends')));
      const { id } = transactions()[0]!;
      const pending = { outcome: 'processing', gateway_payment_id: id, url: null, check_at: null };
      expect(outcome).to.deep.equal(pending);
      const known = charge(source('pays'), { gateway_payment_id: id });
      expect(await payments().findOutcome(known)).to.deep.equal(pending);
      expect((await catchFailure(() => payments().cancel(id))).error_class).to.equal('person');
      fake.site.endPayment(id, 'success');
      expect(await payments().findOutcome(known)).to.deep.equal({ outcome: 'succeeded', gateway_payment_id: id });
      await payments().cancel(id);
    });

    it('is made once after a lost answer, while Chargebee knows the key', async () => {
      const card = source('pays');
      fake.disturb(/collect_payment/, 'lost_answer');
      await catchFailure(() => payments().charge!(charge(card)));
      // Without this, a payment that is voided now would count as one that was never charged.
      const made = { outcome: 'succeeded', gateway_payment_id: transactions()[0]!.id };
      expect(await payments().findOutcome(charge(card))).to.deep.equal(made);
      expect(await payments().charge!(charge(card))).to.include({ outcome: 'succeeded' });
      expect(transactions()).to.have.length(1);
    });

    it('is found after a lost answer when Chargebee has forgotten the key', async () => {
      const card = source('pays');
      fake.disturb(/collect_payment/, 'lost_answer');
      await catchFailure(() => payments().charge!(charge(card, { amount: '40' })));
      fake.forgetKeys();
      const late = charge(card, { amount: '40', key_age_seconds: HOUR_S });
      const expected = { outcome: 'succeeded', gateway_payment_id: transactions()[0]!.id };
      expect(await payments().findOutcome(late)).to.deep.equal(expected);
      expect(await payments().charge!(late)).to.deep.equal(expected);
      expect(transactions()).to.have.length(1);
    });

    it('that was never made is not confused with other money', async () => {
      await account.pushPayment!({
        ...{ ...PUSH, key: 'p', payment_id: OTHER_ID, provider_customer_id: CUSTOMER_ID, provider_invoice_id: copy_id },
        ...{ amount: '10', currency: 'usd', paid_at: new Date().toISOString(), reference: 'x' },
      });
      fake.site.payInvoice(copy_id, { amount: 1_000 });
      const late = charge(source('pays'), { key_age_seconds: HOUR_S });
      expect(await payments().findOutcome(late)).to.equal(null);
    });

    it('waits until the invoice is sent', async () => {
      const unsent = charge(source('pays'), { provider_invoice_id: null });
      const { error_class, is_of_record, message } = await catchFailure(() => payments().charge!(unsent));
      expect([error_class, is_of_record]).to.deep.equal(['wait', true]);
      expect(message).to.contain('inv_1 is not there yet');
      expect(await payments().findOutcome(unsent)).to.equal(null);
    });

    it('never collects more than what is due', async () => {
      const card = source('pays');
      await payments().charge!(charge(card));
      const second = await payments().charge!(charge(card, { key: 'k2', payment_id: OTHER_ID }));
      expect(second).to.include({ outcome: 'failed', gateway_payment_id: null });
      expect(transactions()).to.have.length(1);
    });

    it('of a payment that is gone needs a person', async () => {
      const gone = charge(source('pays'), { gateway_payment_id: 'txn_missing' });
      expect((await catchFailure(() => payments().findOutcome(gone))).is_missing).to.equal(true);
    });

    it('in another currency than requested waits for a person', async () => {
      await payments().charge!(charge(source('pays')));
      const [made] = transactions();
      made!.currency_code = 'EUR';
      const known = charge(source('pays'), { gateway_payment_id: made!.id });
      const { message, is_of_record } = await catchFailure(() => payments().findOutcome(known));
      expect([message.includes('received 100 eur'), is_of_record]).to.deep.equal([true, true]);
    });
  });

  describe('page', () => {
    const open = async (more: Partial<AccountPaymentPage> = {}) => {
      const outcome = await payments().openPage!(page(more));
      if (outcome.outcome !== 'processing') throw new Error(outcome.outcome);
      return { outcome, page_id: fake.site.list('hosted_page')[0]!.id };
    };
    const find = (more: Partial<AccountPaymentPage> = {}) =>
      payments().findOutcome(page({ gateway_payment_id: copy_id, ...more }));

    it('is known by the id of the copy, and paid by its customer', async () => {
      const { outcome, page_id } = await open();
      expect(outcome).to.deep.include({ gateway_payment_id: copy_id, check_at: null });
      expect(outcome.url).to.contain(page_id);
      expect(await find()).to.deep.equal(outcome);
      const paid = fake.site.payPage(page_id);
      expect(await find()).to.deep.equal({ outcome: 'succeeded', gateway_payment_id: paid.id });
      const { payments: read } = (await account.pullInvoice!(copy_id))!;
      expect(read.map(({ reported_payment_id }) => reported_payment_id)).to.deep.equal([PAYMENT_ID]);
    });

    it('is opened once, also after the key is forgotten', async () => {
      const { outcome } = await open();
      fake.forgetKeys();
      expect(await payments().openPage!(page({ key_age_seconds: HOUR_S }))).to.deep.equal(outcome);
      expect(fake.site.list('hosted_page')).to.have.length(1);
    });

    for (const at of [/^POST hosted_pages/, /^POST comments/])
      it(`is opened once after a lost answer: ${at.source}`, async () => {
        fake.disturb(at, 'lost_answer');
        await catchFailure(() => payments().openPage!(page()));
        await open();
        expect([fake.site.list('hosted_page').length, fake.site.list('comment').length]).to.deep.equal([1, 1]);
      });

    it('of another amount than what is due is refused, with both', async () => {
      const { error_class, message } = await catchFailure(() => payments().openPage!(page({ amount: '40' })));
      expect(error_class).to.equal('person');
      expect(message).to.contain('a page over 40 usd').and.contain('100 usd is due there');
      expect(fake.site.list('hosted_page')).to.deep.equal([]);
    });

    it('waits until the invoice is sent', async () => {
      const unsent = () => payments().openPage!(page({ provider_invoice_id: null }));
      expect(await catchFailure(unsent)).to.include({ error_class: 'wait', is_of_record: true });
    });

    it('fails when it has expired, and later money is not counted as its own', async () => {
      await open();
      fake.site.ahead_seconds = PAGE_S + HOUR_S;
      const [comment] = fake.site.list('comment');
      const past = Math.floor(Date.now() / 1_000) - HOUR_S;
      Object.assign(comment!, {
        created_at: past - PAGE_S,
        notes: `Farthing page hp_1 of ${PAYMENT_ID} until ${past}`,
      });
      expect(await find()).to.include({ outcome: 'failed', gateway_payment_id: copy_id });
      await payments().cancel(copy_id);
      fake.site.payInvoice(copy_id);
      expect(await find()).to.include({ outcome: 'failed' });
      expect((await account.pullInvoice!(copy_id))!.payments[0]!.reported_payment_id).to.equal(null);
    });

    it('fails when the invoice is paid otherwise', async () => {
      await open();
      await payments().charge!(charge(source('pays'), { key: 'k2', payment_id: OTHER_ID }));
      expect(await find()).to.include({
        outcome: 'failed',
        error: `closed: the invoice ${copy_id} is paid at Chargebee`,
      });
      expect((await account.pullInvoice!(copy_id))!.payments[0]!.reported_payment_id).to.equal(null);
    });

    it('cannot be closed before its invoice is void', async () => {
      await open();
      const { error_class, message } = await catchFailure(() => payments().cancel(copy_id));
      expect([error_class, message.includes('cannot close the page')]).to.deep.equal(['person', true]);
      await account.voidInvoice!(copy_id, 'void');
      await payments().cancel(copy_id);
      expect(await find()).to.include({ outcome: 'failed' });
    });

    it('with a debit on its way pends', async () => {
      await open();
      const { id } = fake.site.payInvoice(copy_id, { status: 'in_progress' });
      expect(await find()).to.deep.equal({ outcome: 'processing', gateway_payment_id: id, url: null, check_at: null });
    });

    it('that pays two invoices pays each once', async () => {
      const { page_id } = await open();
      const other = await push('inv_2');
      const paid = fake.site.payPage(page_id);
      expect(paid.amount).to.equal(20_000);
      expect(await find()).to.deep.equal({ outcome: 'succeeded', gateway_payment_id: paid.id });
      for (const [id, reported_payment_id] of [
        [copy_id, PAYMENT_ID],
        [other, null],
      ] as const)
        expect((await account.pullInvoice!(id))!.payments[0]).to.include({ amount: '100', reported_payment_id });
    });

    it('that was never opened has no outcome', async () => {
      expect(await payments().findOutcome(page())).to.equal(null);
      expect(await payments().findOutcome(page({ provider_invoice_id: null }))).to.equal(null);
    });
  });

  describe('refund', () => {
    let payment_id: string;
    const refund = (more: Partial<AccountRefund> = {}): AccountRefund => ({
      ...{ key: 'rfnd_1', refund_id: 'rfnd_1', requested_at: new Date(), key_age_seconds: 0 },
      ...{ gateway_payment_id: payment_id, amount: '30', currency: 'usd', ...more },
    });
    const refunds = () => transactions().filter(({ type }) => type === 'refund');

    beforeEach(() => {
      payment_id = fake.site.payInvoice(copy_id).id;
    });

    it('gives money back through the invoice', async () => {
      expect(await payments().refund!(refund())).to.deep.equal({
        outcome: 'succeeded',
        gateway_refund_id: refunds()[0]!.id,
      });
      expect(refunds()[0]).to.include({ amount: 3_000, refunded_txn_id: payment_id });
      const known = charge(source('pays'), { gateway_payment_id: payment_id });
      expect(await payments().findOutcome(known)).to.deep.include({
        refunded_amount: '30',
        refunds: [
          {
            ...{ provider_refund_id: refunds()[0]!.id, amount: '30', refund_status: 'succeeded', error: null },
            refund_id: 'rfnd_1',
          },
        ],
      });
    });

    it('is made once after a lost answer, within the life of the key and after it', async () => {
      fake.disturb(/refund$/, 'lost_answer');
      await catchFailure(() => payments().refund!(refund()));
      const first = await payments().refund!(refund({ key_age_seconds: 60 }));
      fake.forgetKeys();
      expect(await payments().refund!(refund({ key_age_seconds: HOUR_S }))).to.deep.equal(first);
      expect(refunds()).to.have.length(1);
    });

    for (const [status, expected] of [
      ['in_progress', 'pending'],
      ['failure', 'failed'],
    ] as const)
      it(`that is ${status} is ${expected}`, async () => {
        fake.site.refund_status = status;
        expect((await payments().refund!(refund())).outcome).to.equal(expected);
        expect((await payments().refund!(refund({ key_age_seconds: 60 }))).outcome).to.equal(expected);
        expect(refunds()).to.have.length(1);
      });

    it('of more than what was paid is refused', async () => {
      const { message } = await catchFailure(() => payments().refund!(refund({ amount: '100.01' })));
      expect(message).to.contain('refund_amount');
    });

    it('needs a person if Chargebee could choose another payment', async () => {
      const other = await push('inv_2');
      const first = fake.site.payInvoice(other, { amount: 4_000 });
      fake.site.payInvoice(other);
      const { message } = await catchFailure(() => payments().refund!(refund({ gateway_payment_id: first.id })));
      expect(message).to.contain('has 2 payments by a gateway');
    });
  });

  describe('saved methods', () => {
    it('are those that can be charged, with the default', async () => {
      const first = source('pays');
      const debit = fake.site.addSource(CUSTOMER_ID, 'pays', { type: 'direct_debit', card: undefined });
      fake.site.addSource(CUSTOMER_ID, 'pays', { status: 'expired' });
      fake.site.deleteSource(source('pays').id);
      expect(await payments().listPaymentMethods!(CUSTOMER_ID)).to.deep.equal([
        { provider_payment_method_id: debit.id, payment_method_type: 'ACH', is_default: false, card: null },
        {
          ...{ provider_payment_method_id: first.id, payment_method_type: 'CARD', is_default: true },
          card: { brand: 'visa', last4: '1111', exp_month: 9, exp_year: 2030 },
        },
      ]);
      expect((await catchFailure(() => payments().listPaymentMethods!('cust_2'))).error_class).to.equal('person');
    });

    it('are entered on a page, and read by their id', async () => {
      const started = await payments().startCardSetup!({
        ...{ key: 'setup', customer_id: 'c', provider_customer_id: CUSTOMER_ID, success_url: 'https://shop.example' },
        ...{ cancel_url: null, sets_default: true },
      });
      expect(started.url).to.contain(started.provider_setup_id);
      expect(await payments().readPaymentMethod!(started.provider_setup_id)).to.equal(null);
      const { id } = source('pays');
      const read = { provider_payment_method_id: id, payment_method_type: 'CARD', sets_default: true };
      expect(await payments().readPaymentMethod!(id)).to.deep.equal({ ...read, provider_customer_id: CUSTOMER_ID });
      fake.site.deleteSource(id);
      expect(await payments().readPaymentMethod!(id)).to.deep.equal({ ...read, provider_customer_id: null });
    });
  });
});
