/** GET /events/late: events that came after the invoice of their period was final. */
import { expect } from 'chai';
import { startWorld, usage, type World } from '../../support/world.ts';

type Late = { id: string; invoices: { invoice_id: string; charged_by: object | null }[] };

describe('events: late events', () => {
  let world: World;
  const event = (event_id: string, fields: object = {}) => ({
    event_id,
    event_name: 'call',
    external_customer_id: 'acme',
    timestamp: '2026-03-15T12:00:00Z',
    properties: { n: '1.50', region: 'eu' },
    ...fields,
  });
  const list = async (query = '') => {
    const { status, body, text } = await world.api.request('GET', `/events/late?${query}`);
    expect(status, text).to.equal(200);
    return body;
  };
  const ids = ({ items }: { items: Late[] }) => items.map(({ id }) => id);
  /** Each event is received a second after the one before. */
  async function sendOneByOne(from: string, events: object[]) {
    for (const [index, one] of events.entries()) {
      world.at(new Date(Date.parse(from) + index * 1000).toISOString());
      await world.send([one as Record<string, unknown>]);
    }
    await world.waitForPipeline();
  }

  before(async () => {
    world = await startWorld({ now: '2026-03-01T00:00:00Z' });
    await world.meter('call', { type: 'SUM', field: 'n' }, { filters: [{ key: 'region', values: ['eu'] }] });
    await world.meter('requests', { type: 'COUNT' }, { event_name: 'call' });
    await world.plan('Pro', [usage('call', '0.5')]);
    await world.subscribe('acme', 'Pro');
    await world.subscribe('beta', 'Pro');
    await world.waitForPipeline();
    await sendOneByOne('2026-03-20T00:00:00Z', [
      event('in time'),
      event('in time of beta', { external_customer_id: 'beta' }),
    ]);
    await world.on('2026-04-01');
    // A draft is recomputed with it.
    await sendOneByOne('2026-04-01T00:30:00Z', [event('before the draft is final')]);
    world.at('2026-04-01T02:00:00Z');
    await world.finalize();
    await sendOneByOne('2026-04-02T00:00:00Z', [
      event('late'),
      event('other region', { properties: { n: 1, region: 'asia' } }),
      event('of April', { timestamp: '2026-04-01T12:00:00Z' }),
      event('before March', { timestamp: '2026-02-15T12:00:00Z' }),
      event('stranger', { external_customer_id: 'nobody' }),
      event('late of beta', { external_customer_id: 'beta' }),
      event('voided'),
      event('unusable', { properties: { n: 'many', region: 'eu' } }),
    ]);
    const body = { reason: 'sent by mistake' };
    expect((await world.api.request('POST', '/events/voided/void', { body })).status).to.equal(202);
    await world.waitForPipeline();
  });
  after(() => world.stop());

  describe('200', () => {
    it('newest first, with the invoice that they came too late for', async () => {
      const answer = await list();
      expect(ids(answer)).to.deep.equal(['late of beta', 'late']);
      expect(answer).to.include({ count: null, next_cursor: null, is_complete: true });
      expect(answer.invoices_since).to.equal('2025-12-31T00:00:07Z');
      const [final] = await world.invoices('acme');
      expect(final!.invoice_status).to.equal('FINALIZED');
      const late = answer.items[1]!;
      expect(late).to.deep.include({
        event_name: 'call',
        external_customer_id: 'acme',
        properties: { n: '1.50', region: 'eu' },
      });
      expect(late.received_at).to.equal('2026-04-02T00:00:00Z');
      expect(late.invoices).to.deep.equal([
        {
          invoice_id: final!.id,
          invoice_number: final!.invoice_number,
          finalized_at: final!.finalized_at,
          period_start: '2026-03-01T00:00:00Z',
          period_end: '2026-04-01T00:00:00Z',
          charged_by: null,
        },
      ]);
    });

    it('by customer, name and age of the invoice', async () => {
      expect(ids(await list('external_customer_id=beta'))).to.deep.equal(['late of beta']);
      expect(ids(await list('event_name=call'))).to.have.length(2);
      expect(ids(await list('event_name=other'))).to.deep.equal([]);
      world.at('2026-04-05T00:00:00Z');
      expect(ids(await list('start_time=2026-04-02T00:00:05Z'))).to.deep.equal(['late of beta']);
      expect(ids(await list('end_time=2026-04-02T00:00:05Z'))).to.deep.equal(['late']);
      expect(ids(await list('days=2'))).to.deep.equal([]);
    });

    it('in pages, with the count', async () => {
      const page = await list('limit=1&count=true');
      expect(ids(page)).to.deep.equal(['late of beta']);
      expect(page.count).to.deep.equal({ event_count: 2, has_more: false });
      const next = await list(`limit=1&cursor=${page.next_cursor}`);
      expect(ids(next)).to.deep.equal(['late']);
      expect(next.next_cursor).to.equal(null);
    });

    it('with the invoice that charges them, first as a draft', async () => {
      await world.on('2026-05-01');
      const findDraft = async () =>
        (await world.invoices('acme')).find(({ period_start }) => period_start?.startsWith('2026-04'))!;
      const draft = await findDraft();
      const charged = async () => (await list('external_customer_id=acme')).items[0]!.invoices[0]!.charged_by;
      expect(await charged()).to.deep.equal({
        invoice_id: draft.id,
        invoice_number: draft.invoice_number ?? null,
        invoice_status: 'DRAFT',
      });
      await world.finalize();
      const final = await findDraft();
      expect(await charged()).to.deep.equal({
        invoice_id: draft.id,
        invoice_number: final.invoice_number,
        invoice_status: 'FINALIZED',
      });
    });
  });

  for (const [query, field] of [
    ['days=0', 'days'],
    ['days=367', 'days'],
    ['start_time=noon', 'start_time'],
    ['start_time=2026-03-02T00:00:00Z&end_time=2026-03-01T00:00:00Z', 'end_time'],
    ['limit=0', 'limit'],
    ['count=maybe', 'count'],
    ['cursor=abc', 'cursor'],
  ] as const)
    it(`400 naming ${field} for ${query}`, async () => {
      const { status, text } = await world.api.request('GET', `/events/late?${query}`);
      expect(status).to.equal(400);
      expect(text).to.include(field);
    });

  it('401 without a key, 403 without the permission for events, or for invoices', async () => {
    expect((await world.api.request('GET', '/events/late', { key: null })).status).to.equal(401);
    const key = await world.api.keyWithRoles(['event_ingestor']);
    expect((await world.api.request('GET', '/events/late', { key })).status).to.equal(403);
    const reader = await world.api.keyWithRoles(['event_reader'], { user_type: 'service_account' });
    const refused = await world.api.request('GET', '/events/late', { key: reader });
    expect([refused.status, refused.body.details]).to.deep.equal([403, { permission: 'invoice:read' }]);
  });

  it('nothing of another tenant', async () => {
    const { key } = await world.api.otherTenant();
    const { body } = await world.api.request<{ items: unknown[] }>('GET', '/events/late', { key });
    expect(body.items).to.deep.equal([]);
  });
});

