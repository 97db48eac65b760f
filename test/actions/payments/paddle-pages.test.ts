/** docs/integrations/paddle.md: pages beside sent invoices, refunds that Paddle decides, and chargebacks. */
import { expect } from 'chai';
import { processDuePayments } from '../../../actions/lifecycle/payments/due-payments.ts';
import { ConnectedAccount } from '../../support/providers/connected-account.ts';
import { PaddleDouble } from '../../support/providers/paddle-double.ts';
import { skipPace } from '../../support/providers/skip-pace.ts';

const DAY_MS = 86_400_000;

describe('pages at Paddle', () => {
  const there = new PaddleDouble();
  let account: ConnectedAccount;
  let stopSkipping = () => {};
  before(async () => {
    stopSkipping = skipPace(there.fake);
    account = await ConnectedAccount.open(there);
  });
  after(async () => {
    stopSkipping();
    await account.stop();
  });

  const openPage = async (invoice_id: string) => {
    const destination = { destination_type: 'INVOICE', destination_id: invoice_id, amount: '100', currency: 'usd' };
    const terms = { payment_method_type: 'PAYMENT_LINK', payment_gateway: 'paddle' };
    return await account.request('POST', '/payments', { ...destination, ...terms });
  };
  const runDue = async (after_ms: number) => {
    const now = new Date(Date.now() + after_ms);
    expect((await processDuePayments(account.api.services, { now })).failed).to.deep.equal([]);
  };
  const exchange = async () => {
    await account.deliverAll();
    expect((await account.read()).ended).to.equal('done');
    expect((await account.push()).ended).to.equal('done');
  };
  const newPaid = async () => {
    const { invoice_id, copy_id } = await account.newPushed();
    there.payCopy(copy_id);
    await exchange();
    const { items } = (await account.api.request('GET', `/payments?destination_id=${invoice_id}`)).body;
    return { invoice_id, copy_id, payment_id: items[0]!.id };
  };

  it('an invoice that was sent is canceled there when its page is paid', async () => {
    const { invoice_id } = await account.newPushed();
    const page = await openPage(invoice_id);
    expect(page['payment_url']).to.equal(`https://pay.example/?_ptxn=${page['gateway_payment_id']}`);
    there.payCopy(page['gateway_payment_id']!);
    await exchange();
    expect(await account.showPaid(invoice_id)).to.equal('SUCCEEDED 100');
    expect(account.showCopies(invoice_id)).to.deep.equal(['void']);
    expect(await account.listPayments(invoice_id)).to.deep.equal([`100 ${page['gateway_payment_id']}`]);
  });

  it('a page that is closed can no longer be paid', async () => {
    const page = await openPage(await account.newInvoice());
    await account.request('PUT', `/payments/${page['id']}`, { payment_status: 'VOIDED' });
    await runDue(1_000);
    expect((await account.request('GET', `/payments/${page['id']}`))['error_message']).to.equal(null);
    expect(() => there.payCopy(page['gateway_payment_id']!)).to.throw('it is canceled');
  });

  for (const [decision, refunded] of [
    ['approved', '40'],
    ['rejected', '0'],
  ] as const)
    it(`a refund is pending until Paddle has ${decision} it`, async () => {
      const { copy_id, payment_id } = await newPaid();
      there.fake.adjustments.refund_status = 'pending_approval';
      await account.request('POST', `/payments/${payment_id}/refund`, { amount: '40' });
      there.fake.adjustments.refund_status = 'approved';
      const [adjustment] = there.fake.adjustments.list(copy_id);
      expect(adjustment!.status).to.equal('pending_approval');
      there.fake.adjustments.decide(adjustment!.id, decision);
      await runDue(DAY_MS);
      await exchange();
      const { refunds } = (await account.api.request<{ refunds: object[] }>('GET', `/payments/${payment_id}`)).body;
      expect(refunds).to.have.length(1);
      expect((await account.request('GET', `/payments/${payment_id}`))['refunded_amount']).to.equal(refunded);
    });

  it('a refund with an unknown status stays pending, and is made once', async () => {
    const { copy_id, payment_id } = await newPaid();
    there.fake.adjustments.refund_status = 'undocumented';
    await account.request('POST', `/payments/${payment_id}/refund`, { amount: '40' });
    there.fake.adjustments.refund_status = 'approved';
    await runDue(DAY_MS);
    const { refunds } = (
      await account.api.request<{ refunds: { refund_status: string }[] }>('GET', `/payments/${payment_id}`)
    ).body;
    expect(refunds.map(({ refund_status }) => refund_status)).to.deep.equal(['pending']);
    expect(there.fake.adjustments.list(copy_id)).to.have.length(1);
  });

  it('a chargeback is told, and changes no amount', async () => {
    const { invoice_id, copy_id, payment_id } = await newPaid();
    const { id } = there.fake.adjustments.chargeBack(copy_id);
    await exchange();
    const [told] = await account.listSystemEvents('payment.disputed', payment_id);
    expect(told).to.deep.include({ dispute: { provider_entity_id: id, event_type: 'adjustment.created' } });
    expect(await account.showPaid(invoice_id)).to.equal('SUCCEEDED 100');
  });
});
