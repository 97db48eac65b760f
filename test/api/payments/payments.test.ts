/** Payments over HTTP, at the sandbox: made, charged, refused, given back, told by the provider. */
import { expect } from 'chai';
import { beginAttempt } from '../../../actions/lifecycle/payments/begin-attempt.ts';
import { processDuePayments } from '../../../actions/lifecycle/payments/due-payments.ts';
import { buildPaymentRequest } from '../../../actions/payments/payment-request.ts';
import { createProvider } from '../../../actions/payments/providers.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { sandboxNotice } from '../../support/sandbox.ts';

const SECRET = 'a secret of the installation';

describe('payments', () => {
  let api: TestApi;
  let customer_id: string;
  before(async () => {
    api = await startTestApi({ config: { PAYMENT_SANDBOX_SECRET: SECRET } });
    customer_id = (await ok('POST', '/customers', { external_id: 'acme' })).id;
    await ok('PUT', '/settings/payment_config', { value: { default_gateway: 'sandbox' } });
  });
  after(() => api.stop());

  async function ok<Method extends string, Path extends string>(method: Method, path: Path, body?: unknown) {
    const answer = await api.request(method, path, body === undefined ? {} : { body });
    expect(answer.status, `${method} ${path}: ${answer.text}`).to.be.within(200, 299);
    return answer.body;
  }
  async function refused<Method extends string, Path extends string>(method: Method, path: Path, body?: unknown) {
    const answer = await api.request(method, path, body === undefined ? {} : { body });
    expect(answer.status, answer.text).to.be.within(400, 499);
    return answer.body;
  }
  const invoice = async (amount = '100', fields = {}) => {
    const amounts = { subtotal: amount, total: amount, amount_due: amount };
    return ok('POST', '/invoices', {
      customer_id,
      currency: 'usd',
      invoice_status: 'FINALIZED',
      ...amounts,
      ...fields,
    });
  };
  const stated = (destination_id: string, fields: object = {}) => ({
    destination_type: 'INVOICE',
    destination_id,
    payment_method_type: 'OFFLINE',
    amount: '100',
    currency: 'USD',
    ...fields,
  });
  const card = (payment_method_id: string, fields: object = {}) => ({
    payment_method_type: 'CARD',
    payment_method_id,
    ...fields,
  });
  const paid = async (id: string) => {
    const { payment_status, amount_paid, amount_remaining, overpaid_amount } = await ok('GET', `/invoices/${id}`);
    return [payment_status, amount_paid, amount_remaining, overpaid_amount];
  };
  const payments = async (id: string) => (await ok('GET', `/payments?destination_id=${id}&order=asc`)).items;

  describe('OFFLINE', () => {
    it('of equal amounts within a minute is one, unless each says something of its own', async () => {
      const { id } = await invoice();
      const receipt = (number: string) => stated(id, { amount: '30', metadata: { receipt: number, till: '1' } });
      const answers = [await ok('POST', '/payments', receipt('1')), await ok('POST', '/payments', receipt('2'))];
      const again = { ...receipt('2'), metadata: { till: '1', receipt: '2' } };
      expect((await ok('POST', '/payments', again)).id).to.equal(answers[1]!.id);
      expect(answers[0]!.id).to.not.equal(answers[1]!.id);
      expect(await paid(id)).to.deep.equal(['PENDING', '60', '40', null]);
    });

    it('is booked at once, in parts and beyond what is due', async () => {
      const { id } = await invoice();
      const first = await ok('POST', '/payments', stated(id, { amount: '60' }));
      expect(first).to.include({
        payment_status: 'SUCCEEDED',
        currency: 'usd',
        payment_gateway: null,
        track_attempts: false,
      });
      expect(await paid(id)).to.deep.equal(['PENDING', '60', '40', null]);
      await ok('POST', '/payments', stated(id, { amount: '50' }));
      expect(await paid(id)).to.deep.equal(['OVERPAID', '110', '0', '10']);
      expect((await refused('POST', '/payments', stated(id, { amount: '1' }))).code).to.equal('invalid_operation');
    });

    it('waits where it is not to be processed, and is a mistake where somebody says so', async () => {
      const { id } = await invoice();
      const waiting = await ok('POST', '/payments', stated(id, { process_payment: false }));
      expect(waiting.payment_status).to.equal('PENDING');
      await ok('PUT', `/payments/${waiting.id}`, { amount: '70' });
      expect((await ok('POST', `/payments/${waiting.id}/process`)).payment_status).to.equal('SUCCEEDED');
      expect(await paid(id)).to.deep.equal(['PENDING', '70', '30', null]);
      expect((await refused('POST', `/payments/${waiting.id}/process`)).code).to.equal('invalid_operation');
      expect((await refused('DELETE', `/payments/${waiting.id}`)).code).to.equal('invalid_operation');
      expect((await refused('PUT', `/payments/${waiting.id}`, { amount: '1' })).details!.field).to.equal('amount');
      const voided = await ok('PUT', `/payments/${waiting.id}`, { payment_status: 'VOIDED' });
      expect(voided.payment_status).to.equal('VOIDED');
      expect(await paid(id)).to.deep.equal(['PENDING', '0', '100', null]);
      expect((await ok('DELETE', `/payments/${waiting.id}`)).message).to.equal('payment archived');
    });

    it('is one for one key, and another content with the key is refused', async () => {
      const { id } = await invoice();
      const request = stated(id, { amount: '10', idempotency_key: 'wire-1' });
      const [first, second] = [await ok('POST', '/payments', request), await ok('POST', '/payments', request)];
      expect(second.id).to.equal(first.id);
      const other = await refused('POST', '/payments', { ...request, amount: '11' });
      expect([other.code, other.details!.field]).to.deep.equal(['already_exists', 'amount']);
      const card = { payment_method_type: 'CARD', payment_gateway: 'sandbox', idempotency_key: 'card-1', amount: '1' };
      const declined = { ...card, payment_method_id: 'pm_sandbox_declined' };
      expect((await ok('POST', '/payments', stated(id, declined))).payment_status).to.equal('FAILED');
      const accepted = await refused(
        'POST',
        '/payments',
        stated(id, { ...card, payment_method_id: 'pm_sandbox_card' }),
      );
      expect([accepted.code, accepted.details!.field]).to.deep.equal(['already_exists', 'payment_method_id']);
      // Without a key equal payments of one minute are one.
      for (let i = 0; i < 2; i++) await ok('POST', '/payments', stated(id, { amount: '20' }));
      expect(await paid(id)).to.deep.equal(['PENDING', '30', '70', null]);
    });

    it('closes the door by hand: what was paid is what payments say', async () => {
      const { id } = await invoice();
      await ok('POST', '/payments', stated(id, { amount: '5' }));
      const by_hand = await refused('PUT', `/invoices/${id}/payment`, { payment_status: 'SUCCEEDED' });
      expect(by_hand.code).to.equal('invalid_operation');
    });
  });

  describe('what is refused, by its field', () => {
    const cases: [string, object, string][] = [
      ['credits of nobody', { payment_method_type: 'CREDITS' }, 'payment_method_id'],
      ['a way that is not there', { payment_method_type: 'UPI' }, 'payment_method_type'],
      ['another currency', { currency: 'eur' }, 'currency'],
      ['nothing', { amount: '0' }, 'amount'],
      ['less than a cent', { amount: '0.001' }, 'amount'],
      ['a charge of more than remains', card('pm_sandbox_card', { amount: '100.01' }), 'amount'],
      ['a card that nobody named', { payment_method_type: 'CARD' }, 'payment_method_id'],
      ['a provider that is not there', card('pm_1', { payment_gateway: 'stripe' }), 'payment_gateway'],
      ['a card for cash', { payment_method_id: 'pm_sandbox_card' }, 'payment_method_id'],
      ['options of a provider', { gateway_options: { stripe: {} } }, 'gateway_options'],
    ];
    let id: string;
    before(async () => {
      id = (await invoice()).id;
    });
    for (const [what, fields, field] of cases)
      it(what, async () =>
        expect((await refused('POST', '/payments', stated(id, fields))).details!.field).to.equal(field),
      );

    it('an invoice that is a draft, and the sandbox where money is meant', async () => {
      const draft = await invoice('100', { invoice_status: 'DRAFT' });
      expect((await refused('POST', '/payments', stated(draft.id))).details!.field).to.equal('destination_id');
      const live = await ok('POST', '/environments', { name: 'Live', type: 'production' });
      await api.services
        .postgres('environments')
        .where({ id: api.scope.environment_id })
        .update({ type: 'production' });
      const real = await refused('POST', '/payments', stated(id, card('pm_sandbox_card')));
      await api.services
        .postgres('environments')
        .where({ id: api.scope.environment_id })
        .update({ type: 'development' });
      expect([real.details!.field, live.type]).to.deep.equal(['payment_gateway', 'production']);
    });
  });

  describe('CARD at the sandbox', () => {
    it('pays, and is kept as the default way where that is asked for', async () => {
      const { id } = await invoice();
      const kept = card('pm_sandbox_card', { save_card_and_make_default: true });
      const payment = await ok('POST', '/payments', stated(id, kept));
      expect(payment).to.include({ payment_status: 'SUCCEEDED', payment_gateway: 'sandbox', attempt_count: 1 });
      expect(payment.attempts!.map((one) => [one.attempt_number, one.payment_status])).to.deep.equal([
        [1, 'SUCCEEDED'],
      ]);
      expect(await paid(id)).to.deep.equal(['SUCCEEDED', '100', '0', null]);
      const { items } = await ok('GET', `/payments/customers/${customer_id}/methods`);
      expect(items.map((one) => [one.gateway_payment_method_id, one.is_default])).to.deep.equal([
        ['pm_sandbox_card', true],
      ]);
      const another = await ok('POST', `/payments/customers/${customer_id}/methods`, {
        gateway_payment_method_id: 'pm_sandbox_declined',
      });
      expect(another.is_default).to.equal(true);
      await ok('DELETE', `/payments/customers/${customer_id}/methods/${another.id}`);
      const now = await ok('GET', `/payments/customers/${customer_id}/methods`);
      expect(now.items.map((one) => one.is_default)).to.deep.equal([false]);
      await ok('DELETE', `/payments/customers/${customer_id}/methods/${now.items[0]!.id}`);
    });

    it('fails, and may be tried again with another', async () => {
      const { id } = await invoice();
      const payment = await ok('POST', '/payments', stated(id, card('pm_sandbox_declined')));
      expect([payment.payment_status, payment.error_message]).to.deep.equal([
        'FAILED',
        'card_declined: the bank has declined the charge',
      ]);
      expect(await paid(id)).to.deep.equal(['FAILED', '0', '100', null]);
      const again = await ok('POST', '/payments', stated(id, card('pm_sandbox_declined')));
      expect(again.id).to.not.equal(payment.id);
      expect((await ok('POST', '/payments', stated(id, card('pm_sandbox_card')))).payment_status).to.equal('SUCCEEDED');
      expect(
        (await refused('PUT', `/payments/${payment.id}`, { payment_status: 'SUCCEEDED' })).details!.field,
      ).to.equal('payment_status');
    });

    it('needs the customer, and nobody else pays or voids the invoice meanwhile', async () => {
      const { id } = await invoice();
      const payment = await ok('POST', '/payments', stated(id, card('pm_sandbox_requires_action')));
      expect([payment.payment_status, payment.payment_url]).to.deep.equal([
        'PROCESSING',
        'https://sandbox.example/confirm',
      ]);
      expect((await paid(id))[0]).to.equal('PROCESSING');
      expect((await refused('POST', '/payments', stated(id))).message).to.match(/is being paid/);
      expect((await refused('POST', `/invoices/${id}/void`)).code).to.equal('invalid_operation');
      expect((await refused('PUT', `/payments/${payment.id}`, { payment_status: 'SUCCEEDED' })).code).to.equal(
        'invalid_operation',
      );
      const acted = await ok('POST', `/payments/${payment.id}/sandbox`, { outcome: 'succeeded' });
      expect([acted.payment_status, acted.payment_url]).to.deep.equal(['SUCCEEDED', null]);
      expect(await paid(id)).to.deep.equal(['SUCCEEDED', '100', '0', null]);
    });

    it('is given back in parts, never more than was paid', async () => {
      const { id } = await invoice();
      const payment = await ok('POST', '/payments', stated(id, card('pm_sandbox_card')));
      const back = (amount: string, key: string) =>
        api.request('POST', `/payments/${payment.id}/refund`, { body: { amount, idempotency_key: key } });
      const answers = await Promise.all(['a', 'b', 'c', 'd', 'a', 'b'].map((key) => back('30', key)));
      expect(answers.filter(({ status }) => status === 200).length, 'three of four, two of them twice').to.be.within(
        3,
        5,
      );
      const part = await ok('GET', `/payments/${payment.id}`);
      expect([part.payment_status, part.refunded_amount]).to.deep.equal(['PARTIALLY_REFUNDED', '90']);
      expect(await ok('GET', `/invoices/${id}`)).to.include({
        payment_status: 'PARTIALLY_REFUNDED',
        refunded_amount: '90',
      });
      expect((await refused('POST', `/payments/${payment.id}/refund`, { amount: '10.01' })).details!.field).to.equal(
        'amount',
      );
      const all = await ok('POST', `/payments/${payment.id}/refund`);
      expect([all.payment_status, all.refunds!.length]).to.deep.equal(['REFUNDED', 4]);
      expect((await ok('GET', `/invoices/${id}`)).payment_status).to.equal('REFUNDED');
      const [{ refunded }] = await api.services.postgres('sandbox_charges').where({ id: payment.gateway_payment_id });
      expect(refunded).to.equal('100');
    });
  });

  describe('PAYMENT_LINK at the sandbox', () => {
    const link = { payment_method_type: 'PAYMENT_LINK', success_url: 'https://example.com/thanks' };
    const told = (type: string, gatewayPaymentId: string, secret: string | null, path?: string) => {
      const { tenant_id, environment_id } = api.scope;
      const to = path ?? `${api.url}/webhooks/sandbox/${tenant_id}/${environment_id}`;
      return api.request(
        'POST',
        to,
        sandboxNotice({ type, data: { gatewayPaymentId } }, secret ?? 'another', api.scope),
      );
    };

    it('is paid on its page, and the provider says so, twice and with or without /v1', async () => {
      const { id } = await invoice();
      const payment = await ok('POST', '/payments', stated(id, link));
      expect([payment.payment_status, payment.attempt_count]).to.deep.equal(['INITIATED', 0]);
      expect(payment.payment_url).to.match(/^https:\/\/sandbox\.example\/pay\//);
      expect((await told('payment.succeeded', payment.gateway_payment_id!, null)).status).to.equal(401);
      expect((await told('payment.succeeded', 'sbx_none', SECRET)).status).to.equal(404);
      expect((await told('payment.lost', payment.gateway_payment_id!, SECRET)).status).to.equal(400);
      expect(await paid(id)).to.deep.equal(['PENDING', '0', '100', null]);
      const answer = await told('payment.succeeded', payment.gateway_payment_id!, SECRET);
      expect([answer.status, answer.body?.message]).to.deep.equal([200, `payment ${payment.id} is SUCCEEDED`]);
      const { tenant_id, environment_id } = api.scope;
      const again = await told(
        'payment.failed',
        payment.gateway_payment_id!,
        SECRET,
        `/webhooks/sandbox/${tenant_id}/${environment_id}`,
      );
      expect([again.status, await paid(id)]).to.deep.equal([200, ['SUCCEEDED', '100', '0', null]]);
    });

    it('ends when the invoice is paid otherwise, or void; its page is closed then', async () => {
      const [one, other] = [await invoice(), await invoice()];
      const links = [
        await ok('POST', '/payments', stated(one.id, link)),
        await ok('POST', '/payments', stated(other.id, link)),
      ];
      await ok('POST', '/payments', stated(one.id));
      await ok('POST', `/invoices/${other.id}/void`);
      for (const { id } of links) expect((await ok('GET', `/payments/${id}`)).payment_status).to.equal('VOIDED');
      // The clock has not closed the pages yet: what is paid there is given back.
      await told('payment.succeeded', links[0]!.gateway_payment_id!, SECRET);
      const late = await ok('GET', `/payments/${links[0]!.id}`);
      expect([late.payment_status, late.refunded_amount, late.refunds![0]!.refund_status]).to.deep.equal([
        'VOIDED',
        '100',
        'succeeded',
      ]);
      expect(await paid(one.id)).to.deep.equal(['SUCCEEDED', '100', '0', null]);
    });
  });

  describe('an attempt of an invoice', () => {
    it('is refused where there is nothing to charge', async () => {
      const { id } = await invoice();
      expect((await refused('POST', `/invoices/${id}/payment/attempt`)).message).to.match(/nothing to charge/);
    });

    it('charges what remains to the default way of the customer, and says what came of it', async () => {
      const { id } = await invoice();
      await ok('POST', '/payments', stated(id, { amount: '40' }));
      await ok('POST', `/payments/customers/${customer_id}/methods`, {
        gateway_payment_method_id: 'pm_sandbox_insufficient_funds',
      });
      expect((await ok('POST', `/invoices/${id}/payment/attempt`)).message).to.match(/is PENDING: insufficient_funds/);
      const kept = await ok('POST', `/payments/customers/${customer_id}/methods`, {
        gateway_payment_method_id: 'pm_sandbox_card',
      });
      expect((await ok('POST', `/invoices/${id}/payment/attempt`)).message).to.match(/is SUCCEEDED$/);
      expect(await paid(id)).to.deep.equal(['SUCCEEDED', '100', '0', null]);
      const [, collected] = await payments(id);
      expect([collected!.amount, collected!.attempt_count, collected!.is_automatic]).to.deep.equal(['60', 2, true]);
      await ok('DELETE', `/payments/customers/${customer_id}/methods/${kept.id}`);
    });

    it('goes on with what follows from invoice and customer: another amount or card for its tries is refused', async () => {
      const { id } = await invoice();
      const kept = await ok('POST', `/payments/customers/${customer_id}/methods`, {
        gateway_payment_method_id: 'pm_sandbox_declined',
      });
      await ok('POST', `/invoices/${id}/payment/attempt`);
      const [waiting] = await payments(id);
      expect([waiting!.payment_status, waiting!.is_automatic, waiting!.amount]).to.deep.equal(['PENDING', true, '100']);
      const others = { amount: '5', payment_method_id: 'pm_sandbox_card' };
      for (const [field, value] of Object.entries(others)) {
        const no = await refused('PUT', `/payments/${waiting!.id}`, { [field]: value, metadata: { a: 'b' } });
        expect(no.details!.field).to.equal(field);
      }
      expect(await ok('GET', `/payments/${waiting!.id}`)).to.deep.include({
        amount: '100',
        metadata: waiting!.metadata,
      });
      // What has come in elsewhere is said with its amount.
      await ok('PUT', `/payments/${waiting!.id}`, { amount: '60', payment_status: 'SUCCEEDED' });
      expect((await paid(id)).slice(1, 3)).to.deep.equal(['60', '40']);
      await ok('DELETE', `/payments/customers/${customer_id}/methods/${kept.id}`);
    });

    it('takes from a postpaid wallet what that can pay, and charges the rest', async () => {
      const { id } = await invoice();
      const postpaid = { customer_id, currency: 'usd', wallet_type: 'POST_PAID', initial_credits_to_load: '130' };
      const wallet = await ok('POST', '/wallets', postpaid);
      await ok('POST', `/wallets/${wallet.id}/debit`, {
        credits: '100',
        transaction_reason: 'MANUAL_BALANCE_DEBIT',
        idempotency_key: 'leaves 30',
      });
      const kept = await ok('POST', `/payments/customers/${customer_id}/methods`, {
        gateway_payment_method_id: 'pm_sandbox_card',
      });
      expect((await ok('POST', `/invoices/${id}/payment/attempt`)).message).to.match(/is SUCCEEDED$/);
      expect(await paid(id)).to.deep.equal(['SUCCEEDED', '100', '0', null]);
      expect((await payments(id)).map((one) => [one.payment_method_type, one.amount])).to.deep.equal([
        ['CARD', '70'],
        ['CREDITS', '30'],
      ]);
      await ok('DELETE', `/payments/customers/${customer_id}/methods/${kept.id}`);
    });
  });

  describe('races', () => {
    it('twenty payments and attempts of one invoice charge it once', async () => {
      const { id } = await invoice();
      const kept = await ok('POST', `/payments/customers/${customer_id}/methods`, {
        gateway_payment_method_id: 'pm_sandbox_card',
      });
      const calls = Array.from({ length: 20 }, (_, i) =>
        i % 2 === 0
          ? api.request('POST', '/payments', {
              body: stated(id, card('pm_sandbox_card', { idempotency_key: `race ${i}` })),
            })
          : api.request('POST', `/invoices/${id}/payment/attempt`),
      );
      const statuses = (await Promise.all(calls)).map(({ status }) => status);
      expect(statuses.filter((status) => status >= 500)).to.deep.equal([]);
      const charges = await api.services
        .postgres('sandbox_charges')
        .where({ charge_status: 'succeeded' })
        .whereLike('idempotency_key', 'pay%');
      const mine = new Set((await payments(id)).map((one) => one.gateway_payment_id));
      expect(charges.filter((one) => mine.has(one.id)).length).to.equal(1);
      expect(await paid(id)).to.deep.equal(['SUCCEEDED', '100', '0', null]);
      await ok('DELETE', `/payments/customers/${customer_id}/methods/${kept.id}`);
    });

    for (const isCharged of [false, true])
      it(`whoever dies ${isCharged ? 'behind' : 'before'} the charge leaves a payment that is asked after, and charged once`, async () => {
        const { id } = await invoice();
        const waiting = card('pm_sandbox_card', { process_payment: false });
        const payment = await ok('POST', '/payments', stated(id, waiting));
        const { services, scope } = api;
        const now = services.clock();
        const begun = await beginAttempt(services, scope, { id: payment.id, by: { now }, isRequested: true });
        const { gateway_tracking_id: key, payment_method_id } = begun.payment;
        if (isCharged)
          await createProvider(services, 'sandbox').charge(scope, {
            ...buildPaymentRequest(begun.payment, { key: key!, now }),
            payment_method_id,
          });
        const later = new Date(now.getTime() + 60_000);
        await Promise.all([1, 2, 3].map(() => processDuePayments(services, { now: later })));
        expect(await paid(id)).to.deep.equal(['SUCCEEDED', '100', '0', null]);
        const charges = await services.postgres('sandbox_charges').whereLike('idempotency_key', `${payment.id}%`);
        expect([charges.length, (await ok('GET', `/payments/${payment.id}`)).attempts!.length]).to.deep.equal([1, 1]);
      });

    it('an invoice is paid or void; one that was paid and is void has given back', async () => {
      for (let i = 0; i < 6; i++) {
        const { id } = await invoice();
        const paying = api.request('POST', '/payments', { body: stated(id, card('pm_sandbox_card')) });
        const voiding = api.request('POST', `/invoices/${id}/void`);
        await Promise.all(i % 2 === 0 ? [paying, voiding] : [voiding, paying]);
        const { invoice_status, payment_status } = await ok('GET', `/invoices/${id}`);
        const succeeded = (await payments(id)).filter((one) => one.payment_status === 'SUCCEEDED').length;
        expect([invoice_status, payment_status, succeeded]).to.be.deep.oneOf([
          ['FINALIZED', 'SUCCEEDED', 1],
          ['VOIDED', 'PENDING', 0],
          ['VOIDED', 'REFUNDED', 1],
        ]);
      }
    });
  });

  describe('what is there', () => {
    it('lists by every filter, with attempts where they are asked for', async () => {
      const { items, pagination } = await ok('POST', '/payments/search', {
        payment_method_type: 'card',
        payment_status: 'failed',
        payment_gateway: 'SANDBOX',
        currency: 'usd',
        expand: ['attempts'],
        limit: 1000,
      });
      // What was refused before anybody was asked has failed without an attempt.
      const tried = items.filter((one) => one.attempt_count > 0);
      expect([items.length, tried.length > 1]).to.deep.equal([pagination.total, true]);
      for (const one of tried) expect(one.attempts!.length).to.equal(one.attempt_count);
    });

    it('is no other tenant’s', async () => {
      const { key } = await api.otherTenant();
      const { id } = (await ok('GET', '/payments?limit=1')).items[0]!;
      expect((await api.request('GET', `/payments/${id}`, { key })).status).to.equal(404);
      expect((await api.request('POST', `/payments/${id}/process`, { key })).status).to.equal(404);
    });
  });
});
