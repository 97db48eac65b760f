/** docs/rules/checkout.md, "Pages that stay open": void pages of payment links and checkouts, at Stripe's fake. */
import { expect } from 'chai';
import { processDuePayments } from '../../../actions/lifecycle/payments/due-payments.ts';
import { refreshPayment } from '../../../actions/lifecycle/payments/process-payment.ts';
import { recordPageClosing } from '../../../actions/lifecycle/payments/record-page-closing.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { StripeFake } from '../../support/providers/stripe-fake.ts';
import { completeSession, listRefunds } from '../../support/providers/stripe-fake-payments.ts';

const HOUR_MS = 3_600_000;

/** Fields of the answers that these tests read; each answer has some of them. */
type Shown = {
  id: string;
  message: string;
  details: { payment_id: string };
  checkout_session: { id: string; checkout_payment_id: string; checkout_invoice_id: string };
  checkout_status: string;
  gateway_payment_id: string;
  error_message: string | null;
};

describe('void pages', () => {
  let fake: StripeFake;
  let api: TestApi;
  let connection_id: string;
  let customers = 0;
  let now: Date;

  before(async () => {
    fake = await new StripeFake().start();
    const SECRETS_KEYS = 'a key of the settings that has 32 characters';
    api = await startTestApi({
      now: new Date(),
      config: { SECRETS_KEYS, PROVIDER_ADDRESSES: `stripe=${fake.url.href}` },
    });
    await connect();
  });
  beforeEach(() => {
    now = new Date();
    api.setNow(now);
  });
  after(async () => {
    await api.stop();
    await fake.stop();
  });

  const ok = async (method: string, path: string, body?: unknown) => {
    const answer = await api.request<Shown>(method, path, body === undefined ? {} : { body });
    expect(answer.status, answer.text).to.be.lessThan(300);
    return answer.body;
  };
  const connect = async () => {
    const encrypted_secret_data = { stripe: { secret_key: 'sk_test_fake' } };
    const body = { name: 'Stripe', provider_type: 'stripe', encrypted_secret_data };
    connection_id = (await ok('POST', '/connections', body)).id;
  };
  const stop = () =>
    api.services
      .postgres('connections')
      .where({ id: connection_id })
      .update({ connection_state: 'needs_attention', attention_reason: 'the key was revoked' });
  const resume = () => ok('POST', `/connections/${connection_id}/test`, {});
  const archive = () => api.request<Shown>('DELETE', `/connections/${connection_id}`);
  const newCustomer = async () =>
    (await ok('POST', '/customers', { external_id: `void ${++customers}`, email: 'books@example.com' })).id;
  /** A checkout of 50 with an open page. */
  const newCheckout = async () => {
    const customer_id = await newCustomer();
    const { id } = await ok('POST', '/wallets', { customer_id, currency: 'usd' });
    const checkout = { payment_provider: 'stripe' };
    const terms = { credits_to_add: '50', transaction_reason: 'PURCHASED_CREDIT_INVOICED', checkout };
    const { checkout_session: session } = await ok('POST', `/wallets/${id}/top-up`, terms);
    const payment_id = session.checkout_payment_id;
    const { gateway_payment_id: page_id } = await ok('GET', `/payments/${payment_id}`);
    return { customer_id, session_id: session.id, invoice_id: session.checkout_invoice_id, payment_id, page_id };
  };
  const load = (id: string) => PaymentModel.fetch(api.scope, id, { database: api.services.postgres });
  const runDue = async (after_ms: number) => {
    now = new Date(now.getTime() + after_ms);
    api.setNow(now);
    expect((await processDuePayments(api.services, { now })).failed).to.deep.equal([]);
  };
  const countUpdates = async (entity_id: string) =>
    (await api.services.postgres('system_events').where({ entity_id, event_name: 'payment.updated' })).length;

  it('of a stopped connection are named once, tried after growing pauses, and closed when it is active', async () => {
    const { session_id, payment_id, page_id } = await newCheckout();
    await stop();
    await ok('DELETE', `/checkout/sessions/${session_id}`);
    const seen = await load(payment_id);
    expect(seen.payment_status).to.equal('VOIDED');
    expect(seen.error_message).to.match(
      new RegExp(
        `^the page ${page_id} may still be open at stripe \\(connection ${connection_id}\\): .*the key was revoked.*` +
          `at once by POST /payments/${payment_id}/process`,
      ),
    );
    const updates = await countUpdates(payment_id);
    const pauses = [];
    for (let count = 0; count < 6; count++) {
      const { next_attempt_at } = await load(payment_id);
      const pause = Date.parse(next_attempt_at!) - now.getTime();
      pauses.push(pause / HOUR_MS);
      await runDue(pause);
    }
    expect(pauses).to.deep.equal([1, 2, 4, 8, 16, 24]);
    expect(await countUpdates(payment_id)).to.equal(updates);
    await resume();
    await ok('POST', `/payments/${payment_id}/process`, {});
    expect(fake.book.find('checkout.session', page_id)).to.include({ status: 'expired' });
    expect(await load(payment_id)).to.include({ next_attempt_at: null, error_message: null, close_failures: 0 });
    expect(await countUpdates(payment_id)).to.equal(updates + 1);
  });

  it('that are paid while they cannot be closed are refunded in full', async () => {
    const { session_id, payment_id, page_id } = await newCheckout();
    await stop();
    await ok('DELETE', `/checkout/sessions/${session_id}`);
    const intent = completeSession(fake.book, page_id, 'pm_card_visa')!;
    await runDue(HOUR_MS);
    expect((await load(payment_id)).close_failures).to.equal(2);
    await resume();
    await runDue(2 * HOUR_MS);
    expect(await load(payment_id)).to.include({ refunded_amount: '50', error_message: null, close_failures: 0 });
    expect(listRefunds(fake.book, intent.id).map(({ amount }) => amount)).to.deep.equal([5_000]);
  });

  it('that are paid during an attempt keep the refund', async () => {
    const { session_id, payment_id, page_id } = await newCheckout();
    await stop();
    await ok('DELETE', `/checkout/sessions/${session_id}`);
    await resume();
    const seen = await load(payment_id);
    const intent = completeSession(fake.book, page_id, 'pm_card_visa')!;
    fake.disturb(/POST refunds$/, 'unavailable');
    await refreshPayment(api.services, seen, { now });
    const expired = { outcome: 'failed', gateway_payment_id: page_id, error: 'expired' } as const;
    await recordPageClosing(api.services, seen, { outcome: expired, by: { now } });
    expect(listRefunds(fake.book, intent.id)).to.deep.equal([]);
    await runDue(2 * HOUR_MS);
    expect(listRefunds(fake.book, intent.id).map(({ amount }) => amount)).to.deep.equal([5_000]);
  });

  it('that the provider no longer has need no further attempt', async () => {
    const { session_id, payment_id } = await newCheckout();
    await api.services.postgres('payments').where({ id: payment_id }).update({ gateway_payment_id: 'cs_gone' });
    await ok('DELETE', `/checkout/sessions/${session_id}`);
    expect(await load(payment_id)).to.include({ next_attempt_at: null, error_message: null });
  });

  it('refuse the archive of an active connection with their reason, and keep their customer linked', async () => {
    const { session_id, payment_id, page_id, customer_id } = await newCheckout();
    fake.isAway = true;
    await ok('DELETE', `/checkout/sessions/${session_id}`);
    fake.isAway = false;
    const refused = await archive();
    expect([refused.status, refused.body.details.payment_id]).to.deep.equal([400, payment_id]);
    expect(refused.body.message).to.contain(`is not closed yet: the page ${page_id} may still be open at stripe`);
    await stop();
    const link = { provider_type: 'stripe', entity_type: 'customer', entity_id: customer_id };
    expect((await api.request<Shown>('DELETE', '/integrations/link', { body: link })).body.details).to.deep.equal({
      field: 'entity_id',
      payment_id,
    });
    await resume();
    await ok('POST', `/payments/${payment_id}/process`, {});
    await ok('DELETE', '/integrations/link', link);
    expect((await archive()).status).to.equal(204);
    await connect();
  });

  it('of checkouts are named by the archive of a stopped connection, and are not tried again', async () => {
    const { session_id, payment_id, page_id } = await newCheckout();
    await stop();
    await ok('DELETE', `/checkout/sessions/${session_id}`);
    const during = await load(payment_id);
    expect((await archive()).status).to.equal(204);
    const abandoned = `the page ${page_id} may still be open at stripe, whose connection was archived: close it there, and refund there if it is paid`;
    expect(await load(payment_id)).to.include({ next_attempt_at: null, error_message: abandoned });
    const updates = await countUpdates(payment_id);
    const unknown = { outcome: 'unknown', error: 'no answer', failure: null } as const;
    await recordPageClosing(api.services, during, { outcome: unknown, by: { now } });
    expect(await load(payment_id)).to.include({ next_attempt_at: null, error_message: abandoned });
    expect(await countUpdates(payment_id)).to.equal(updates);
    await connect();
  });

  it('that are still tried although their connection was archived are named, and not tried again', async () => {
    const { session_id, payment_id } = await newCheckout();
    await stop();
    await ok('DELETE', `/checkout/sessions/${session_id}`);
    await api.services.postgres('connections').where({ id: connection_id }).update({ status: 'archived' });
    await runDue(HOUR_MS);
    const { next_attempt_at, error_message } = await load(payment_id);
    expect(next_attempt_at).to.equal(null);
    expect(error_message).to.match(/whose connection was archived/);
    await connect();
  });

  it('refuse the archive while their checkout waits for another payment', async () => {
    const { session_id, payment_id, invoice_id } = await newCheckout();
    const destination = { destination_type: 'INVOICE', destination_id: invoice_id, amount: '50', currency: 'usd' };
    const method = {
      payment_method_type: 'CARD',
      payment_gateway: 'sandbox',
      payment_method_id: 'pm_sandbox_pays_late',
    };
    const { id: other } = await ok('POST', '/payments', { ...destination, ...method });
    await ok('PUT', `/payments/${payment_id}`, { payment_status: 'VOIDED' });
    await stop();
    const refused = await archive();
    expect([refused.status, refused.body.details, refused.body.message]).to.deep.equal([
      400,
      { payment_id },
      `the checkout ${session_id} of the payment ${payment_id} has not ended yet: wait for it`,
    ]);
    await ok('POST', `/payments/${other}/sandbox`, { outcome: 'failed' });
    await runDue(HOUR_MS);
    expect(await ok('GET', `/checkout/sessions/${session_id}`)).to.include({ checkout_status: 'failed' });
    expect((await archive()).status).to.equal(204);
    expect((await load(payment_id)).error_message).to.match(/whose connection was archived/);
    await connect();
  });
});
