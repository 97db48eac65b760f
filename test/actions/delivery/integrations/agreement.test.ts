/**
 * docs/integrations/README.md, for every provider: after any order of invoices, payments, credit notes, voids, pushes and lost answers, and a last
 * push, the provider asks for the amount that remains here, or a refusal says why it does not.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { reverseMadeRefund } from '../../../../actions/lifecycle/payments/reverse-refund.ts';
import { lockPayment } from '../../../../actions/payments/lock-payment.ts';
import { PUSHED_ENTITY_TYPES } from '../../../../core/platform/integration/pushed-events.ts';
import { canReceive } from '../../../../integrations/find-capability.ts';
import { PaymentRefundModel } from '../../../../storage/models/payments/payment-refund.ts';
import { describeProviders } from '../../../support/providers/describe-providers.ts';
import { CALL_FAILURES, type CallFailure } from '../../../support/providers/provider-double.ts';

type Step =
  | { readonly do: 'pay' | 'credit' | 'set_paid'; readonly amount: number }
  | { readonly do: 'refund' | 'fail_refund' | 'void_note' | 'void_payment' | 'void' | 'push' | 'day' | 'pay_there' }
  | { readonly do: 'disturb'; readonly failure: CallFailure; readonly request: number };

const amount = fc.integer({ min: 1, max: 60 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('pay' as const), amount }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('credit' as const), amount }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('set_paid' as const), amount }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'refund' as const,
        'fail_refund' as const,
        'void_note' as const,
        'void_payment' as const,
        'void' as const,
        'pay_there' as const,
      ),
    }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constantFrom('push' as const, 'push' as const, 'day' as const) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('disturb' as const),
      failure: fc.constantFrom(...CALL_FAILURES),
      request: fc.nat(PUSHED_ENTITY_TYPES.length - 1),
    }),
  },
);

describeProviders('both sides of a connection', ({ exchanges, there, given }) => {
  const table = (name: string) => given.account.api.services.postgres(name);
  const requests = PUSHED_ENTITY_TYPES.filter((one) => canReceive({ exchanges }, one));
  const newest = async (name: string, where: object) =>
    (await table(name).where(where).orderBy('id', 'desc').first())?.id;
  /** The bank of the customer returns the money. */
  const failRefund = async (payment_id: string, refund_id: string): Promise<void> => {
    const { services, scope } = given.account.api;
    await services.postgres.transaction(async (transaction) => {
      const locked = await lockPayment(transaction, scope, payment_id);
      const refund = await PaymentRefundModel.fetch(scope, refund_id, { database: transaction });
      const failed = { ...locked, refund, error: 'account closed', by: { now: new Date() } };
      await reverseMadeRefund(services, transaction, failed);
    });
  };
  /** A step that this service refuses changes nothing. */
  const take = async (invoice_id: string, one: Step): Promise<unknown> => {
    const { account } = given;
    const { api } = account;
    switch (one.do) {
      case 'pay': {
        const paid = { destination_type: 'INVOICE', destination_id: invoice_id, payment_method_type: 'OFFLINE' };
        // Each payment has its own key, because equal payments within a minute count as one.
        const idempotency_key = `${invoice_id} ${Math.random()}`;
        const body = { ...paid, amount: String(one.amount), currency: there.currency, idempotency_key };
        return api.request('POST', '/payments', { body });
      }
      case 'credit': {
        const line = await newest('invoice_line_items', { invoice_id });
        const line_items = [{ invoice_line_item_id: line, amount: String(one.amount) }];
        const body = {
          invoice_id,
          reason: 'BILLING_ERROR',
          line_items,
          idempotency_key: `${invoice_id} ${Math.random()}`,
        };
        return api.request('POST', '/creditnotes', { body });
      }
      case 'set_paid': {
        const body = { payment_status: 'PENDING', amount: String(one.amount) };
        return api.request('PUT', `/invoices/${invoice_id}/payment`, { body });
      }
      case 'refund':
        return api.request('POST', `/payments/${await newest('payments', { destination_id: invoice_id })}/refund`, {
          body: {},
        });
      case 'fail_refund': {
        const payment_id = await newest('payments', { destination_id: invoice_id });
        const refund_id = await newest('payment_refunds', { payment_id: payment_id ?? '', refund_status: 'succeeded' });
        return refund_id && failRefund(payment_id, refund_id);
      }
      case 'void_payment': {
        const id = await newest('payments', { destination_id: invoice_id });
        return api.request('PUT', `/payments/${id}`, { body: { payment_status: 'VOIDED' } });
      }
      case 'void_note':
        return api.request('POST', `/creditnotes/${await newest('credit_notes', { invoice_id })}/void`);
      case 'void':
        return api.request('POST', `/invoices/${invoice_id}/void`);
      case 'pay_there': {
        const open = there.listCopies(invoice_id).find(({ status }) => status === 'open');
        return open && there.payCopy(open.id);
      }
      case 'push':
        return account.push();
      case 'day':
        return account.passDay();
      case 'disturb':
        return there.disturb(requests[one.request % requests.length]!, one.failure);
    }
  };

  /** Reads the copy an hour after the last push. */
  const readAttention = async (invoice_id: string): Promise<string | null> => {
    const { account } = given;
    account.passSeconds(3_601);
    await table('integration_mappings').where({ entity_id: invoice_id }).update({ next_pull_at: account.now });
    expect((await account.read()).ended).to.equal('done');
    return (await account.findMapping(invoice_id)).attention_reason;
  };

  const listRefusals = async (invoice_id: string): Promise<string[]> => {
    const payments = table('payments').where({ destination_id: invoice_id }).select('id');
    const notes = table('credit_notes').where({ invoice_id }).select('id');
    const refused = await table('integration_mappings')
      .whereNotNull('push_error')
      .where(
        (any) =>
          void any.where({ entity_id: invoice_id }).orWhereIn('entity_id', payments).orWhereIn('entity_id', notes),
      )
      .select('push_error');
    return refused.map(({ push_error }) => push_error);
  };

  it('agree, or the difference is told', async function () {
    this.timeout(600_000);
    let agreed = 0;
    const plays = fc.array(step, { minLength: 3, maxLength: 14 });
    await fc.assert(
      fc.asyncProperty(plays, async (steps) => {
        const { account } = given;
        const invoice_id = await account.newInvoice();
        let isPaidThere = false;
        for (const one of steps) {
          if (one.do === 'pay_there')
            isPaidThere ||= account.showCopies(invoice_id).some((copy) => copy.startsWith('open'));
          await take(invoice_id, one);
        }
        there.fake.clearDisturbances();
        for (let times = 0; times < 3; times++) {
          account.passSeconds(2 * 3_600);
          await account.push();
        }
        const pending = await table('integration_mappings')
          .whereNotNull('pending_since')
          .whereNot('mapping_state', 'gone');
        expect(pending, 'nothing waits').to.deep.equal([]);
        const copies = there.listCopies(invoice_id).filter(({ status }) => status !== 'void');
        expect(copies.length, 'never two of them').to.be.at.most(1);
        if ((await listRefusals(invoice_id)).length > 0 || isPaidThere) return;
        // It was settled before it was sent, and is due again.
        const { mapping_state, key_created_at } = await account.findMapping(invoice_id);
        if (mapping_state === 'gone' && key_created_at === null) return;
        expect(await readAttention(invoice_id), 'no difference is reported').to.equal(null);
        const { invoice_status, amount_remaining } = await table('invoices').where({ id: invoice_id }).first();
        const due = invoice_status === 'VOIDED' ? 0 : Number(amount_remaining);
        expect(Number(copies[0]?.remaining ?? 0), 'the same remains').to.equal(due);
        expect(copies[0]?.status ?? 'paid').to.equal(due > 0 ? 'open' : 'paid');
        agreed++;
      }),
      { numRuns: 16 },
    );
    expect(agreed, 'runs without a refusal').to.be.above(0);
  });
});
