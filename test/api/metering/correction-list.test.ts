/** GET /events/corrections: the corrections of all events of an environment. */
import { expect } from 'chai';
import { startWorld, type World } from '../../support/world.ts';

type Listed = { id: string; event_id: string; action: string; state: string };

describe('events: the list of corrections', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-03-15T12:00:00Z' });
    await world.meter('call');
    await world.waitForPipeline();
    const sent = (event_id: string) => world.event('acme', 'call', { n: 1, at: '2026-03-10T10:00:00Z', event_id });
    await world.send(['first', 'second', 'third'].map(sent));
    await world.waitForPipeline();
    await world.replace('first', {
      ...world.event('beta', 'call', { n: 2, at: '2026-03-11T10:00:00Z' }),
      event_id: undefined,
    });
    world.at('2026-03-16T12:00:00Z');
    await voidEvent('second');
    await world.waitForPipeline();
  });
  after(() => world.stop());

  async function voidEvent(id: string) {
    const body = { reason: 'sent by a test' };
    const { status } = await world.api.request('POST', `/events/${encodeURIComponent(id)}/void`, { body });
    expect(status).to.equal(202);
  }
  const list = async (query = '') => {
    const { status, body, text } = await world.api.request('GET', `/events/corrections?${query}`);
    expect(status, text).to.equal(200);
    return body;
  };
  const ids = ({ items }: { items: Listed[] }) => items.map(({ event_id }) => event_id);

  describe('200', () => {
    it('newest first, with author, reason, state and the event after the correction', async () => {
      const { items, pagination } = await list();
      expect(ids({ items })).to.deep.equal(['second', 'first']);
      expect(pagination).to.deep.equal({ total: 2, limit: 50, offset: 0, next_cursor: null });
      const [voided, replaced] = items as [(typeof items)[number], (typeof items)[number]];
      expect(voided).to.include({ action: 'void', state: 'applied', reason: 'sent by a test' });
      expect(voided).to.include({
        event_name: 'call',
        external_customer_id: 'acme',
        timestamp: '2026-03-10T10:00:00Z',
      });
      expect(voided.requested_at).to.equal('2026-03-16T12:00:00Z');
      expect(voided.applied_at).to.be.a('string');
      expect(replaced).to.include({
        action: 'replace',
        external_customer_id: 'beta',
        timestamp: '2026-03-11T10:00:00Z',
      });
      expect(replaced.actor).to.deep.include({ type: 'user', id: replaced.requested_by });
    });

    it('by action, state, event, name, customer and time of the request', async () => {
      expect(ids(await list('action=VOID'))).to.deep.equal(['second']);
      expect(ids(await list('state=applied'))).to.deep.equal(['second', 'first']);
      expect(ids(await list('state=requested'))).to.deep.equal([]);
      expect(ids(await list('event_id=first'))).to.deep.equal(['first']);
      expect(ids(await list('external_customer_id=beta'))).to.deep.equal(['first']);
      expect(ids(await list('external_customer_id=nobody'))).to.deep.equal([]);
      expect(ids(await list('event_name=call&action=void'))).to.deep.equal(['second']);
      expect(ids(await list('start_time=2026-03-16T12:00:00Z'))).to.deep.equal(['second']);
      expect(ids(await list('end_time=2026-03-16T12:00:00Z'))).to.deep.equal(['first']);
      expect(ids(await list('action=void&state=applied'))).to.deep.equal(['second']);
    });

    it('in pages, which a later correction does not shift', async () => {
      const page = await list('limit=1');
      expect(ids(page)).to.deep.equal(['second']);
      expect(page.pagination.total).to.equal(2);
      await world.pausePipeline();
      await voidEvent('third');
      const [waiting] = (await list('state=requested')).items;
      expect(waiting).to.include({ event_id: 'third', event_name: null, timestamp: null, applied_at: null });
      const next = await list(`limit=1&cursor=${page.pagination.next_cursor}`);
      expect(ids(next)).to.deep.equal(['first']);
      expect(next.pagination).to.include({ total: 3, next_cursor: null });
      await world.resumePipeline();
      await world.waitForPipeline();
    });

    it('without the author for a key that may not read users', async () => {
      const key = await world.api.keyWithRoles(['event_reader'], { user_type: 'service_account' });
      const { status, body } = await world.api.request<{ items: { actor: null }[] }>('GET', '/events/corrections', {
        key,
      });
      expect(status).to.equal(200);
      expect(body.items[0]!.actor).to.equal(null);
    });
  });

  for (const [query, field] of [
    ['action=undo', 'action'],
    ['state=done', 'state'],
    ['start_time=noon', 'start_time'],
    ['start_time=2026-03-02T00:00:00Z&end_time=2026-03-01T00:00:00Z', 'end_time'],
    ['limit=1001', 'limit'],
    ['cursor=abc', 'cursor'],
  ] as const)
    it(`400 naming ${field} for ${query}`, async () => {
      const { status, text } = await world.api.request('GET', `/events/corrections?${query}`);
      expect([status, text]).to.satisfy(([code, body]: [number, string]) => code === 400 && body.includes(field));
    });

  it('401 without a key, 403 for a key that may not read events', async () => {
    expect((await world.api.request('GET', '/events/corrections', { key: null })).status).to.equal(401);
    const key = await world.api.keyWithRoles(['event_ingestor']);
    expect((await world.api.request('GET', '/events/corrections', { key })).status).to.equal(403);
  });

  it('nothing of another tenant', async () => {
    const { key } = await world.api.otherTenant();
    const { body } = await world.api.request<{ items: unknown[] }>('GET', '/events/corrections', { key });
    expect(body.items).to.deep.equal([]);
  });
});
