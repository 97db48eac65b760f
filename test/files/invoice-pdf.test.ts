import { expect } from 'chai';
import type { Invoice } from '../support/answers.ts';
import { startTestApi, type TestApi } from '../support/api.ts';

describe('/invoices/{id}/pdf', () => {
  let api: TestApi;
  let invoice: Invoice;

  before(async () => {
    api = await startTestApi({ now: '2026-03-15T12:00:00.000Z' });
    const { body: customer } = await api.request('POST', '/customers', { body: { external_id: 'acme', name: 'Acme' } });
    const body = { customer_id: customer.id, currency: 'usd', amount_due: '30', total: '30', subtotal: '30' };
    invoice = (await api.request('POST', '/invoices', { body })).body;
  });
  after(() => api.stop());

  const pdf = async (query = '', headers?: Record<string, string>) => {
    const answer = await fetch(`${api.url}/v1/invoices/${invoice.id}/pdf${query}`, {
      headers: headers ?? { 'x-api-key': api.key },
    });
    return { answer, bytes: Buffer.from(await answer.arrayBuffer()) };
  };

  it('is made of a draft, marked as one, at each question', async () => {
    const { answer, bytes } = await pdf();
    expect(answer.status).to.equal(200);
    expect(answer.headers.get('content-type')).to.equal('application/pdf');
    expect(answer.headers.get('content-disposition')).to.contain(`${invoice.id}.pdf`);
    expect(bytes.subarray(0, 5).toString()).to.equal('%PDF-');
  });

  it('of a final invoice stays as it was made, until the invoice changes or it is asked for anew', async () => {
    await api.request('POST', `/invoices/${invoice.id}/finalize`);
    const first = await pdf();
    expect(first.answer.headers.get('content-disposition')).to.contain('INV-202603-00001.pdf');
    const etag = first.answer.headers.get('etag')!;
    const askAgain = () => api.request('GET', `/invoices/${invoice.id}/pdf`, { headers: { 'if-none-match': etag } });
    const again = await askAgain();
    expect([again.status, again.text]).to.deep.equal([304, '']);
    expect(first.answer.headers.get('cache-control')).to.equal('private, no-cache');
    const settings = { value: { language: 'de', company: { name: 'Acme Industries' } } };
    expect((await api.request('PUT', '/settings/invoice_pdf_config', { body: settings })).status).to.equal(200);
    const kept = await pdf();
    expect(kept.bytes.equals(first.bytes)).to.equal(true);
    const anew = await pdf('?force_generate=true');
    expect(anew.bytes.equals(first.bytes)).to.equal(false);
    expect((await pdf()).bytes.equals(anew.bytes)).to.equal(true);
    await api.request('PUT', `/invoices/${invoice.id}/payment`, { body: { payment_status: 'SUCCEEDED' } });
    expect((await pdf()).bytes.equals(anew.bytes)).to.equal(false);
    expect((await askAgain()).status).to.equal(200);
  });

  it('has an address that needs no key, and is good for a quarter of an hour', async () => {
    const { body, status } = await api.request('GET', `/invoices/${invoice.id}/pdf?url=true`);
    expect(status).to.equal(200);
    const opened = await fetch(body.presigned_url);
    expect(opened.status).to.equal(200);
    const bytes = Buffer.from(await opened.arrayBuffer());
    expect(bytes.equals((await pdf()).bytes)).to.equal(true);
    api.setNow('2026-03-15T12:16:00.000Z');
    expect((await fetch(body.presigned_url)).status).to.equal(404);
    expect((await fetch(`${body.presigned_url.slice(0, -3)}abc`)).status).to.equal(404);
    const token = body.presigned_url.split('/').at(-1);
    expect((await pdf('', { authorization: `Bearer ${token}` })).answer.status).to.equal(401);
  });

  it('is of nobody without a key, and of no other tenant', async () => {
    expect((await pdf('', {})).answer.status).to.equal(401);
    const other = await api.otherTenant();
    for (const query of ['', '?url=true', '?force_generate=true']) {
      const answer = await api.request('GET', `/invoices/${invoice.id}/pdf${query}`, { key: other.key });
      expect(answer.status, query).to.equal(404);
    }
  });
});