describe('events: late by a correction', () => {
  let world: World;
  const event = (event_id: string, fields: object = {}) => ({
    event_id,
    event_name: 'call',
    external_customer_id: 'acme',
    timestamp: '2026-03-15T12:00:00Z',
    properties: { n: 1 },
    ...fields,
  });
  const replace = (event_id: string, fields: object = {}) =>
    world.replace(event_id, event(event_id, { properties: { n: 2 }, ...fields }));
  const list = async (): Promise<Late[]> => (await world.api.request('GET', '/events/late')).body.items;
  const ids = (items: Late[]) => items.map(({ id }) => id).sort();

  before(async () => {
    world = await startWorld({ now: '2026-03-01T00:00:00Z' });
    await world.meter('call', { type: 'SUM', field: 'n' });
    await world.plan('Pro', [usage('call', '0.5')]);
    await world.subscribe('acme', 'Pro');
    await world.subscribe('beta', 'Pro');
    await world.waitForPipeline();
    world.at('2026-03-20T00:00:00Z');
    await world.send([
      event('counted'),
      event('unusable', { properties: { n: 'many' } }),
      event('of another name', { event_name: 'cal' }),
      event('of another customer', { external_customer_id: 'nobody' }),
      event('of another time', { timestamp: '2026-02-15T12:00:00Z' }),
      event('of beta', { external_customer_id: 'beta' }),
      event('corrected in time', { properties: { n: 'many' } }),
    ]);
    await world.waitForPipeline();
    await replace('corrected in time');
    await world.on('2026-04-01');
    world.at('2026-04-01T02:00:00Z');
    await world.finalize();
    world.at('2026-04-02T00:00:00Z');
  });
  after(() => world.stop());

  it('lists the events that a correction put into the period, and no others', async () => {
    expect(await list()).to.deep.equal([]);
    const moved = ['unusable', 'of another name', 'of another customer', 'of another time', 'of beta'];
    for (const id of ['counted', ...moved]) await replace(id);
    expect(ids(await list())).to.deep.equal([...moved].sort());
    const [final] = await world.invoices('acme');
    for (const { invoices } of await list())
      expect(invoices.map(({ invoice_id, charged_by }) => [invoice_id, charged_by])).to.deep.equal([[final!.id, null]]);
  });

  it('names the draft that charges them', async () => {
    await world.on('2026-05-01');
    const draft = (await world.invoices('acme')).find(({ period_start }) => period_start?.startsWith('2026-04'))!;
    const items = await list();
    expect(items).to.have.length(5);
    for (const { invoices } of items) expect(invoices[0]!.charged_by).to.include({ invoice_id: draft.id });
  });

  it('lists no event that a later correction takes out of the period', async () => {
    await replace('of another time', { timestamp: '2026-04-15T12:00:00Z' });
    expect(ids(await list())).to.not.include('of another time');
  });

  it('reads lines of a bounded number of customers, and names the instant from which on the list is complete', async () => {
    const { postgres } = world.api.services;
    const { tenant_id, environment_id } = world.api.scope;
    await postgres.raw(
      `update invoice_line_items
          set computed_from = jsonb_set(computed_from, '{counted,customers}', (computed_from #> '{counted,customers}') || (
            select jsonb_agg(jsonb_build_object('external_customer_id', 'member ' || n, 'times', null)) from generate_series(1, 30000) n))
        where tenant_id = ? and environment_id = ? and computed_from #> '{counted,customers}' is not null`,
      [tenant_id, environment_id],
    );
    const read = async (query: string) => (await world.api.request('GET', `/events/late?${query}`)).body;
    const { is_complete, invoices_since } = await read('');
    const finals = (await world.invoices('acme')).filter(({ invoice_status }) => invoice_status === 'FINALIZED');
    expect([is_complete, Date.parse(invoices_since)]).to.deep.equal([false, Date.parse(finals[0]!.finalized_at!) + 1]);
    expect(await read('external_customer_id=acme')).to.include({ is_complete: true });
  });
});
