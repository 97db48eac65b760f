/** GET /dashboard/attention: what needs a person. */
import { expect } from 'chai';
import { startWorld, type World } from '../../support/world.ts';

describe('what needs attention', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-03-01T00:00:00Z' });
    await world.api.request('PUT', '/settings/invoice_config', { body: { value: { due_date_days: 0 } } });
    await world.meter('call');
    await world.customer('acme');
    await world.waitForPipeline();
  });
  after(() => world.stop());

  const list = async (options = {}) => {
    const { status, body, text } = await world.api.request('GET', '/dashboard/attention', options);
    expect(status, text).to.equal(200);
    return body.items;
  };
  const find = async (kind: string) => (await list()).find((one) => one.kind === kind);
  const invoiced = (amount: string, fields: object = {}) => {
    const sums = { subtotal: amount, total: amount, amount_due: amount, currency: 'usd' };
    const customer_id = world.id('customer acme');
    return world.post('/invoices', { customer_id, ...sums, invoice_status: 'FINALIZED', ...fields });
  };
  const send = async (events: object[]) => {
    expect((await world.api.request('POST', '/events/raw/bulk', { body: { events } })).status).to.equal(202);
    await world.waitForPipeline();
  };

  it('nothing of a new environment', async () => {
    expect(await list()).to.deep.equal([]);
  });

  it('failed payments, overdue invoices and drafts with their sums, the oldest first', async () => {
    const ids: string[] = [];
    for (const amount of ['1', '2', '3.5', '4', '5', '6']) {
      ids.push((await invoiced(amount)).id);
      world.at(new Date(world.now.getTime() + 60_000).toISOString());
    }
    const euro = await invoiced('9', { currency: 'eur' });
    const draft = await invoiced('8', { invoice_status: 'DRAFT' });
    await world.api.request('PUT', `/invoices/${euro.id}/payment`, { body: { payment_status: 'FAILED' } });
    world.at('2026-03-02T00:00:00Z');
    const [failed, overdue, waiting, ...others] = await list();
    expect(others).to.deep.equal([]);
    expect(failed).to.deep.include({ kind: 'payment_failed', count: 1, is_minimum: false, sample_ids: [euro.id] });
    expect(failed!.amounts).to.deep.equal([{ currency: 'eur', amount: '9' }]);
    expect(overdue).to.deep.equal({
      ...{ kind: 'invoice_overdue', count: 7, is_minimum: false, oldest_at: '2026-03-01T00:00:00Z' },
      amounts: [
        { currency: 'eur', amount: '9' },
        { currency: 'usd', amount: '21.5' },
      ],
      sample_ids: ids.slice(0, 5),
    });
    expect(waiting).to.deep.include({ kind: 'invoice_draft_waiting', count: 1, sample_ids: [draft.id] });
    expect(waiting!.amounts).to.deep.equal([{ currency: 'usd', amount: '8' }]);
  });

  it('events that are not counted, and dead letters until they are replayed, of the last week', async () => {
    const event = { event_name: 'strange', external_customer_id: 'acme', timestamp: '2026-03-01T00:00:00Z' };
    await send([{ ...event, event_id: 'stray' }]);
    world.at('2026-03-02T00:01:00Z');
    await send([
      { ...event, event_id: 'text', event_name: 'call', properties: { n: 'many' } },
      { ...event, event_id: 'good', event_name: 'call', properties: { n: 1 } },
      { event_id: 'dead', external_customer_id: 'acme' },
    ]);
    expect(await find('events_not_counted')).to.deep.equal({
      ...{ kind: 'events_not_counted', count: 2, is_minimum: false, amounts: [] },
      ...{ oldest_at: '2026-03-02T00:00:00Z', sample_ids: ['text', 'stray'] },
    });
    expect(await find('dead_letters')).to.deep.include({ count: 1, sample_ids: ['dead'] });
    world.at('2026-03-09T00:00:30Z');
    expect(await find('events_not_counted')).to.deep.include({ count: 1, sample_ids: ['text'] });
  });

  it('alerts, failed tasks and failing endpoints', async () => {
    const { postgres } = world.api.services;
    const { scope } = world.api;
    const at = '2026-03-08T00:00:00.000Z';
    const alert = { alert_type: 'low_wallet_balance', entity_id: 'wallet_1', updated_at: at };
    await postgres('alert_states').insert([
      { ...scope, ...alert, alert_status: 'in_alarm' },
      { ...scope, ...alert, entity_id: 'wallet_2', alert_status: 'ok' },
    ]);
    const url = 'https://example.com/hook';
    const endpoint = { url, secret: '', secret_hint: '', failing_since: at };
    await postgres('webhook_endpoints').insert([
      { ...scope, ...endpoint, id: 'whep_failing' },
      { ...scope, ...endpoint, id: 'whep_fine', failing_since: null },
      { ...scope, ...endpoint, id: 'whep_gone', status: 'archived' },
    ]);
    expect(await find('alert_in_alarm')).to.deep.include({ count: 1, sample_ids: ['wallet_1'] });
    expect(await find('webhook_failing')).to.deep.include({ count: 1, sample_ids: ['whep_failing'] });
    expect((await find('webhook_failing'))!.oldest_at).to.equal('2026-03-08T00:00:00Z');
    const task = {
      task_type: 'IMPORT',
      entity_type: 'CUSTOMERS',
      file_type: 'CSV',
      file_url: '',
      task_status: 'FAILED',
    };
    await postgres('tasks').insert([
      { ...scope, ...task, id: 'task_failed', failed_at: at },
      { ...scope, ...task, id: 'task_long_ago', failed_at: '2026-02-01T00:00:00Z' },
    ]);
    expect(await find('task_failed')).to.deep.include({ count: 1, sample_ids: ['task_failed'] });
  });

  it('only what the caller may read, 401 without a key, nothing of another tenant', async () => {
    const key = await world.api.keyWithRoles(['event_reader'], { user_type: 'service_account' });
    expect((await list({ key })).map(({ kind }) => kind)).to.deep.equal(['events_not_counted', 'dead_letters']);
    expect((await world.api.request('GET', '/dashboard/attention', { key: null })).status).to.equal(401);
    const ingestor = await world.api.keyWithRoles(['event_ingestor'], { user_type: 'service_account' });
    expect((await world.api.request('GET', '/dashboard/attention', { key: ingestor })).status).to.equal(403);
    expect(await list({ key: (await world.api.otherTenant()).key })).to.deep.equal([]);
  });
});
