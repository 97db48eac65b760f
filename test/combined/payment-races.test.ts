/** Requests, the schedule and notifications about one payment at Stripe at the same time: the money here is the money there. */
import { expect } from 'chai';
import { processDuePayments } from '../../actions/lifecycle/payments/due-payments.ts';
import { refreshPayment } from '../../actions/lifecycle/payments/process-payment.ts';
import { findInvoiceFaults } from '../../storage/audit/invoices.ts';
import { PaymentModel } from '../../storage/models/payments/payment.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { StripeFake } from '../support/providers/stripe-fake.ts';
import { actOnIntent, endRefund, listRefunds } from '../support/providers/stripe-fake-payments.ts';

const HOUR_MS = 3_600_000;

describe('one payment at Stripe', () => {
  let fake: StripeFake;
  let api: TestApi;
  let customers = 0;
  let now: Date;

  const ok = async (method: string, path: string, body: unknown) => {
    const answer = await api.request<{ id: string; gateway_payment_id: string }>(method, path, { body });
    expect(answer.status, answer.text).to.be.lessThan(300);
    return answer.body;
  };
  const runDue = async () => {
    now = new Date(now.getTime() + HOUR_MS);
    api.setNow(now);
    expect((await processDuePayments(api.services, { now })).failed).to.deep.equal([]);
  };
  /** A bank debit that has succeeded at Stripe and is PROCESSING here. */
  const newDebit = async () => {
    const { id: customer_id } = await ok('POST', '/customers', { external_id: `acme ${++customers}` });
    const line_items = [{ display_name: 'Help', amount: '100', quantity: '1' }];
    const amounts = { amount_due: '100', total: '100', subtotal: '100', currency: 'usd', line_items };
    const invoice = await ok('POST', '/invoices', { customer_id, ...amounts, invoice_status: 'FINALIZED' });
    const destination = { destination_type: 'INVOICE', destination_id: invoice.id, amount: '100', currency: 'usd' };
    const method = {
      payment_gateway: 'stripe',
      payment_method_type: 'ACH',
      payment_method_id: 'pm_usBankAccount_success',
    };
    const { id, gateway_payment_id } = await ok('POST', '/payments', { ...destination, ...method });
    actOnIntent(fake.book, gateway_payment_id, 'succeeded');
    return { id, gateway_payment_id, invoice_id: invoice.id };
  };
  const refresh = async (id: string) => {
    const payment = await PaymentModel.fetch(api.scope, id, { database: api.services.postgres });
    return refreshPayment(api.services, payment, { now });
  };

  before(async () => {
    fake = await new StripeFake().start();
    const config = {
      SECRETS_KEYS: 'a key of the settings that has 32 characters',
      PROVIDER_ADDRESSES: `stripe=${fake.url.href}`,
    };
    api = await startTestApi({ now: new Date(), config });
    const encrypted_secret_data = { stripe: { secret_key: 'sk_test_fake' } };
    await ok('POST', '/connections', { name: 'Stripe', provider_type: 'stripe', encrypted_secret_data });
  });
  beforeEach(() => {
    now = new Date();
    api.setNow(now);
  });
  after(async () => {
    await api.stop();
    await fake.stop();
  });

  for (const end of ['succeeded', 'failed'] as const)
    it(`is paid, refunded and voided at once, and its refund has ${end}`, async () => {
      for (let round = 0; round < 4; round++) {
        const { id, gateway_payment_id, invoice_id } = await newDebit();
        const refund = (amount: string) => api.request('POST', `/payments/${id}/refund` as const, { body: { amount } });
        if (round % 2 === 0) await refresh(id);
        await Promise.all([
          refresh(id),
          processDuePayments(api.services, { now: new Date(now.getTime() + HOUR_MS) }),
          refund('40'),
          api.request('POST', `/invoices/${invoice_id}/void` as const, { body: {} }),
          refund('70'),
          refresh(id),
        ]);
        for (const { id: refund_id, status } of listRefunds(fake.book, gateway_payment_id))
          if (status === 'pending') endRefund(fake.book, refund_id, end);
        await Promise.all([refresh(id), runDue(), refresh(id)]);
        await runDue();
        const refunds = listRefunds(fake.book, gateway_payment_id).filter(({ status }) => status !== 'failed');
        const there = refunds.reduce((sum, { amount }) => sum + amount, 0);
        const payment = await PaymentModel.fetch(api.scope, id, { database: api.services.postgres });
        expect(Number(payment.refunded_amount) * 100).to.equal(there);
        expect(['SUCCEEDED', 'PARTIALLY_REFUNDED', 'REFUNDED']).to.include(payment.payment_status);
      }
      expect(await findInvoiceFaults(api.services.postgres, { invoices: null, limit: 5 })).to.deep.equal([]);
    });
});
