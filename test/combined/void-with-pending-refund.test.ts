/**
 * docs/rules/payments.md, "Refunds": an invoice is voided while a refund of its payment is pending. If the refund fails, its amount goes to the
 * prepaid wallet, like the payments that the void returned.
 */
import { expect } from 'chai';
import { processDuePayments } from '../../actions/lifecycle/payments/due-payments.ts';
import { refreshPayment } from '../../actions/lifecycle/payments/process-payment.ts';
import { findInvoiceFaults } from '../../storage/audit/invoices.ts';
import { PaymentModel } from '../../storage/models/payments/payment.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { StripeFake } from '../support/providers/stripe-fake.ts';
import { actOnIntent, endRefund, listRefunds } from '../support/providers/stripe-fake-payments.ts';

const HOUR_MS = 3_600_000;
type Answer = Record<'id' | 'gateway_payment_id' | 'refunded_amount' | 'payment_status' | 'amount_paid', string>;
type Debit = { readonly id: string; readonly gateway_payment_id: string };

describe('an invoice that is voided while a refund is pending', () => {
  let fake: StripeFake;
  let api: TestApi;
  let customers = 0;
  const now = new Date();

  before(async () => {
    fake = await new StripeFake().start();
    const keys = 'a key of the settings that has 32 characters';
    api = await startTestApi({ now, config: { SECRETS_KEYS: keys, PROVIDER_ADDRESSES: `stripe=${fake.url.href}` } });
    const encrypted_secret_data = { stripe: { secret_key: 'sk_test_fake' } };
    await ok('POST', '/connections', { name: 'Stripe', provider_type: 'stripe', encrypted_secret_data });
  });
  afterEach(async () => {
    expect(await findInvoiceFaults(api.services.postgres, { invoices: null, limit: 5 })).to.deep.equal([]);
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
    const { id: customer_id } = await ok('POST', '/customers', { external_id: `acme ${++customers}`, name: 'Acme' });
    const line_items = [{ display_name: 'Help', amount: '100', quantity: '1' }];
    const amounts = { amount_due: '100', total: '100', subtotal: '100', currency: 'usd', line_items };
    const { id: invoice_id } = await ok('POST', '/invoices', { customer_id, ...amounts, invoice_status: 'FINALIZED' });
    return { customer_id, invoice_id };
  };
  const refresh = async (id: string) =>
    refreshPayment(api.services, await PaymentModel.fetch(api.scope, id, { database: api.services.postgres }), { now });
  const beginDebit = (invoice_id: string, amount: string) =>
    ok('POST', '/payments', {
      ...{ destination_type: 'INVOICE', destination_id: invoice_id, amount, currency: 'usd' },
      ...{ payment_gateway: 'stripe', payment_method_type: 'ACH', payment_method_id: 'pm_usBankAccount_success' },
    });
  const endDebit = async ({ id, gateway_payment_id }: Debit) => {
    actOnIntent(fake.book, gateway_payment_id, 'succeeded');
    await refresh(id);
  };
  /** Pays by a bank debit, whose refunds are pending at first. */
  const payByDebit = async (invoice_id: string, amount: string): Promise<Debit> => {
    const debit = await beginDebit(invoice_id, amount);
    await endDebit(debit);
    return debit;
  };
  const refund = ({ id }: Debit, amount: string) => ok('POST', `/payments/${id}/refund`, { amount });
  const failRefunds = async ({ id, gateway_payment_id }: Debit) => {
    const pending = listRefunds(fake.book, gateway_payment_id).filter(({ status }) => status === 'pending');
    for (const one of pending) endRefund(fake.book, one.id, 'failed');
    for (let times = 0; times < 2; times++) {
      await processDuePayments(api.services, { now: new Date(now.getTime() + 2 * HOUR_MS) });
      await refresh(id);
    }
  };
  const sumWallets = async (customer_id: string) => {
    const wallets = await api.services.postgres('wallets').where({ customer_id }).select('balance');
    return wallets.reduce((sum, { balance }) => sum + Number(balance), 0);
  };
  const show = async (invoice_id: string) => {
    const { payment_status, amount_paid, refunded_amount } = await ok('GET', `/invoices/${invoice_id}`);
    return `${payment_status}, ${amount_paid} paid, ${refunded_amount} returned`;
  };

  it('gives a part of the payment, whose refund has failed, to the wallet', async () => {
    const { customer_id, invoice_id } = await newInvoice();
    const debit = await payByDebit(invoice_id, '100');
    await refund(debit, '40');
    await ok('POST', `/invoices/${invoice_id}/void`);
    expect(await sumWallets(customer_id)).to.equal(60);
    await failRefunds(debit);
    expect(await sumWallets(customer_id)).to.equal(100);
    expect(await show(invoice_id)).to.equal('REFUNDED, 100 paid, 100 returned');
    expect(await ok('GET', `/payments/${debit.id}`)).to.include({ payment_status: 'SUCCEEDED', refunded_amount: '0' });
    const again = await api.request('POST', `/payments/${debit.id}/refund`, { body: {} });
    expect(again.status, 'it is not returned a second time').to.equal(400);
  });

  it('gives each of several failed refunds, and none that succeeded', async () => {
    const { customer_id, invoice_id } = await newInvoice();
    const debit = await payByDebit(invoice_id, '100');
    await refund(debit, '10');
    endRefund(fake.book, listRefunds(fake.book, debit.gateway_payment_id)[0]!.id, 'succeeded');
    await refresh(debit.id);
    for (const amount of ['20', '30']) await refund(debit, amount);
    await ok('POST', `/invoices/${invoice_id}/void`);
    expect(await sumWallets(customer_id)).to.equal(40);
    await failRefunds(debit);
    expect(await sumWallets(customer_id)).to.equal(90);
    expect(await show(invoice_id)).to.equal('REFUNDED, 100 paid, 100 returned');
  });

  it('gives a partial payment whose refund was owed again', async () => {
    const { customer_id, invoice_id } = await newInvoice();
    const debit = await payByDebit(invoice_id, '40');
    await refund(debit, '40');
    await ok('POST', `/invoices/${invoice_id}/void`);
    expect(await sumWallets(customer_id)).to.equal(0);
    await failRefunds(debit);
    expect(await sumWallets(customer_id)).to.equal(40);
    expect(await show(invoice_id)).to.equal('REFUNDED, 40 paid, 40 returned');
  });

  it('gives an overpaid amount whose refund by itself has failed', async () => {
    const { customer_id, invoice_id } = await newInvoice();
    const debit = await beginDebit(invoice_id, '100');
    const line = await api.services.postgres('invoice_line_items').where({ invoice_id }).first();
    const line_items = [{ invoice_line_item_id: line.id, amount: '30' }];
    await ok('POST', '/creditnotes', { invoice_id, reason: 'BILLING_ERROR', line_items });
    await endDebit(debit);
    await ok('POST', `/invoices/${invoice_id}/void`);
    expect(await sumWallets(customer_id)).to.equal(70);
    await failRefunds(debit);
    expect(await sumWallets(customer_id)).to.equal(100);
    expect(await show(invoice_id)).to.equal('REFUNDED, 100 paid, 100 returned');
  });
});
