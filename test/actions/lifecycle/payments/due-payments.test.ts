/** docs/rules/payments.md, "Never twice": many connections whose provider does not answer delay no other tenant. */
import { expect } from 'chai';
import { processDuePayments } from '../../../../actions/lifecycle/payments/due-payments.ts';
import { ConnectedPayments } from '../../../../actions/payments/connected-payments.ts';
import { buildPaymentRequest } from '../../../../actions/payments/payment-request.ts';
import { FarthingError } from '../../../../core/foundation/error.ts';
import type { Scope } from '../../../../core/foundation/scope.ts';
import { PaymentModel } from '../../../../storage/models/payments/payment.ts';
import { startTestApi, type TestApi } from '../../../support/api.ts';
import { StripeFake } from '../../../support/providers/stripe-fake.ts';
import { until } from '../../../support/until.ts';

/** More than the slots of a run. */
const HANGING = 34;
const AT_ONCE = 32;

describe('due payments', () => {
  let fake: StripeFake;
  let api: TestApi;
  const now = new Date();

  before(async () => {
    fake = await new StripeFake().start();
    const SECRETS_KEYS = 'a key of the settings that has 32 characters';
    api = await startTestApi({ now, config: { SECRETS_KEYS, PROVIDER_ADDRESSES: `stripe=${fake.url.href}` } });
  });
  after(async () => {
    await api.stop();
    await fake.stop();
  });

  /** A charge of a new tenant with a connection of its own. */
  const newCharge = async () => {
    const { key, scope } = await api.otherTenant();
    const ok = async (path: string, body: unknown) => {
      const answer = await api.request<{ id: string }>('POST', path, { key, body });
      expect(answer.status, answer.text).to.be.lessThan(300);
      return answer.body.id;
    };
    const encrypted_secret_data = { stripe: { secret_key: 'sk_live_fake' } };
    await ok('/connections', { name: 'Stripe', provider_type: 'stripe', encrypted_secret_data });
    const customer_id = await ok('/customers', { external_id: 'payer' });
    const line_items = [{ display_name: 'Help', amount: '100', quantity: '1' }];
    const amounts = { amount_due: '100', total: '100', subtotal: '100', currency: 'usd', line_items };
    const destination_id = await ok('/invoices', { customer_id, ...amounts, invoice_status: 'FINALIZED' });
    const method = { payment_gateway: 'stripe', payment_method_type: 'CARD', payment_method_id: 'pm_card_visa' };
    const destination = { destination_type: 'INVOICE', destination_id, amount: '100', currency: 'usd' };
    return { scope, id: await ok('/payments', { ...destination, ...method, process_payment: false }) };
  };
  const makeDue = ({ id }: { id: string }) =>
    api.services.postgres('payments').where({ id }).update({ next_attempt_at: now });
  const readStatus = async ({ id, scope }: { id: string; scope: Scope }) =>
    (await PaymentModel.fetch(scope, id, { database: api.services.postgres })).payment_status;

  it('of many connections that hang leave slots for others', async () => {
    const hanging = await Promise.all(Array.from({ length: HANGING }, newCharge));
    const quiet = await newCharge();
    for (const charge of hanging) await makeDue(charge);
    const holds = hanging.map(() => fake.hold(/POST payment_intents$/));
    const run = processDuePayments(api.services, { now, slow_after_ms: 100 });
    await Promise.all(holds.slice(0, AT_ONCE).map(({ arrived }) => arrived));
    await makeDue(quiet);
    await until('the payment of the quiet tenant is made', async () => (await readStatus(quiet)) === 'SUCCEEDED');
    // No call has ended meanwhile, not even by its timeout.
    expect(await Promise.all(hanging.map(readStatus))).to.deep.equal(hanging.map(() => 'PROCESSING'));
    expect(await api.services.postgres('connections').where('pause_count', '>', 0)).to.deep.equal([]);
    for (const { release } of holds) release();
    expect((await run).failed).to.deep.equal([]);
    expect(await Promise.all(hanging.map(readStatus))).to.deep.equal(hanging.map(() => 'SUCCEEDED'));
  });

  it('whose answer never ends have an unknown outcome, and their connection pauses', async () => {
    const { id, scope } = await newCharge();
    const payment = await PaymentModel.fetch(scope, id, { database: api.services.postgres });
    const held = fake.hold(/POST payment_intents$/);
    const provider = new ConnectedPayments(api.services, 'stripe', 200);
    const request = { ...buildPaymentRequest(payment, { key: `${id}/1`, now }), payment_method_id: 'pm_card_visa' };
    const failure = await provider.charge(scope, request).catch((error: FarthingError) => error);
    expect(failure).to.be.instanceOf(FarthingError);
    expect((failure as FarthingError).message).to.match(/no answer within 200 ms/);
    const [connection] = await api.services.postgres('connections').where(scope);
    expect([connection.pause_count, Date.parse(connection.paused_until) > now.getTime()]).to.deep.equal([1, true]);
    held.release();
  });
});
