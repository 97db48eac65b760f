/**
 * docs/integrations/README.md, "Money after the invoice", for every provider that receives payments and credit notes: a refund fails after another
 * provider had made it.
 */
import { expect } from 'chai';
import { reverseMadeRefund } from '../../../../actions/lifecycle/payments/reverse-refund.ts';
import { lockPayment } from '../../../../actions/payments/lock-payment.ts';
import { PaymentRefundModel } from '../../../../storage/models/payments/payment-refund.ts';
import { describeProviders } from '../../../support/providers/describe-providers.ts';

describeProviders('refunds that fail', ({ name, exchanges, there, given }) => {
  if (!exchanges.includes('payment') || !exchanges.includes('credit_note')) return;
  /** Stripe voids credit notes of open invoices alone, and refunds are of paid ones. */
  const isWithdrawn = name !== 'stripe';

  /** Charges a card at another provider, and pushes the payment. */
  const newCharged = async (): Promise<{ invoice_id: string; payment_id: string }> => {
    const { account } = given;
    const { invoice_id } = await account.newPushed();
    const card = { payment_method_type: 'CARD', payment_gateway: 'sandbox', payment_method_id: 'pm_sandbox_card' };
    const destination = { destination_type: 'INVOICE', destination_id: invoice_id };
    const body = { ...destination, ...card, amount: '100', currency: there.currency };
    return { invoice_id, payment_id: (await account.request('POST', '/payments', body))['id']! };
  };
  const refund = async (payment_id: string, amount: string): Promise<string> => {
    const { account } = given;
    await account.request('POST', `/payments/${payment_id}/refund`, { amount });
    const refunds = account.api.services.postgres('payment_refunds').where({ payment_id });
    return (await refunds.orderBy('id', 'desc').first()).id;
  };
  /** The bank returns the money. */
  const fail = async (payment_id: string, refund_id: string): Promise<void> => {
    const { services, scope } = given.account.api;
    await services.postgres.transaction(async (transaction) => {
      const locked = await lockPayment(transaction, scope, payment_id);
      const failed = await PaymentRefundModel.fetch(scope, refund_id, { database: transaction });
      const by = { now: new Date() };
      await reverseMadeRefund(services, transaction, { ...locked, refund: failed, error: 'account closed', by });
    });
  };
  const checkFailed = async (payment_id: string, refund_id: string): Promise<void> => {
    const { push_error } = await given.account.findMapping(payment_id);
    expect(there.listSentNotes(refund_id)).to.deep.equal(isWithdrawn ? [] : ['30']);
    if (isWithdrawn) expect(push_error).to.equal(null);
    else
      expect(push_error).to.match(/^the refund of 30 usd of payment pay_\w+ has failed, but cn_\w+ is still counted/);
  };

  it('after they were sent are withdrawn, or a person is asked; others stay', async () => {
    const { account } = given;
    const { payment_id } = await newCharged();
    const [failed, made] = [await refund(payment_id, '30'), await refund(payment_id, '20')];
    await account.push();
    expect([...there.listSentNotes(failed), ...there.listSentNotes(made)]).to.deep.equal(['30', '20']);
    await fail(payment_id, failed);
    for (let times = 0; times < 2; times++) {
      await account.push();
      await checkFailed(payment_id, failed);
    }
    const later = await refund(payment_id, '10');
    await account.push();
    await checkFailed(payment_id, failed);
    expect([...there.listSentNotes(made), ...there.listSentNotes(later)]).to.deep.equal(['20', '10']);
  });

  it('before the first push are not sent', async () => {
    const { account } = given;
    const { payment_id } = await newCharged();
    const failed = await refund(payment_id, '30');
    await fail(payment_id, failed);
    await account.push();
    expect(there.listSentNotes(failed)).to.deep.equal([]);
    expect(await account.findMapping(payment_id)).to.include({ mapping_state: 'made', push_error: null });
  });

  it('after a push whose answer was lost are withdrawn, or a person is asked', async () => {
    const { account } = given;
    const { payment_id } = await newCharged();
    const failed = await refund(payment_id, '30');
    there.disturb('credit_note', 'lost_answer');
    expect((await account.push()).ended).to.equal('paused');
    expect(there.listSentNotes(failed)).to.deep.equal(['30']);
    await fail(payment_id, failed);
    await account.passDay();
    await account.push();
    await checkFailed(payment_id, failed);
  });

  if (isWithdrawn)
    for (const failure of ['rate_limit', 'fault', 'lost_answer'] as const)
      it(`are withdrawn by the next attempt after ${failure}`, async () => {
        const { account } = given;
        const { payment_id } = await newCharged();
        const failed = await refund(payment_id, '30');
        await account.push();
        await fail(payment_id, failed);
        there.disturb('credit_note', failure);
        expect((await account.push()).ended).to.equal('paused');
        account.passSeconds(3_600);
        expect((await account.push()).ended).to.equal('done');
        await checkFailed(payment_id, failed);
      });

  it('during the push of another refund are withdrawn, or a person is asked', async () => {
    const { account } = given;
    const { payment_id } = await newCharged();
    const failed = await refund(payment_id, '30');
    await account.push();
    const made = await refund(payment_id, '20');
    const { arrived, release } = there.hold('credit_note');
    const pushing = account.push();
    await arrived;
    await fail(payment_id, failed);
    release();
    await pushing;
    await checkFailed(payment_id, failed);
    expect(there.listSentNotes(made)).to.deep.equal(['20']);
  });
});
