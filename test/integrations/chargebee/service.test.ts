/** Payments by an environment that is connected to Chargebee: each is booked once, by webhook, reading or the scheduler. */
import { expect } from 'chai';
import { resumePayment } from '../../../actions/lifecycle/payments/process-payment.ts';
import { ChargebeeDouble } from '../../support/providers/chargebee-double.ts';
import { ConnectedAccount } from '../../support/providers/connected-account.ts';

const HOUR_S = 3_600;

describe('integrations/chargebee in the service', () => {
  const there = new ChargebeeDouble();
  let account: ConnectedAccount;
  before(async () => {
    account = await ConnectedAccount.open(there);
  });
  beforeEach(() => {
    there.fake.clearDisturbances();
    there.takeWebhooks();
  });
  after(() => account.stop());

  const pay = async (invoice_id: string, fields: object) => {
    const destination = { destination_type: 'INVOICE', destination_id: invoice_id, payment_gateway: 'chargebee' };
    const body = { ...destination, amount: '100', currency: 'usd', ...fields };
    return account.api.request<Record<string, string>>('POST', '/payments', { body });
  };
  const openPage = async (invoice_id: string) =>
    (await pay(invoice_id, { payment_method_type: 'PAYMENT_LINK', success_url: 'https://shop.example/' })).body;
  const read = async (id: string) => account.request('GET', `/payments/${id}`);
  const resume = (id: string) =>
    resumePayment(account.api.services, account.api.scope, { id, by: { now: new Date() } });
  const newCard = async (invoice_id: string) => {
    const { customer_id } = await account.request('GET', `/invoices/${invoice_id}`);
    return there.fake.site.addSource(customer_id!, 'pays').id;
  };

  it('a page that its customer pays is booked by the webhook, once', async () => {
    const { invoice_id, copy_id } = await account.newPushed();
    const { id, payment_url } = await openPage(invoice_id);
    expect(payment_url).to.contain('/pages/');
    const { customer_id } = there.fake.site.find('invoice', copy_id);
    const [page] = there.fake.site.list('hosted_page', (one) => one['customer_id'] === customer_id);
    const paid = there.fake.site.payPage(page!.id);
    await account.deliverAll();
    expect((await account.read()).ended).to.equal('done');
    expect(await read(id!)).to.include({ payment_status: 'SUCCEEDED', gateway_payment_id: paid.id });
    account.passSeconds(2 * HOUR_S);
    await account.read();
    await account.push();
    expect(await account.listPayments(invoice_id)).to.deep.equal([`100 ${paid.id}`]);
    expect(await account.showPaid(invoice_id)).to.equal('SUCCEEDED 100');
    expect((await account.findMapping(invoice_id)).attention_reason).to.equal(null);
  });

  it('a page whose webhook is lost is booked once, though the invoice is read first', async () => {
    const { invoice_id, copy_id } = await account.newPushed();
    const { id } = await openPage(invoice_id);
    const paid = there.payCopy(copy_id);
    account.passSeconds(2 * HOUR_S);
    expect((await account.read()).ended).to.equal('done');
    await resume(id!);
    await account.read();
    expect(await account.listPayments(invoice_id)).to.deep.equal([`100 ${paid}`]);
    expect(await account.showPaid(invoice_id)).to.equal('SUCCEEDED 100');
  });

  it('a charge waits until the invoice is sent, and pays its copy', async () => {
    const invoice_id = await account.newInvoice();
    const { customer_id } = await account.request('GET', `/invoices/${invoice_id}`);
    await account.request('POST', '/integrations/sync', { entity_type: 'customer', entity_id: customer_id });
    const payment_method_id = await newCard(invoice_id);
    const { status, text } = await pay(invoice_id, { payment_method_type: 'CARD', payment_method_id });
    const { items } = (await account.api.request('GET', `/payments?destination_id=${invoice_id}`)).body;
    expect(
      items.map(({ payment_status }) => payment_status),
      `${status} ${text}`,
    ).to.deep.equal(['PROCESSING']);
    expect(items[0]!.error_message).to.contain('is not there yet: send it');
    await account.push();
    await resume(items[0]!.id);
    expect(await account.showPaid(invoice_id)).to.equal('SUCCEEDED 100');
    expect(account.showCopies(invoice_id)).to.deep.equal(['paid 0']);
    account.passSeconds(2 * HOUR_S);
    await account.push();
    await account.read();
    expect(await account.listPayments(invoice_id)).to.have.length(1);
    expect((await account.findMapping(invoice_id)).attention_reason).to.equal(null);
  });

  it('a charge whose answer is lost is booked once', async () => {
    const { invoice_id } = await account.newPushed();
    const payment_method_id = await newCard(invoice_id);
    there.fake.disturb(/collect_payment/, 'lost_answer');
    await pay(invoice_id, { payment_method_type: 'CARD', payment_method_id });
    await account.deliverAll();
    await account.read();
    const { items } = (await account.api.request('GET', `/payments?destination_id=${invoice_id}`)).body;
    await resume(items[0]!.id);
    account.passSeconds(2 * HOUR_S);
    await account.read();
    expect(await account.listPayments(invoice_id)).to.have.length(1);
    expect(await account.showPaid(invoice_id)).to.equal('SUCCEEDED 100');
    expect(there.fake.site.list('transaction', (one) => one['initiator_type'] === 'merchant').length).to.be.above(0);
  });

  it('a refund goes out once, and one that a person makes comes in', async () => {
    const { invoice_id } = await account.newPushed();
    const payment_method_id = await newCard(invoice_id);
    const { id, gateway_payment_id } = (await pay(invoice_id, { payment_method_type: 'CARD', payment_method_id })).body;
    await account.request('POST', `/payments/${id}/refund`, { amount: '30' });
    await account.deliverAll();
    await account.read();
    expect((await read(id!))['refunded_amount']).to.equal('30');
    there.refundPayment(gateway_payment_id!, '20');
    await account.deliverAll();
    await account.read();
    expect((await read(id!))['refunded_amount']).to.equal('50');
    const refunds = there.fake.site.list('transaction', (one) => one['refunded_txn_id'] === gateway_payment_id);
    expect(refunds).to.have.length(2);
    expect((await account.findMapping(invoice_id)).attention_reason).to.equal(null);
  });

  it('a payment method that its customer adds is saved, and archived when it is deleted', async () => {
    const { invoice_id } = await account.newPushed();
    const { customer_id } = await account.request('GET', `/invoices/${invoice_id}`);
    const source = await newCard(invoice_id);
    await account.deliverAll();
    await account.read();
    const list = () =>
      account.api.services.postgres('payment_methods').where({ customer_id, status: 'published' }).select();
    const saved = await list();
    expect(
      saved.map(({ gateway_payment_method_id, is_default }) => [gateway_payment_method_id, is_default]),
    ).to.deep.equal([[source, true]]);
    there.fake.site.deleteSource(source);
    await account.deliverAll();
    await account.read();
    expect(await list()).to.deep.equal([]);
  });
});
