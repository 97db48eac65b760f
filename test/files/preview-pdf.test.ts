/** POST /invoices/preview/pdf: a document under settings that are not saved (docs/rules/documents.md, "Settings before they are saved"). */
import { expect } from 'chai';
import { gatherPreview, type PreviewPdfInput } from '../../actions/invoicing/documents/preview-pdf.ts';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import { buildInvoiceDocument } from '../../core/invoicing/document/document.ts';
import { buildSampleInvoice } from '../../core/invoicing/document/sample.ts';
import { toWholeSetting } from '../../core/platform/setting/record.ts';
import type { Invoice } from '../support/answers.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { listChanged, readTraces } from '../support/traces.ts';

describe('/invoices/preview/pdf', () => {
  let api: TestApi;
  let invoice: Invoice;

  before(async () => {
    api = await startTestApi({ now: '2026-03-15T12:00:00.000Z' });
    const { body: customer } = await api.request('POST', '/customers', { body: { external_id: 'acme', name: 'Acme' } });
    const body = { customer_id: customer.id, currency: 'usd', amount_due: '30', total: '30', subtotal: '30' };
    invoice = (await api.request('POST', '/invoices', { body })).body;
    const value = { prefix: 'ACME' };
    await api.request('PUT', '/settings/invoice_config', { body: { value } });
  });
  after(() => api.stop());

  const preview = async (body: unknown, key = api.key) => {
    const answer = await fetch(`${api.url}/v1/invoices/preview/pdf`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return { answer, bytes: Buffer.from(await answer.arrayBuffer()) };
  };
  const show = async (fields: Partial<PreviewPdfInput>) => {
    const none = { invoice_id: null, invoice_config: null, invoice_pdf_config: null, tenant: null, fonts: null };
    const input = { ...none, now: new Date('2026-03-15T12:00:00.000Z'), ...fields };
    return buildInvoiceDocument(await gatherPreview(api.services, api.scope, input));
  };
  const facts = (document: Awaited<ReturnType<typeof show>>) => document.facts.map(({ value }) => value);

  it('200: a sample, with the saved settings and the sent ones, and nothing is written', async () => {
    const before = await readTraces(api.services.postgres);
    const { answer, bytes } = await preview({});
    expect([answer.status, answer.headers.get('content-type')]).to.deep.equal([200, 'application/pdf']);
    expect(answer.headers.get('content-disposition')).to.contain('preview.pdf');
    expect(bytes.subarray(0, 5).toString()).to.equal('%PDF-');
    const other = await preview({ invoice_pdf_config: { language: 'de', color: '#ff0000' } });
    expect(other.bytes.equals(bytes)).to.equal(false);
    expect((await preview({})).bytes.equals(bytes)).to.equal(true);
    expect(listChanged(before, await readTraces(api.services.postgres))).to.deep.equal([]);
    expect(facts(await show({}))).to.deep.equal([
      'ACME-202603-00001',
      '15 Mar 2026',
      '16 Mar 2026',
      '1 Feb 2026 – 28 Feb 2026',
    ]);
    const changed = await show({
      invoice_config: { prefix: 'EX', format: 'YYYY', suffix_length: 3, start_sequence: 7, due_date_days: 14 },
      invoice_pdf_config: { language: 'de', company: { name: 'Beispiel GmbH', lines: ['Berlin'] }, notes: 'Danke' },
    });
    expect([changed.title, changed.from.name, ...changed.notes]).to.deep.equal(['Rechnung', 'Beispiel GmbH', 'Danke']);
    expect(facts(changed).slice(0, 3)).to.deep.equal(['EX-2026-007', '15.03.2026', '29.03.2026']);
  });

  it('200: null resets a field to its default', async () => {
    expect(facts(await show({ invoice_config: { prefix: null } }))[0]).to.equal('INV-202603-00001');
  });

  it('200: with tenant data that is not saved', async () => {
    const tenant = {
      name: 'Unsaved Ltd',
      billing_details: { address: { address_city: 'Cork' }, email: 'a@b.example' },
    };
    const { from } = await show({ tenant });
    expect([from.name, ...from.lines]).to.deep.equal(['Unsaved Ltd', 'Cork', 'a@b.example']);
    expect((await preview({ tenant })).answer.status).to.equal(200);
  });

  it('200: of a given invoice, which has its own number', async () => {
    const { answer, bytes } = await preview({ invoice_id: invoice.id, invoice_pdf_config: { color: '#123456' } });
    expect(answer.status).to.equal(200);
    const stored = await fetch(`${api.url}/v1/invoices/${invoice.id}/pdf`, { headers: { 'x-api-key': api.key } });
    const own = Buffer.from(await stored.arrayBuffer());
    expect(own.equals(bytes)).to.equal(false);
    expect((await preview({ invoice_id: invoice.id })).bytes.equals(own)).to.equal(true);
    const document = await show({ invoice_id: invoice.id, invoice_config: { prefix: 'EX' } });
    expect([document.mark, document.to.name]).to.deep.equal(['DRAFT', 'Acme']);
    expect(facts(document)).not.to.include('EX-202603-00001');
  });

  const faults: [object, string][] = [
    [{ invoice_pdf_config: { language: 'xx' } }, 'invoice_pdf_config.language'],
    [{ invoice_pdf_config: { colour: '#000000' } }, 'invoice_pdf_config.colour'],
    [{ invoice_config: { due_date_days: -1 } }, 'invoice_config.due_date_days'],
    [{ tenant: { name: ' ' } }, 'tenant.name'],
  ];
  for (const [body, field] of faults)
    it(`400: ${field}`, async () => {
      const answer = await api.request('POST', '/invoices/preview/pdf', { body });
      expect([answer.status, answer.body.details?.field], answer.text).to.deep.equal([400, field]);
    });

  it("401 without a key, 403 without the permission, 404 for another tenant's invoice", async () => {
    const body = { invoice_id: invoice.id };
    expect((await api.request('POST', '/invoices/preview/pdf', { body, key: null })).status).to.equal(401);
    expect((await preview(body, await api.keyWithRoles(['event_ingestor']))).answer.status).to.equal(403);
    expect((await preview(body, (await api.otherTenant()).key)).answer.status).to.equal(404);
    expect((await preview(body, await api.keyWithRoles(['all_reader']))).answer.status).to.equal(200);
  });

  it('the sample adds up', () => {
    const numbers = toWholeSetting('invoice_config', undefined);
    const {
      invoice: sample,
      lines,
      taxes,
    } = buildSampleInvoice({ numbers, due_date_days: 1, now: Date.UTC(2026, 0, 1) });
    const sum = (amounts: readonly string[]) => sumDecimals(amounts.map((amount) => new Decimal(amount))).toFixed();
    expect(sample.subtotal).to.equal(sum(lines.map(({ amount }) => amount)));
    expect(sample.total).to.equal(sum([sample.subtotal, ...taxes.map(({ amount }) => amount)]));
    // 49 + 100,000 × 0.002 + 25,000 × 0.0015 + 5, and 19 % of it.
    expect([sample.subtotal, sample.total_tax, sample.amount_remaining]).to.deep.equal(['291.5', '55.39', '346.89']);
    expect([sample.period_start, sample.period_end]).to.deep.equal([
      '2025-12-01T00:00:00.000Z',
      '2026-01-01T00:00:00.000Z',
    ]);
  });
});
