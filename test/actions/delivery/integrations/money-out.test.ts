/** docs/integrations/README.md, "Money after the invoice": payments, refunds and credit notes of invoices that a provider has. */
import { expect } from 'chai';
import type { TestApi } from '../../../support/api.ts';
import { ConnectedAccount } from '../../../support/providers/connected-account.ts';
import { StripeDouble } from '../../../support/providers/stripe-double.ts';
import type { InvoiceRecord, StripeRecord } from '../../../support/providers/stripe-fake-records.ts';

describe('money of invoices that a provider has', () => {
  const stripe = new StripeDouble();
  const { fake } = stripe;
  let account: ConnectedAccount;
  let api: TestApi;

  const request = (method: 'POST' | 'PUT', path: `/${string}`, body: object = {}) =>
    account.request(method, path, body);
  const newInvoice = () => account.newInvoice();
  const pay = (invoice_id: string, amount: string) => account.pay(invoice_id, amount);
  const credit = (invoice_id: string, amount: string, fields?: object) => account.credit(invoice_id, amount, fields);
  const push = async () => (await account.push()).ended;
  const later = () => account.passSeconds(2 * 3_600);
  const mapping = (entity_id: string) => account.findMapping(entity_id);
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
    account = await ConnectedAccount.open(stripe);
    api = account.api;
  });
  beforeEach(() => {
    account.now = new Date();
  });
  after(() => account.stop());

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
    ['reported', () => ({ payment_gateway: null, connection_id: account.connection_id })],
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
          await account.passDay();
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
      await account.passDay();
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
