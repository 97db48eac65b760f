/** docs/integrations/README.md, "Money after the invoice": payments, refunds and credit notes of invoices that a provider has. */
import { expect } from 'chai';
import { pushPending } from '../../../../actions/delivery/integrations/push-pending.ts';
import { dispatchBatch } from '../../../../actions/delivery/webhooks/dispatch-events.ts';
import { startTestApi, type TestApi } from '../../../support/api.ts';
import { ageKeys } from '../../../support/providers/aged-keys.ts';
import { StripeFake } from '../../../support/providers/stripe-fake.ts';
import type { InvoiceRecord, StripeRecord } from '../../../support/providers/stripe-fake-records.ts';

const KEY = 'a key of the settings that has 32 characters';

describe('money of invoices that a provider has', () => {
  let fake: StripeFake;
  let api: TestApi;
  let connection_id: string;
  let customers = 0;
  let now: Date;

  const request = async (method: 'POST' | 'PUT', path: `/${string}`, body: object = {}) => {
    const answer = await api.request(method, path, { body });
    expect(answer.status, answer.text).to.be.oneOf([200, 201]);
    return answer.body as Record<string, string>;
  };
  const newInvoice = async () => {
    const customer = { external_id: `customer ${++customers}`, name: 'Acme', email: 'books@example.com' };
    const { id: customer_id } = await request('POST', '/customers', customer);
    const line_items = [{ display_name: 'Help', amount: '100', quantity: '1' }];
    const amounts = { amount_due: '100', total: '100', subtotal: '100', currency: 'usd', line_items };
    const invoice = { customer_id, ...amounts, invoice_status: 'FINALIZED' };
    return (await request('POST', '/invoices', invoice))['id']!;
  };
  const pay = async (invoice_id: string, amount: string) => {
    const payment = { destination_type: 'INVOICE', destination_id: invoice_id, payment_method_type: 'OFFLINE' };
    return (await request('POST', '/payments', { ...payment, amount, currency: 'usd' }))['id']!;
  };
  const credit = async (invoice_id: string, amount: string, fields: object = {}) => {
    const [line] = await api.services.postgres('invoice_line_items').where({ invoice_id });
    const line_items = [{ invoice_line_item_id: line.id, amount }];
    const note = { invoice_id, reason: 'BILLING_ERROR', line_items, ...fields };
    return (await request('POST', '/creditnotes', note))['id']!;
  };
  const push = async () => {
    while ((await dispatchBatch(api.services, { has_targets: true, now: new Date() })).dispatched > 0);
    const settings = { SECRETS_KEYS: [KEY], PROVIDER_ADDRESSES: [`stripe=${fake.url.href}`] };
    const run = { connection_id, settings, clock: () => now, mayGoOn: async () => true };
    return (await pushPending(api.services, api.scope, run)).ended;
  };
  const later = () => {
    now = new Date(now.getTime() + 2 * 3_600_000);
  };
  const mapping = (entity_id: string) =>
    api.services.postgres('integration_mappings').where({ entity_id }).orderBy('created_at', 'desc').first();
  const there = (invoice_id: string) => {
    const found = fake.listInvoices().filter(({ metadata }) => metadata.farthing_invoice_id === invoice_id);
    return found.map(({ status, amount_remaining }) => `${status} ${amount_remaining}`);
  };
  const notesThere = async (invoice_id: string) => {
    const { provider_entity_id } = await mapping(invoice_id);
    const notes = fake.book.list('credit_note').filter((note) => note['invoice'] === provider_entity_id);
    return notes.map((note) => `${note['status']} ${note['total']} ${note['out_of_band_amount']}`).reverse();
  };
  const recordsThere = (payment_id: string) =>
    fake.book
      .list<StripeRecord & { amount: { value: number } }>('payment_record')
      .filter(({ metadata }) => metadata['farthing_payment_id'] === payment_id)
      .map(({ amount }) => amount.value);

  before(async () => {
    fake = await new StripeFake().start();
    const config = { SECRETS_KEYS: KEY, PROVIDER_ADDRESSES: `stripe=${fake.url.href}` };
    api = await startTestApi({ now: new Date(), config });
    const encrypted_secret_data = { stripe: { secret_key: 'sk_test_fake' } };
    const made = await request('POST', '/connections', {
      name: 'Stripe',
      provider_type: 'stripe',
      encrypted_secret_data,
    });
    connection_id = made['id']!;
  });
  beforeEach(() => {
    now = new Date();
  });
  after(async () => {
    await api.stop();
    await fake.stop();
  });

  it('payments in parts lower what remains there, and the last one closes the invoice', async () => {
    const invoice_id = await newInvoice();
    await push();
    const first = await pay(invoice_id, '40');
    await push();
    expect([there(invoice_id), recordsThere(first)]).to.deep.equal([['open 6000'], [4_000]]);
    await pay(invoice_id, '60');
    await push();
    await push();
    expect([there(invoice_id), recordsThere(first)]).to.deep.equal([['paid 0'], [4_000]]);
    expect(await mapping(first)).to.include({ mapping_state: 'made', pending_since: null, push_error: null });
  });

  it('what was paid before the invoice was sent is part of it and is not sent again', async () => {
    const invoice_id = await newInvoice();
    const early = await pay(invoice_id, '40');
    await push();
    const late = await pay(invoice_id, '10');
    await push();
    expect([there(invoice_id), recordsThere(early), recordsThere(late)]).to.deep.equal([['open 5000'], [], [1_000]]);
    const refused = await api.request('POST', '/integrations/sync', {
      body: { entity_type: 'payment', entity_id: early },
    });
    expect([refused.status, refused.body.code]).to.deep.equal([400, 'invalid_operation']);
  });

  it('a payment during the first push is sent on its own', async () => {
    const invoice_id = await newInvoice();
    const held = fake.hold(/POST invoices$/);
    const pushing = push();
    await held.arrived;
    const payment_id = await pay(invoice_id, '40');
    held.release();
    await pushing;
    await push();
    expect([there(invoice_id), recordsThere(payment_id)]).to.deep.equal([['open 6000'], [4_000]]);
  });

  it('an invoice that was settled before it was sent is not sent, and neither are its payments', async () => {
    const invoice_id = await newInvoice();
    const payment_id = await pay(invoice_id, '100');
    await push();
    expect([there(invoice_id), recordsThere(payment_id)]).to.deep.equal([[], []]);
    expect((await mapping(invoice_id)).mapping_state).to.equal('gone');
  });

  it('an overpaid amount is not credited to the customer there', async () => {
    const invoice_id = await newInvoice();
    await push();
    const payment_id = await pay(invoice_id, '130');
    await push();
    expect([there(invoice_id), recordsThere(payment_id)]).to.deep.equal([['paid 0'], [10_000]]);
    const { provider_entity_id } = await mapping(invoice_id);
    const { customer } = fake.book.find<InvoiceRecord>('invoice', provider_entity_id);
    expect(fake.book.find('customer', customer)['balance']).to.equal(0);
  });

  for (const [how, describe] of [
    ['took', () => ({ payment_gateway: 'stripe' })],
    ['reported', () => ({ payment_gateway: null, connection_id })],
  ] as const)
    it(`a payment that the provider ${how} itself is not sent back, nor on request`, async () => {
      const invoice_id = await newInvoice();
      await push();
      const payment_id = await pay(invoice_id, '40');
      const taken = { ...describe(), gateway_payment_id: `pi_${how}` };
      await api.services.postgres('payments').where({ id: payment_id }).update(taken);
      await push();
      const body = { entity_type: 'payment', entity_id: payment_id };
      const refused = await api.request('POST', '/integrations/sync', { body });
      expect([refused.status, refused.body.code]).to.deep.equal([400, 'invalid_operation']);
      expect([there(invoice_id), await mapping(payment_id)]).to.deep.equal([['open 10000'], undefined]);
    });

  it('a payment of an invoice that was paid there, too, waits for a person', async () => {
    const invoice_id = await newInvoice();
    await push();
    fake.book.payInvoice((await mapping(invoice_id)).provider_entity_id, { card: 'pm_card_visa' });
    const payment_id = await pay(invoice_id, '100');
    await push();
    expect((await mapping(payment_id)).push_error).to.match(/is paid at Stripe, so the payment of 100 usd/);
  });

  it('an invoice that is marked as paid by hand is paid there; a part of it is told', async () => {
    const invoice_id = await newInvoice();
    await push();
    await request('PUT', `/invoices/${invoice_id}/payment`, { payment_status: 'PENDING', amount: '30' });
    await push();
    expect((await mapping(invoice_id)).push_error).to.match(/70 usd .* remains to be paid here/);
    await request('PUT', `/invoices/${invoice_id}/payment`, { payment_status: 'SUCCEEDED' });
    await push();
    await push();
    expect([there(invoice_id), recordsThere(invoice_id)]).to.deep.equal([['paid 0'], [10_000]]);
    expect((await mapping(invoice_id)).push_error).to.equal(null);
  });

  for (const [step, what] of [
    [/POST payment_records.report_payment$/, 'lost_answer'],
    [/POST payment_records.report_payment$/, 'lost_request'],
    [/POST payment_records.report_payment$/, 'lost_fault'],
    [/POST invoices.*attach_payment$/, 'lost_answer'],
    [/POST invoices.*attach_payment$/, 'lost_request'],
    [/POST invoices.*attach_payment$/, 'lost_fault'],
  ] as const)
    for (const isKeyForgotten of [false, true])
      it(`${what} of ${step.source} counts the payment once${isKeyForgotten ? ', also a day later' : ''}`, async () => {
        const invoice_id = await newInvoice();
        await push();
        const payment_id = await pay(invoice_id, '40');
        fake.disturb(step, what);
        await push();
        if (isKeyForgotten) {
          fake.forgetKeys();
          now = new Date(now.getTime() + 86_400_000);
          await ageKeys(api.services.postgres);
        } else later();
        await push();
        expect([there(invoice_id), recordsThere(payment_id)]).to.deep.equal([['open 6000'], [4_000]]);
        expect((await mapping(payment_id)).mapping_state).to.equal('made');
      });

  it('a payment that was refused because its invoice was is sent after the invoice', async () => {
    const invoice_id = await newInvoice();
    fake.book.surcharge = 250;
    await push();
    const payment_id = await pay(invoice_id, '40');
    await push();
    expect((await mapping(payment_id)).push_error).to.match(/but 102.5 usd/);
    fake.book.surcharge = 0;
    await request('POST', '/integrations/sync', { entity_type: 'invoice', entity_id: invoice_id });
    await push();
    expect([there(invoice_id), recordsThere(payment_id)]).to.deep.equal([['open 6000'], [4_000]]);
    expect((await mapping(payment_id)).push_error).to.equal(null);
  });

  it('credit notes lower what remains there; a void one is due again', async () => {
    const invoice_id = await newInvoice();
    await push();
    const note_id = await credit(invoice_id, '30');
    await push();
    await push();
    expect([there(invoice_id), await notesThere(invoice_id)]).to.deep.equal([['open 7000'], ['issued 3000 0']]);
    await request('POST', `/creditnotes/${note_id}/void`);
    await push();
    expect([there(invoice_id), await notesThere(invoice_id)]).to.deep.equal([['open 10000'], ['void 3000 0']]);
  });

  it('a draft of a credit note is sent when it becomes final, a void draft never', async () => {
    const invoice_id = await newInvoice();
    await push();
    const draft = { process_credit_note: false };
    const [note_id, other_id] = [await credit(invoice_id, '30', draft), await credit(invoice_id, '20', draft)];
    await push();
    expect(await notesThere(invoice_id)).to.deep.equal([]);
    await request('POST', `/creditnotes/${note_id}/finalize`);
    await request('POST', `/creditnotes/${other_id}/void`);
    await push();
    expect(await notesThere(invoice_id)).to.deep.equal(['issued 3000 0']);
  });

  it('a credit note of a paid invoice is given back outside Stripe', async () => {
    const invoice_id = await newInvoice();
    await push();
    await pay(invoice_id, '100');
    await credit(invoice_id, '30');
    await push();
    expect([there(invoice_id), await notesThere(invoice_id)]).to.deep.equal([['paid 0'], ['issued 3000 3000']]);
  });

  for (const what of ['lost_answer', 'lost_request', 'lost_fault'] as const)
    it(`${what} of a credit note credits once, also a day later`, async () => {
      const invoice_id = await newInvoice();
      await push();
      await credit(invoice_id, '30');
      fake.disturb(/POST credit_notes$/, what);
      await push();
      fake.forgetKeys();
      now = new Date(now.getTime() + 86_400_000);
      await ageKeys(api.services.postgres);
      await push();
      expect([there(invoice_id), await notesThere(invoice_id)]).to.deep.equal([['open 7000'], ['issued 3000 0']]);
    });

  it('refunds of a payment are credit notes there, each once', async () => {
    const invoice_id = await newInvoice();
    await push();
    const payment_id = await pay(invoice_id, '100');
    await push();
    await request('POST', `/payments/${payment_id}/refund`, { amount: '30' });
    await push();
    await request('POST', `/payments/${payment_id}/refund`, { amount: '20' });
    await push();
    await push();
    expect(await notesThere(invoice_id)).to.deep.equal(['issued 3000 3000', 'issued 2000 2000']);
  });

  it('a refund that is owed again, and a payment that is voided, are told', async () => {
    const [refunded, voided] = [await newInvoice(), await newInvoice()];
    await push();
    const payments = [await pay(refunded, '40'), await pay(voided, '40')];
    await push();
    await request('POST', `/payments/${payments[0]}/refund`);
    await request('PUT', `/payments/${payments[1]}`, { payment_status: 'VOIDED' });
    await push();
    expect((await mapping(payments[0]!)).push_error).to.match(/40 usd of the payments .* were refunded/);
    expect((await mapping(payments[1]!)).push_error).to.match(/is VOIDED here, but counted/);
  });
});
