/** The name of the tenant of the first start stands on no invoice (docs/rules/documents.md, "The seller"). */
import { expect } from 'chai';
import { loadSeller } from '../../actions/invoicing/documents/printed-by.ts';
import { loadSetting } from '../../storage/models/foundation/setting.ts';
import { startTestApi, type TestApi } from '../support/api.ts';

describe('the seller of invoices', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi({ now: '2026-03-01T00:00:00Z' });
  });
  after(() => api.stop());

  const email = (name: string) => `ada@${name}.example`;
  async function signUp(name: string, more: object = {}) {
    const body = { email: email(name), password: 'long enough', ...more };
    const { status, body: made, text } = await api.request('POST', '/auth/signup', { key: null, body });
    expect(status, text).to.equal(200);
    const bearer = { authorization: `Bearer ${made.token}` };
    const list = await fetch(`${api.url}/v1/environments`, { headers: bearer });
    const { environments } = (await list.json()) as { environments: { id: string; type: string }[] };
    const request = async (type: string, method: string, path: string, sent?: object) => {
      const id = environments.find((one) => one.type === type)!.id;
      const headers = { ...bearer, 'x-environment-id': id, 'content-type': 'application/json' };
      const init = sent ? { method, headers, body: JSON.stringify(sent) } : { method, headers };
      const answer = await fetch(`${api.url}/v1${path}`, init);
      return { status: answer.status, body: (await answer.json()) as { id: string; error: string; code: string } };
    };
    const finalize = async (type: string) => {
      const customer = await request(type, 'POST', '/customers', { external_id: `${Math.random()}` });
      const sums = { subtotal: '1', total: '1', amount_due: '1' };
      const wanted = { customer_id: customer.body.id, currency: 'usd', ...sums, invoice_status: 'FINALIZED' };
      return request(type, 'POST', '/invoices', wanted);
    };
    const seller = async (type: string) => {
      const scope = { tenant_id: made.tenant_id, environment_id: environments.find((one) => one.type === type)!.id };
      const database = api.services.postgres;
      return loadSeller(await loadSetting(scope, 'invoice_pdf_config', database), { ...scope, database });
    };
    const forgetName = () => api.services.postgres('tenants').where({ id: made.tenant_id }).update({ is_named: false });
    return { request, finalize, seller, forgetName };
  }

  it('is asked for at sign-up, with its address', async () => {
    const address = { address_line1: '1 Main Street', address_city: 'Berlin', address_country: 'DE' };
    const billing_details = { email: 'billing@named.example', address };
    const named = await signUp('named', { tenant_name: 'Named Inc.', billing_details });
    expect(await named.seller('production')).to.deep.equal({
      name: 'Named Inc.',
      lines: ['1 Main Street', 'Berlin', 'Germany', 'billing@named.example'],
    });
    expect((await named.finalize('production')).status).to.equal(201);

    const cleared = { billing_details: { email: null, address: null } };
    expect((await named.request('production', 'PUT', '/tenants/update', cleared)).status).to.equal(200);
    expect(await named.seller('production')).to.deep.equal({ name: 'Named Inc.', lines: [] });
  });

  it('without a name finalizes in development alone, until the tenant or the setting has one', async () => {
    const unnamed = await signUp('unnamed');
    // Like the tenant of the first start.
    await unnamed.forgetName();
    expect((await unnamed.finalize('development')).status).to.equal(201);
    expect((await unnamed.seller('development')).name).to.equal('');
    const refused = await unnamed.finalize('production');
    expect([refused.status, refused.body.code]).to.deep.equal([400, 'invalid_operation']);
    expect(JSON.stringify(refused.body)).to.contain('PUT /tenants/update');
    expect((await unnamed.request('production', 'PUT', '/tenants/update', { name: 'Late Inc.' })).status).to.equal(200);
    expect((await unnamed.finalize('production')).status).to.equal(201);
    expect((await unnamed.seller('production')).name).to.equal('Late Inc.');

    const setting = await signUp('setting');
    await setting.forgetName();
    const value = { company: { name: 'Set Inc.' } };
    const path = '/settings/invoice_pdf_config';
    expect((await setting.request('production', 'PUT', path, { value })).status).to.equal(200);
    expect((await setting.finalize('production')).status).to.equal(201);
  });

  it('is the domain of the email where the sign-up names none', async () => {
    const short = await signUp('short');
    expect((await short.seller('production')).name).to.equal('short.example');
    expect((await short.finalize('production')).status).to.equal(201);
  });

  it('is not the tenant Default of the first start', async () => {
    const { scope, services } = api;
    const settings = await loadSetting(scope, 'invoice_pdf_config', services.postgres);
    expect((await loadSeller(settings, { ...scope, database: services.postgres })).name).to.equal('');
  });
});
