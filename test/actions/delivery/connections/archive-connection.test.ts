/** docs/integrations/README.md, "Connections": an archive in several transactions, which is killed between two of them and repeated. */
import { expect } from 'chai';
import { archiveConnection } from '../../../../actions/delivery/connections/archive-connection.ts';
import { ConnectionModel } from '../../../../storage/models/foundation/connection.ts';
import { startTestApi, type TestApi } from '../../../support/api.ts';
import { StripeFake } from '../../../support/providers/stripe-fake.ts';
import { until } from '../../../support/until.ts';

type Shown = { id: string };

describe('archiving a connection', () => {
  let fake: StripeFake;
  let api: TestApi;
  let connection_id: string;
  const now = new Date();

  before(async () => {
    fake = await new StripeFake().start();
    const SECRETS_KEYS = 'a key of the settings that has 32 characters';
    api = await startTestApi({ now, config: { SECRETS_KEYS, PROVIDER_ADDRESSES: `stripe=${fake.url.href}` } });
    const encrypted_secret_data = { stripe: { secret_key: 'sk_test_fake' } };
    const body = { name: 'Stripe', provider_type: 'stripe', encrypted_secret_data };
    connection_id = (await ok('POST', '/connections', body)).id;
  });
  after(async () => {
    await api.stop();
    await fake.stop();
  });

  const ok = async (method: string, path: string, body: unknown) => {
    const answer = await api.request<Shown>(method, path, { body });
    expect(answer.status, answer.text).to.be.lessThan(300);
    return answer.body;
  };
  const newVoidPage = async (external_id: string) => {
    const { id: customer_id } = await ok('POST', '/customers', { external_id });
    const line_items = [{ display_name: 'Help', amount: '100', quantity: '1' }];
    const amounts = { amount_due: '100', total: '100', subtotal: '100', currency: 'usd', line_items };
    const invoice = await ok('POST', '/invoices', { customer_id, ...amounts, invoice_status: 'FINALIZED' });
    const destination = { destination_type: 'INVOICE', destination_id: invoice.id, amount: '100', currency: 'usd' };
    const method = { payment_method_type: 'PAYMENT_LINK', payment_gateway: 'stripe' };
    const { id } = await ok('POST', '/payments', { ...destination, ...method });
    await ok('PUT', `/payments/${id}`, { payment_status: 'VOIDED' });
    return id;
  };
  const archive = () =>
    archiveConnection(api.services, api.scope, {
      id: connection_id,
      author: { user_id: 'user_a', now },
      mappings_at_once: 2,
      pages_at_once: 2,
    });
  const listMappings = () =>
    api.services
      .postgres('integration_mappings')
      .where({ connection_id })
      .orderBy('entity_id')
      .select('id', 'mapping_state');

  it('that is killed between two transactions is completed by a repeated one, which does nothing twice', async () => {
    const { postgres } = api.services;
    const pages = [await newVoidPage('one'), await newVoidPage('two'), await newVoidPage('three')];
    for (const external_id of ['four', 'five']) {
      const { id: entity_id } = await ok('POST', '/customers', { external_id });
      const link = { provider_type: 'stripe', entity_type: 'customer', entity_id };
      await ok('POST', '/integrations/link', { ...link, provider_entity_id: `cus_${external_id}` });
    }
    const mappings = (await listMappings()).map(({ id }) => id);
    expect(mappings).to.have.length(5);
    const stopped = { connection_state: 'needs_attention', attention_reason: 'the key was revoked' };
    await postgres('connections').where({ id: connection_id }).update(stopped);
    const [entries, events] = [
      await postgres('audit_entries').select('id'),
      await postgres('system_events').select('id'),
    ];

    const blocker = await postgres.transaction();
    await blocker('integration_mappings').where({ id: mappings[3] }).forUpdate();
    const killed = archive().catch((error: Error) => error);
    const pid = await until('the third transaction waits for the lock', async () => {
      const [waiting] = await postgres('pg_stat_activity').where({ wait_event_type: 'Lock' }).select('pid');
      return waiting?.pid as number | undefined;
    });
    await postgres.raw('select pg_terminate_backend(?)', [pid]);
    expect(await killed).to.be.instanceOf(Error);
    await blocker.rollback();

    const database = postgres;
    const between = await ConnectionModel.fetch(api.scope, connection_id, { database });
    expect(between).to.include({ status: 'published', connection_state: 'being_archived' });
    const states = (await listMappings()).map(({ mapping_state }) => mapping_state);
    expect(states).to.deep.equal(['gone', 'gone', 'made', 'made', 'made']);

    await archive();
    expect((await listMappings()).every(({ mapping_state }) => mapping_state === 'gone')).to.equal(true);
    const after = await ConnectionModel.fetch(api.scope, connection_id, { database });
    expect(after).to.include({ status: 'archived', secret: '' });
    const audited = await postgres('audit_entries')
      .whereNotIn(
        'id',
        entries.map(({ id }) => id),
      )
      .select('entity_id');
    const counted = audited.map(({ entity_id }) => entity_id as string).sort();
    expect(counted).to.deep.equal([...mappings, ...pages, connection_id, connection_id].sort());
    const sent = await postgres('system_events')
      .whereNotIn(
        'id',
        events.map(({ id }) => id),
      )
      .select('entity_id');
    expect(sent.map(({ entity_id }) => entity_id).sort()).to.deep.equal([...pages].sort());
  });
});
