/** docs/rules/payments.md through an account at Razorpay: payments that a person decides, and credentials of another account. */
import { expect } from 'chai';
import { beginAttempt } from '../../../actions/lifecycle/payments/begin-attempt.ts';
import { ConnectedAccount } from '../../support/providers/connected-account.ts';
import { RazorpayDouble } from '../../support/providers/razorpay-double.ts';
import type { PaymentRecord, RazorpayRecord } from '../../support/providers/razorpay-fake-book.ts';

type Refused = { message: string; details: Record<string, string> };

describe('charges at Razorpay', () => {
  const provider = new RazorpayDouble();
  const { book } = provider.fake;
  let account: ConnectedAccount;

  before(async () => {
    account = await ConnectedAccount.open(provider);
  });
  after(() => account.stop());
  afterEach(() => provider.fake.clearDisturbances());

  const listPaid = () => book.list<PaymentRecord>('payment').filter(({ status }) => status === 'captured');
  const show = (id: string) => account.request('GET', `/payments/${id}`);
  const refuse = async (method: 'PUT' | 'DELETE', path: `/${string}`, body?: object) => {
    const answer = await account.api.request<Refused>(method, path, body === undefined ? {} : { body });
    expect(answer.status, answer.text).to.equal(400);
    return answer.body;
  };
  /** A customer that is sent to Razorpay, and has a token there. */
  const newPayer = async () => {
    const customer_id = await account.newCustomer();
    await account.push();
    const there = book.find<RazorpayRecord>('customer', (await account.findMapping(customer_id)).provider_entity_id);
    const method = { payment_gateway: 'razorpay', gateway_payment_method_id: book.addToken(there.id, 'pays').id };
    await account.request('POST', `/payments/customers/${customer_id}/methods`, method);
    return { customer_id, there };
  };
  /** A payment that waits for its next attempt: Razorpay has its order, and no phone number of the customer. */
  const newWaiting = async () => {
    const { customer_id, there } = await newPayer();
    const invoice_id = await account.newInvoice(customer_id);
    await account.request('POST', `/invoices/${invoice_id}/payment/attempt`, {});
    const found = await account.api.request('GET', `/payments?destination_id=${invoice_id}`);
    const { id } = found.body.items[0]!;
    expect(await show(id)).to.include({ payment_status: 'PENDING', gateway_payment_id: null });
    there['contact'] = '+919876543210';
    return { id, invoice_id };
  };
  /** A customer pays on a page that a person has made in the dashboard. */
  const collectThere = (amount: number) => book.payLink(book.createLink({ amount, currency: 'INR' }).id).id;
  const deliver = async () => {
    await account.deliverAll();
    await account.read();
  };

  describe('a payment that a person has recorded', () => {
    it('is not charged by an event about it', async () => {
      const { id, invoice_id } = await newWaiting();
      const paid = listPaid().length;
      const gateway_payment_id = collectThere(10_000);
      await account.request('PUT', `/payments/${id}`, { payment_status: 'SUCCEEDED', gateway_payment_id });
      await deliver();
      expect(listPaid()).to.have.length(paid + 1);
      expect(await show(id)).to.include({ payment_status: 'SUCCEEDED', gateway_payment_id, error_message: null });
      expect(await account.showPaid(invoice_id)).to.equal('SUCCEEDED 100');
      book.createRefund(gateway_payment_id, { amount: 2_500 });
      await deliver();
      expect(await show(id)).to.include({ payment_status: 'PARTIALLY_REFUNDED', refunded_amount: '25' });
    });

    it('notes another amount that was received', async () => {
      const { id } = await newWaiting();
      const gateway_payment_id = collectThere(6_000);
      await account.request('PUT', `/payments/${id}`, { payment_status: 'SUCCEEDED', gateway_payment_id });
      await deliver();
      const error_message = '100 inr was requested, and 60 inr was received';
      expect(await show(id)).to.include({ payment_status: 'SUCCEEDED', amount: '100', error_message });
    });
  });

  describe('a payment that Razorpay may still authorize', () => {
    it('cannot be archived', async () => {
      const { id } = await newWaiting();
      const { message } = await refuse('DELETE', `/payments/${id}`);
      expect(message).to.contain('cannot be archived');
    });

    it('is archived if nothing was requested', async () => {
      const { customer_id } = await newPayer();
      const payment = { destination_type: 'INVOICE', destination_id: await account.newInvoice(customer_id) };
      const terms = { amount: '100', currency: 'inr', payment_method_type: 'CARD', process_payment: false };
      const { id } = await account.request('POST', '/payments', { ...payment, ...terms });
      await account.request('DELETE', `/payments/${id!}`);
    });
  });

  describe('new credentials', () => {
    const credentials = { encrypted_secret_data: { razorpay: provider.secrets } };
    const path = () => `/connections/${account.connection_id}` as const;

    it('must find the newest linked customer if no invoice was sent', async () => {
      const { there } = await newPayer();
      await account.api.services
        .postgres('integration_mappings')
        .where({ entity_type: 'invoice' })
        .update({ mapping_state: 'gone', status: 'archived' });
      await account.request('PUT', path(), credentials);
      // Another account does not have it.
      book.records.delete(there.id);
      const { message, details } = await refuse('PUT', path(), credentials);
      expect(message).to.contain(`has no customer ${there.id}`);
      expect(details).to.include({ provider_entity_id: there.id });
      book.records.set(there.id, there);
    });

    it('are refused while a payment has no outcome and nothing proves the account', async () => {
      const { customer_id } = await newPayer();
      await account.api.services
        .postgres('integration_mappings')
        .whereIn('entity_type', ['invoice', 'customer'])
        .update({ mapping_state: 'gone', status: 'archived' });
      const destination_id = await account.newInvoice(customer_id);
      const terms = { amount: '100', currency: 'inr', payment_method_type: 'CARD', process_payment: false };
      const payment = { destination_type: 'INVOICE', destination_id, ...terms };
      const { id } = await account.request('POST', '/payments', payment);
      // The process crashes before it calls Razorpay.
      await beginAttempt(account.api.services, account.api.scope, {
        ...{ id: id!, by: { now: new Date() }, isRequested: true },
      });
      const { message, details } = await refuse('PUT', path(), credentials);
      expect(message).to.contain(`the payment ${id} has no outcome yet`);
      expect(details).to.include({ payment_id: id });
    });
  });
});
