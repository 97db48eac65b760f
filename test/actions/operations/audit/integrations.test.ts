/** docs/operations.md, "What the audit finds", check `integrations`. */
import { expect } from 'chai';
import { auditIntegrations } from '../../../../actions/operations/audit/integrations.ts';
import { startTestApi, type TestApi } from '../../../support/api.ts';
import { StripeFake } from '../../../support/providers/stripe-fake.ts';

const KEY = 'a key of the settings that has 32 characters';

describe('audit of integrations', () => {
  let fake: StripeFake;
  let api: TestApi;
  let invoice_id: string;

  const request = async (path: `/${string}`, body: object) => {
    const answer = await api.request('POST', path, { body });
    expect(answer.status, answer.text).to.be.oneOf([200, 201]);
    return answer.body as Record<string, string>;
  };
  const audited = async () => {
    const found: string[] = [];
    await auditIntegrations(api.services, ({ kind, what }) => found.push(`${kind} ${what}`));
    return found;
  };
  const age = (table: string, id: string, columns: string[]) =>
    api.services
      .postgres(table)
      .where({ id })
      .update(Object.fromEntries(columns.map((column) => [column, new Date(Date.now() - 2 * 3_600_000)])));

  before(async () => {
    fake = await new StripeFake().start();
    const config = { SECRETS_KEYS: KEY, PROVIDER_ADDRESSES: `stripe=${fake.url.href}` };
    api = await startTestApi({ now: new Date(), config });
    const encrypted_secret_data = { stripe: { secret_key: 'sk_test_fake' } };
    const { id } = await request('/connections', { name: 'Stripe', provider_type: 'stripe', encrypted_secret_data });
    await api.services
      .postgres('connections')
      .where({ id })
      .update({ created_at: new Date(Date.now() - 86_400_000) });
    const { id: customer_id } = await request('/customers', { external_id: 'acme', name: 'Acme' });
    const line_items = [{ display_name: 'Help', amount: '100', quantity: '1' }];
    const amounts = { amount_due: '100', total: '100', subtotal: '100', currency: 'usd', line_items };
    invoice_id = (await request('/invoices', { customer_id, ...amounts, invoice_status: 'FINALIZED' }))['id']!;
  });
  after(async () => {
    await api.stop();
    await fake.stop();
  });

  it('names a final invoice that was not sent, after an hour', async () => {
    expect(await audited()).to.deep.equal([]);
    await age('invoices', invoice_id, ['finalized_at']);
    expect(await audited()).to.deep.equal([
      `invoice_not_sent ${invoice_id} is FINALIZED, 100 remains, and it has no mapping at stripe`,
    ]);
  });

  it('names a push whose answer was lost, and is silent after it was repeated', async () => {
    const sync = { entity_type: 'invoice', entity_id: invoice_id };
    fake.disturb(/POST invoices$/, 'lost_answer');
    expect((await api.request('POST', '/integrations/sync', { body: sync })).status).to.equal(503);
    const mapping = await api.services.postgres('integration_mappings').where({ entity_id: invoice_id }).first();
    await age('integration_mappings', mapping.id, ['key_created_at']);
    const [found, ...others] = await audited();
    expect(found).to.match(/^push_unresolved .* the answer was lost$/);
    expect(others).to.deep.equal([]);
    await request('/integrations/sync', sync);
    expect(await audited()).to.deep.equal([]);
  });

  it('names a payment that the copy of its invoice lacks', async () => {
    const payment = { destination_type: 'INVOICE', destination_id: invoice_id, payment_method_type: 'OFFLINE' };
    const { id } = await request('/payments', { ...payment, amount: '40', currency: 'usd' });
    await age('payments', id!, ['updated_at']);
    expect(await audited()).to.deep.equal([
      `payment_not_sent ${id} is SUCCEEDED over 40, and it has no mapping at stripe, which has its invoice without it`,
    ]);
    await request('/integrations/sync', { entity_type: 'payment', entity_id: id });
    expect(await audited()).to.deep.equal([]);
  });

  it('is silent about a payment that the provider reported, although it has no gateway', async () => {
    const { postgres } = api.services;
    const payment = { destination_type: 'INVOICE', destination_id: invoice_id, payment_method_type: 'OFFLINE' };
    const { id } = await request('/payments', { ...payment, amount: '30', currency: 'usd' });
    await age('payments', id!, ['updated_at']);
    expect(await audited()).to.have.length(1);
    const { connection_id } = await postgres('integration_mappings').where({ entity_id: invoice_id }).first();
    await postgres('payments').where({ id }).update({ connection_id });
    await age('payments', id!, ['updated_at']);
    expect(await audited()).to.deep.equal([]);
  });
});
