/**
 * Requests of Chargebee's own library to the fake, which must behave as the public documentation says. The library also shows how a request
 * is encoded, and checks its parameters by its own schemas.
 */

import { expect } from 'chai';
import Chargebee from 'chargebee';
import { encodeForm, type Form } from '../../../integrations/chargebee/form.ts';
import { API_KEY, ChargebeeFake } from '../../support/providers/chargebee-fake.ts';

type Sent = { readonly url: URL; readonly body: string };

describe('integrations/chargebee/contract', () => {
  let fake: ChargebeeFake;
  let client: Chargebee;
  let sent: Sent[];

  beforeEach(async () => {
    fake = await new ChargebeeFake().start();
    sent = [];
    client = createClient(API_KEY);
    await client.customer.create({ id: 'cust_1', company: 'Acme' });
  });
  afterEach(() => fake.stop());

  /** The host of a site cannot be a plain address, so the request is redirected in the HTTP client. */
  function createClient(apiKey: string): Chargebee {
    const makeApiRequest = async (request: Request): Promise<Response> => {
      const url = new URL(request.url);
      const body = await request.text();
      sent.push({ url, body });
      const { method, headers } = request;
      const target = new URL(`${url.pathname}${url.search}`, fake.url);
      return await fetch(target, { method, headers, ...(method === 'GET' ? {} : { body }) });
    };
    const httpClient = { makeApiRequest };
    return new Chargebee({ site: 'fake-test', apiKey, httpClient, enableValidation: false } as never);
  }

  const charges = (...amounts: number[]) =>
    amounts.map((amount) => ({ amount, description: `for ${amount}`, taxable: false }));
  const createInvoice = async (more: object = {}, headers: object = {}) => {
    const terms = {
      customer_id: 'cust_1',
      currency_code: 'USD',
      auto_collection: 'off' as const,
      charges: charges(500, 250),
    };
    return (await client.invoice.createForChargeItemsAndCharges({ ...terms, ...more }, headers as never)).invoice;
  };
  const refusalOf = async (request: () => Promise<unknown>): Promise<string> => {
    try {
      await request();
    } catch (error) {
      const { http_status_code, api_error_code, param } = error as Record<string, unknown>;
      return [http_status_code, api_error_code, param].filter(Boolean).join(' ');
    }
    throw new Error('it was accepted');
  };

  it('an invoice goes from the charges to its payment and its void', async () => {
    const { id, status, total, amount_due } = await createInvoice({ invoice_note: 'a note' });
    expect([status, total, amount_due]).to.deep.equal(['payment_due', 750, 750]);
    const paid = await client.invoice.recordPayment(id, { transaction: { amount: 300, payment_method: 'other' } });
    expect(paid.invoice.amount_due).to.equal(450);
    expect(paid.transaction).to.include({ type: 'payment', gateway: 'not_applicable', amount: 300 });
    expect(await refusalOf(() => client.invoice.voidInvoice(id))).to.equal('409 invalid_state_for_request');
    const other = await createInvoice();
    expect((await client.invoice.voidInvoice(other.id)).invoice.status).to.equal('voided');
    const { list } = await client.invoice.list({ customer_id: { is: 'cust_1' }, limit: 1 });
    expect(list.map(({ invoice }) => invoice.id)).to.deep.equal([other.id]);
  });

  it('a list has pages', async () => {
    for (let n = 0; n < 3; n++) await createInvoice();
    const first = await client.invoice.list({ customer_id: { is: 'cust_1' }, limit: 2 });
    expect(first.list).to.have.length(2);
    const rest = await client.invoice.list({ customer_id: { is: 'cust_1' }, limit: 2, offset: first.next_offset! });
    expect([rest.list.length, rest.next_offset]).to.deep.equal([1, undefined]);
  });

  it('a key repeats the first answer, and belongs to one request', async () => {
    const headers = { 'chargebee-idempotency-key': 'key-1' };
    const first = await createInvoice({}, headers);
    const answer = await client.invoice.createForChargeItemsAndCharges(
      { customer_id: 'cust_1', currency_code: 'USD', auto_collection: 'off', charges: charges(500, 250) },
      headers,
    );
    expect([answer.invoice.id, answer.isIdempotencyReplayed]).to.deep.equal([first.id, 'true']);
    expect(await refusalOf(() => createInvoice({ charges: charges(1) }, headers))).to.equal(
      '422 unable_to_process_request',
    );
  });

  it('a credit note, a refund and their void', async () => {
    const { id } = await createInvoice();
    const terms = { reference_invoice_id: id, type: 'adjustment' as const, total: 250, reason_code: 'other' as const };
    const { credit_note } = await client.creditNote.create(terms);
    expect((await client.invoice.retrieve(id)).invoice.amount_due).to.equal(500);
    await client.creditNote.voidCreditNote(credit_note.id);
    expect((await client.invoice.retrieve(id)).invoice).to.include({ amount_due: 750, status: 'not_paid' });
    const { transaction } = await client.invoice.recordPayment(id, { transaction: { payment_method: 'other' } });
    const date = Math.floor(Date.now() / 1_000);
    const refunded = await client.invoice.recordRefund(id, {
      transaction: { amount: 50, payment_method: 'other', date },
    });
    expect(refunded.credit_note).to.include({ type: 'refundable', status: 'refunded', total: 50 });
    expect(refunded.transaction).to.include({ type: 'refund', reference_transaction_id: transaction.id });
    const note_id = refunded.credit_note!.id;
    expect(await refusalOf(() => client.creditNote.voidCreditNote(note_id))).to.equal('409 invalid_state_for_request');
    await client.transaction.deleteOfflineTransaction(refunded.transaction!.id);
    expect((await client.creditNote.voidCreditNote(note_id)).credit_note.status).to.equal('voided');
  });

  const refused: [name: string, send: () => Promise<unknown>, why: string][] = [
    ['an unknown id', () => client.invoice.retrieve('9'), '404 resource_not_found'],
    ['an id that is taken', () => client.customer.create({ id: 'cust_1' }), '400 duplicate_entry id'],
    [
      'an unknown parameter',
      () => client.customer.create({ colour: 'red' } as never),
      '400 param_not_supported colour',
    ],
    ['no charges', () => createInvoice({ charges: [] }), '400 param_wrong_value charges'],
    ['a negative charge', () => createInvoice({ charges: charges(-1) }), '400 param_wrong_value charges[amount][0]'],
    ['a fraction', () => createInvoice({ charges: charges(1.5) }), '400 param_wrong_value charges[amount][0]'],
    ['another currency', () => createInvoice({ currency_code: 'SEK' }), '400 param_wrong_value currency_code'],
    ['another payment term', () => createInvoice({ net_term_days: 29 }), '400 param_wrong_value net_term_days'],
    ['a long note', () => createInvoice({ invoice_note: 'x'.repeat(2_001) }), '400 param_wrong_value invoice_note'],
    ['a wrong key', () => createClient('other').customer.list({ limit: 1 }), '401 api_authentication_failed'],
  ];
  for (const [name, send, why] of refused)
    it(`refused: ${name}`, async () => expect(await refusalOf(send)).to.equal(why));

  it('a charge that is not said to be untaxed is taxed', async () => {
    const { total } = await createInvoice({ charges: [{ amount: 500, description: 'a' }] });
    expect(total).to.equal(550);
  });

  describe('our encoding is that of the library', () => {
    const ours = (form: Form) => [...encodeForm(form)].sort().join('\n');
    const theirs = (text: string) => [...new URLSearchParams(text)].sort().join('\n');

    it('of an invoice', async () => {
      const note = 'Größe & "x" = 1+1 [a]';
      const form = { customer_id: 'cust_1', currency_code: 'USD', invoice_note: note, charges: charges(500, 250) };
      await client.invoice.createForChargeItemsAndCharges({ ...form, auto_collection: 'off' });
      expect(ours({ ...form, auto_collection: 'off' })).to.equal(theirs(sent.at(-1)!.body));
    });

    it('of nested objects', async () => {
      const { id } = await createInvoice();
      const form = { transaction: { amount: 100, payment_method: 'other' as const, reference_number: 'a b' } };
      await client.invoice.recordPayment(id, form);
      expect(ours(form)).to.equal(theirs(sent.at(-1)!.body));
    });

    it('of metadata', async () => {
      const meta_data = { farthing_customer_id: 'ä' };
      await client.customer.create({ id: 'cust_2', meta_data, billing_address: { line1: 'Way 1' } });
      const form = { id: 'cust_2', meta_data: JSON.stringify(meta_data), billing_address: { line1: 'Way 1' } };
      expect(ours(form)).to.equal(theirs(sent.at(-1)!.body));
    });

    it('of filters', async () => {
      await client.transaction.list({ id: { in: ['txn_1', 'txn_2'] }, limit: 100 });
      expect(ours({ id: { in: '["txn_1","txn_2"]' }, limit: 100 })).to.equal(theirs(sent.at(-1)!.url.search));
    });

    it('and the address of a site is its name before chargebee.com', async () => {
      expect(sent[0]!.url.host).to.equal('fake-test.chargebee.com');
      expect(sent[0]!.url.pathname).to.equal('/api/v2/customers');
    });
  });
});
