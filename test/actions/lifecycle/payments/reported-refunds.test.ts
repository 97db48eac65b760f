/** docs/rules/payments.md, "Refunds" and "Paid at a provider": refunds that Stripe's fake reports for a payment. */
import { expect } from 'chai';
import { refreshPayment } from '../../../../actions/lifecycle/payments/process-payment.ts';
import { recordInvoiceReport } from '../../../../actions/lifecycle/payments/record-provider-payment.ts';
import type { ReportedPayment } from '../../../../core/payments/provider-payments.ts';
import { ConnectionModel } from '../../../../storage/models/foundation/connection.ts';
import { PaymentModel } from '../../../../storage/models/payments/payment.ts';
import { startTestApi, type TestApi } from '../../../support/api.ts';
import { StripeFake } from '../../../support/providers/stripe-fake.ts';
import { endRefund } from '../../../support/providers/stripe-fake-payments.ts';

type Answer = {
  id: string;
  gateway_payment_id: string;
  refunded_amount: string;
  error_message: string;
  refunds: { amount: string; refund_status: string }[];
};

describe('refunds that a provider reports', () => {
  let fake: StripeFake;
  let api: TestApi;
  let connection_id: string;
  let customers = 0;
  const now = new Date();

  before(async () => {
    fake = await new StripeFake().start();
    const keys = 'a key of the settings that has 32 characters';
    api = await startTestApi({ now, config: { SECRETS_KEYS: keys, PROVIDER_ADDRESSES: `stripe=${fake.url.href}` } });
    const encrypted_secret_data = { stripe: { secret_key: 'sk_test_fake' } };
    connection_id = (await ok('POST', '/connections', { name: 'S', provider_type: 'stripe', encrypted_secret_data }))
      .id;
  });
  after(async () => {
    await api.stop();
    await fake.stop();
  });

  const ok = async (method: string, path: string, body?: unknown) => {
    const answer = await api.request<Answer>(method, path, body === undefined ? {} : { body });
    expect(answer.status, answer.text).to.be.lessThan(300);
    return answer.body;
  };
  const newInvoice = async () => {
    const customer = { external_id: `payer ${++customers}`, name: 'Acme', email: 'books@example.com' };
    const { id: customer_id } = await ok('POST', '/customers', customer);
    const line_items = [{ display_name: 'Help', amount: '100', quantity: '1' }];
    const amounts = { amount_due: '100', total: '100', subtotal: '100', currency: 'usd', line_items };
    const invoice = { customer_id, ...amounts, invoice_status: 'FINALIZED' };
    return { customer_id, invoice_id: (await ok('POST', '/invoices', invoice)).id };
  };
  const pay = (invoice_id: string, terms: object = {}) =>
    ok('POST', '/payments', {
      ...{ destination_type: 'INVOICE', destination_id: invoice_id, amount: '100', currency: 'usd' },
      ...{ payment_method_type: 'CARD', payment_gateway: 'stripe', payment_method_id: 'pm_card_visa', ...terms },
    });
  const refundThere = ({ gateway_payment_id }: Answer, amount: number) =>
    fake.book.refundPayment(gateway_payment_id, amount * 100).id;
  const refresh = async ({ id }: Answer) => {
    await refreshPayment(api.services, await PaymentModel.fetch(api.scope, id, { database: api.services.postgres }), {
      now,
    });
    return ok('GET', `/payments/${id}`);
  };
  const amountsOf = ({ refunds }: Answer) => refunds.map(({ amount }) => Number(amount)).sort((a, b) => a - b);

  it('are recorded if they fit, although one between them was given back by a credit note already', async () => {
    const { invoice_id } = await newInvoice();
    const payment = await pay(invoice_id);
    const line = await api.services.postgres('invoice_line_items').where({ invoice_id }).first();
    const line_items = [{ invoice_line_item_id: line.id, amount: '70' }];
    await ok('POST', '/creditnotes', { invoice_id, reason: 'BILLING_ERROR', line_items });
    for (const amount of [20, 50, 10]) refundThere(payment, amount);
    const read = await refresh(payment);
    expect(amountsOf(read)).to.deep.equal([10, 20]);
    expect(read.error_message).to.equal(
      `50 usd of payment ${payment.id} was refunded at stripe, but is given back here already`,
    );
  });

  it('and fail after they were recorded as a sum are named with the part that is missing there', async () => {
    const payment = await pay((await newInvoice()).invoice_id);
    const [failing] = [refundThere(payment, 20), refundThere(payment, 30)];
    await refresh(payment);
    // Records of providers that report only the sum have no id of a refund there.
    await api.services.postgres('payment_refunds').where({ payment_id: payment.id, amount: '20' }).del();
    const sum = { amount: '50', gateway_refund_id: null };
    await api.services.postgres('payment_refunds').where({ payment_id: payment.id }).update(sum);
    expect((await refresh(payment)).error_message).to.equal(null);
    endRefund(fake.book, failing!, 'failed');
    for (let report = 0; report < 2; report++) {
      const read = await refresh(payment);
      expect([read.refunded_amount, read.error_message]).to.deep.equal([
        '50',
        `20 usd that payment ${payment.id} records as refunded may have failed at stripe: compare its refunds there`,
      ]);
    }
  });

  it('are recorded while the customer is locked, whose lock comes before that of the invoice', async () => {
    const { customer_id, invoice_id } = await newInvoice();
    const payment = await pay(invoice_id, { save_card_and_make_default: true });
    const connection = await ConnectionModel.fetch(api.scope, connection_id, { database: api.services.postgres });
    const there = { amount: '30', refund_status: 'succeeded', error: null, refund_id: null } as const;
    const reported: ReportedPayment = {
      ...{ provider_payment_id: payment.gateway_payment_id, reported_payment_id: payment.id, amount: '100' },
      ...{ currency: 'usd', paid_at: null, provider_tax: null, refunded_amount: '30' },
      payment_status: 'succeeded',
      refunds: [{ ...there, provider_refund_id: 're_there' }],
    };
    await api.services.postgres.transaction(async (other) => {
      await other('customers').where({ id: customer_id }).forUpdate().first();
      await api.services.postgres.transaction(async (transaction) => {
        await transaction.raw(`set local lock_timeout = '2s'`);
        await recordInvoiceReport(api.services, transaction, {
          ...{ connection, can_refund: true, invoice_id, sent_total: null, now },
          reported: { invoice_status: 'paid', total: '100', currency: 'usd', payments: [reported] },
        });
      });
    });
    expect(amountsOf(await ok('GET', `/payments/${payment.id}`))).to.deep.equal([30]);
  });
});
