import { expect } from 'chai';
import type { CreditNote, Customer, Invoice } from '../../support/answers.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

describe('/creditnotes', () => {
  let api: TestApi;
  let customer: Customer;

  before(async () => {
    api = await startTestApi({ now: '2026-03-15T12:00:00Z' });
    customer = await make('/customers', { external_id: 'acme', name: 'Acme' });
  });
  after(() => api.stop());

  const make = async <Path extends string>(path: Path, body: unknown) => {
    const answer = await api.request('POST', path, { body });
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const get = async <Path extends string>(path: Path) => (await api.request('GET', path)).body;
  /** Final, of lines of 60 and 40; paid when an amount is stated. */
  const invoiced = async (paid?: string, fields: Record<string, unknown> = {}) => {
    const invoice = await make('/invoices', {
      customer_id: customer.id,
      currency: 'usd',
      amount_due: '100',
      total: '100',
      subtotal: '100',
      line_items: [
        { display_name: 'Set-up', amount: '60', quantity: '1' },
        { display_name: 'Training', amount: '40', quantity: '2' },
      ],
      invoice_status: 'FINALIZED',
      ...fields,
    });
    if (paid) {
      const payment_status = Number(paid) > 100 ? 'OVERPAID' : 'SUCCEEDED';
      const body = { payment_status, amount: paid };
      expect((await api.request('PUT', `/invoices/${invoice.id}/payment`, { body })).status).to.equal(200);
    }
    return invoice;
  };
  const bodyOf = (invoice: Invoice, amounts: readonly (string | null)[], fields: Record<string, unknown> = {}) => ({
    invoice_id: invoice.id,
    reason: 'billing_error',
    line_items: amounts.flatMap((amount, index) =>
      amount === null ? [] : [{ invoice_line_item_id: invoice.line_items[index]!.id, amount }],
    ),
    ...fields,
  });
  const credit = (invoice: Invoice, amounts: readonly (string | null)[], fields: Record<string, unknown> = {}) =>
    api.request('POST', '/creditnotes', { body: bodyOf(invoice, amounts, fields) });
  const verb = (id: string, name: 'finalize' | 'void') => api.request('POST', `/creditnotes/${id}/${name}`);
  const balance = async (customer_id = customer.id) =>
    (await get(`/customers/${customer_id}/wallets`))[0]?.balance ?? '0';

  it('201 an adjustment lowers what is due; what pays all of it pays the invoice; voided it is due again', async () => {
    const invoice = await invoiced();
    const {
      status,
      body: note,
      text,
    } = await credit(invoice, ['60', '15'], { memo: 'Sorry', metadata: { ticket: '7' } });
    expect(status, text).to.equal(201);
    expect(note).to.deep.include({
      credit_note_type: 'ADJUSTMENT',
      credit_note_status: 'FINALIZED',
      refund_status: null,
      reason: 'BILLING_ERROR',
      memo: 'Sorry',
      total_amount: '75',
      metadata: { ticket: '7' },
    });
    expect(note.credit_note_number).to.equal('CN-202603-00001');
    expect(note.line_items.map((line) => [line.display_name, line.amount, line.tax_amount])).to.deep.equal([
      ['Set-up', '60', '0'],
      ['Training', '15', '0'],
    ]);
    expect(note.invoice).to.include({
      id: invoice.id,
      amount_due: '25',
      amount_remaining: '25',
      adjustment_amount: '75',
    });
    const rest = await credit(invoice, [null, '25']);
    expect(rest.body.invoice).to.include({ amount_due: '0', payment_status: 'SUCCEEDED' });
    const voided = await verb(rest.body.id, 'void');
    expect(voided.status, voided.text).to.equal(200);
    expect(voided.body.message).to.be.a('string');
    expect(voided.body.credit_note_status).to.equal('VOIDED');
    expect(voided.body.invoice).to.include({ amount_remaining: '25', payment_status: 'PENDING', paid_at: null });
    expect((await verb(rest.body.id, 'void')).body.code).to.equal('invalid_operation');
    expect((await credit(invoice, [null, '25'])).status, 'the key of a void note is free').to.equal(201);
  });

  it('201 a refund goes to the prepaid wallet, and cannot be voided', async () => {
    const payer = await make('/customers', { external_id: 'payer' });
    const invoice = await invoiced('100', { customer_id: payer.id });
    const first = await credit(invoice, ['60', '10']);
    expect(first.body).to.include({ credit_note_type: 'REFUND', refund_status: 'SUCCEEDED', total_amount: '70' });
    expect(first.body.invoice).to.include({ payment_status: 'PARTIALLY_REFUNDED', refunded_amount: '70' });
    expect(await balance(payer.id)).to.equal('70');
    const more = await credit(invoice, [null, '30.01']);
    expect([more.status, more.body.details!.max_allowed], more.text).to.deep.equal([400, '30']);
    expect((await credit(invoice, [null, '30'])).body.invoice!.payment_status).to.equal('REFUNDED');
    expect(await balance(payer.id)).to.equal('100');
    expect((await verb(first.body.id, 'void')).body.code).to.equal('invalid_operation');
    const [wallet] = await get(`/customers/${payer.id}/wallets`);
    expect(wallet!.wallet_type).to.equal('PRE_PAID');
    const { items } = await get(`/wallets/${wallet!.id}/transactions`);
    expect(items[0]).to.include({ transaction_reason: 'CREDIT_NOTE', reference_id: invoice.id, amount: '30' });
  });

  it('201 of an overpaid invoice; what it gives back pays whatever is charged next', async () => {
    const { id: customer_id } = await make('/customers', { external_id: 'overpayer' });
    const invoice = await invoiced('120', { customer_id });
    const { status, body, text } = await credit(invoice, ['60', '40']);
    expect(status, text).to.equal(201);
    expect(body.invoice).to.include({ payment_status: 'PARTIALLY_REFUNDED', refunded_amount: '100' });
    const { config } = (await get(`/customers/${customer_id}/wallets`))[0]!;
    expect(config!.allowed_price_types).to.deep.equal(['ALL']);
    const next = await get(`/invoices/${(await invoiced(undefined, { customer_id })).id}`);
    expect(next).to.include({ total_credits_applied_after_tax: '100', amount_paid: '100', amount_remaining: '0' });
  });

  it('a draft has no effect, and goes by the payment of its invoice when it becomes final', async () => {
    const invoice = await invoiced();
    const { body: draft } = await credit(invoice, ['60', null], { process_credit_note: false });
    expect(draft).to.include({ credit_note_status: 'DRAFT', credit_note_type: 'ADJUSTMENT', finalized_at: null });
    expect(draft.invoice!.amount_due).to.equal('100');
    const twin = await credit(invoice, ['60', null], { process_credit_note: false, idempotency_key: 'second' });
    expect(twin.status, 'a draft takes nothing').to.equal(201);
    await api.request('PUT', `/invoices/${invoice.id}/payment`, { body: { payment_status: 'SUCCEEDED' } });
    const done = await verb(draft.id, 'finalize');
    expect(done.status, done.text).to.equal(200);
    expect(done.body).to.include({ credit_note_status: 'FINALIZED', credit_note_type: 'REFUND' });
    expect((await verb(draft.id, 'finalize')).body.code).to.equal('invalid_operation');
    const late = await verb(twin.body.id, 'finalize');
    expect([late.status, late.body.code, late.body.details!.max_allowed]).to.deep.equal([400, 'validation_error', '0']);
    expect((await verb(twin.body.id, 'void')).body.credit_note_status).to.equal('VOIDED');
  });

  it('numbers follow one another without gaps; a draft gets its number when it takes effect', async () => {
    const invoice = await invoiced();
    const numberOf = (note: CreditNote) => Number(/^CN-202603-(\d{5})$/.exec(note.credit_note_number)![1]);
    const { body: first } = await credit(invoice, ['1', null], { idempotency_key: 'n1' });
    expect((await credit(invoice, ['1000', null])).status, 'a refused note takes no number').to.equal(400);
    const { body: draft } = await credit(invoice, ['2', null], { idempotency_key: 'n2', process_credit_note: false });
    expect(draft.credit_note_number).to.match(/^CN-DRAFT-[0-9A-HJKMNP-TV-Z]{9}$/);
    const { body: second } = await credit(invoice, ['1', null], { idempotency_key: 'n3' });
    const { body: third } = await verb(draft.id, 'finalize');
    expect([second, third].map(numberOf)).to.deep.equal([numberOf(first) + 1, numberOf(first) + 2]);
    const own = {
      idempotency_key: 'n4',
      credit_note_number: `CN-202603-${String(numberOf(third) + 1).padStart(5, '0')}`,
    };
    expect((await credit(invoice, ['1', null], own)).body.credit_note_number).to.equal(own.credit_note_number);
    const { body: next } = await credit(invoice, ['1', null], { idempotency_key: 'n5' });
    expect(numberOf(next), 'a number that a request took is skipped').to.equal(numberOf(third) + 2);
    const value = { prefix: 'RK', separator: '/', format: 'YYYY', suffix_length: 3 };
    expect((await api.request('PUT', '/settings/credit_note_config', { body: { value } })).status).to.equal(200);
    const { body: other } = await credit(invoice, ['1', null], { idempotency_key: 'n6' });
    expect(other.credit_note_number).to.equal('RK/2026/001');
    expect((await api.request('DELETE', '/settings/credit_note_config')).status).to.equal(200);
  });

  it('numbers of notes made at one time differ, and have no gap', async () => {
    const invoices = await Promise.all(Array.from({ length: 6 }, () => invoiced()));
    const answers = await Promise.all(invoices.map((invoice) => credit(invoice, ['1', null])));
    expect(answers.map(({ status }) => status)).to.deep.equal(Array(6).fill(201));
    const numbers = answers.map(({ body }) => Number(body.credit_note_number.slice(-5))).sort((a, b) => a - b);
    expect(numbers.map((number) => number - numbers[0]!)).to.deep.equal([0, 1, 2, 3, 4, 5]);
  });

  it('has a PDF, at once and by an address', async () => {
    const { body: note } = await credit(await invoiced(), ['60', null]);
    const headers = { 'x-api-key': api.key };
    const open = async (url: string, init = {}) => {
      const answer = await fetch(url, init);
      return { status: answer.status, name: answer.headers.get('content-disposition'), bytes: await answer.bytes() };
    };
    const file = await open(`${api.url}/v1/creditnotes/${note.id}/pdf`, { headers });
    expect([file.status, file.name]).to.deep.equal([200, `inline; filename*=UTF-8''${note.credit_note_number}.pdf`]);
    expect(Buffer.from(file.bytes.subarray(0, 5)).toString()).to.equal('%PDF-');
    const { presigned_url } = await get(`/creditnotes/${note.id}/pdf?url=true`);
    expect(Buffer.from((await open(presigned_url)).bytes).equals(Buffer.from(file.bytes))).to.equal(true);
    expect((await open(`${presigned_url.slice(0, -3)}abc`)).status).to.equal(404);
    const other = await api.otherTenant();
    expect((await api.request('GET', `/creditnotes/${note.id}/pdf`, { key: other.key })).status).to.equal(404);
  });

  it('400 names the field at fault', async () => {
    const invoice = await invoiced();
    const stranger = await invoiced();
    const draft = await invoiced(undefined, { invoice_status: 'DRAFT' });
    const cases = [
      ['line_items', credit(invoice, [])],
      ['line_items[0].amount', credit(invoice, ['60.01'])],
      ['line_items[0].amount', credit(invoice, ['0'])],
      ['line_items[1].amount', credit(invoice, ['1', '0.001'])],
      ['line_items[0].invoice_line_item_id', credit({ ...stranger, id: invoice.id }, ['1'])],
      ['invoice_id', credit(draft, ['1'])],
      ['reason', credit(invoice, ['1'], { reason: 'BECAUSE' })],
    ] as const;
    for (const [field, asked] of cases) {
      const { status, body } = await asked;
      expect([status, body.details?.field ?? body.message], JSON.stringify(body)).to.deep.equal([400, field]);
    }
  });

  it('401, 403 and 404', async () => {
    const invoice = await invoiced();
    expect((await api.request('GET', '/creditnotes', { key: null })).status).to.equal(401);
    const reader = await api.keyWithRoles(['all_reader']);
    const body = bodyOf(invoice, ['1']);
    expect((await api.request('POST', '/creditnotes', { key: reader, body })).status).to.equal(403);
    const { key } = await api.otherTenant();
    expect((await api.request('POST', '/creditnotes', { key, body })).status).to.equal(404);
    const { id } = (await credit(invoice, ['1'])).body;
    expect((await api.request('GET', `/creditnotes/${id}`, { key })).status).to.equal(404);
    for (const name of ['finalize', 'void'])
      expect((await api.request('POST', `/creditnotes/${id}/${name}`, { key })).status).to.equal(404);
  });

  it('409 for the same note twice, for one key and for one number', async () => {
    const invoice = await invoiced();
    expect((await credit(invoice, ['1'])).status).to.equal(201);
    expect((await credit(invoice, ['1'])).status).to.equal(409);
    expect((await credit(invoice, ['1'], { idempotency_key: 'b', credit_note_number: 'B-1' })).status).to.equal(201);
    expect((await credit(invoice, ['2'], { idempotency_key: 'b' })).status).to.equal(409);
    expect((await credit(invoice, ['3'], { credit_note_number: 'B-1' })).status).to.equal(409);
  });

  it('notes, a void and another at once give back once what was paid', async () => {
    const racer = await make('/customers', { external_id: 'racer' });
    const invoice = await invoiced('100', { customer_id: racer.id });
    const drafts = await Promise.all(
      ['a', 'b', 'c'].map(
        async (idempotency_key) =>
          (await credit(invoice, ['40', '20'], { idempotency_key, process_credit_note: false })).body.id,
      ),
    );
    const answers = await Promise.all([
      ...drafts.map((id) => verb(id, 'finalize')),
      credit(invoice, ['60', '40']),
      api.request('POST', `/invoices/${invoice.id}/void`),
      api.request('POST', `/invoices/${invoice.id}/void`),
    ]);
    expect(answers.map(({ status }) => status).filter((status) => status >= 500)).to.deep.equal([]);
    const after = await get(`/invoices/${invoice.id}`);
    // A void gives back what the notes before it have left; a note that took all of it leaves nothing to be voided.
    expect(after).to.include({ payment_status: 'REFUNDED', refunded_amount: '100' });
    expect(await balance(racer.id)).to.equal('100');
  });

  it('lists by every condition', async () => {
    const invoice = await invoiced('100');
    const { body: note } = await credit(invoice, ['5'], { metadata: { q: 'x' } });
    const { body: draft } = await credit(invoice, ['6'], { process_credit_note: false });
    const list = async (query: string) => (await get(`/creditnotes?${query}`)).items.map(({ id }) => id);
    expect(await list(`invoice_id=${invoice.id}`)).to.deep.equal([draft.id, note.id]);
    expect(await list(`credit_note_ids=${note.id}`)).to.deep.equal([note.id]);
    expect(await list(`invoice_id=${invoice.id}&credit_note_status=draft,voided`)).to.deep.equal([draft.id]);
    expect(await list(`invoice_id=${invoice.id}&credit_note_type=ADJUSTMENT`)).to.deep.equal([]);
    expect(await list(`metadata[q]=x`)).to.deep.equal([note.id]);
    const [full] = (await get(`/creditnotes?credit_note_ids=${note.id}&expand=invoice,customer,subscription`)).items;
    expect([full!.invoice!.id, full!.customer!.id, full!.subscription]).to.deep.equal([invoice.id, customer.id, null]);
    const [bare] = (await get(`/creditnotes?credit_note_ids=${note.id}`)).items;
    expect([bare!.invoice, bare!.customer, bare!.line_items.length]).to.deep.equal([null, null, 1]);
  });
});
