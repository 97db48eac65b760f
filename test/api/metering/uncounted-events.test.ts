/** GET /events/uncounted and `event.rejected`: events that count nowhere, with the reason. */
import { expect } from 'chai';
import { notifyRejectionsWork } from '../../../scheduler/jobs/notify-rejections.ts';
import { REJECTION_TASK } from '../../../storage/progress/rejection-arrivals.ts';
import { startWorld, type World } from '../../support/world.ts';

type Uncounted = { reason: string; event_id: string | null; meter_id: string | null; message: string };

describe('events that count nowhere', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-03-15T12:00:00Z' });
    await world.meter('call', { type: 'SUM', field: 'n' }, { filters: [{ key: 'region', values: ['eu', '2'] }] });
    await world.meter('old');
    await world.waitForPipeline();
    await sendOneByOne([
      event('good'),
      event('asia', { properties: { n: 1, region: 'asia' } }),
      event('two', { properties: { n: 1, region: 2 } }),
      event('many', { properties: { n: 'many', region: 'eu' } }),
      event('stray', { event_name: 'stray', external_customer_id: 'beta' }),
      event('early', { event_name: 'old' }),
      event('good', { properties: { n: 5, region: 'eu' } }),
      event('good'),
      { event_id: 'dead', external_customer_id: 'acme' },
      event('gone', { event_name: 'gone' }),
    ]);
    const reason = { reason: 'sent by mistake' };
    expect((await world.api.request('POST', '/events/gone/void', { body: reason })).status).to.equal(202);
    await world.waitForPipeline();
  });
  after(() => world.stop());

  const event = (event_id: string, fields: object = {}) => ({
    event_id,
    event_name: 'call',
    external_customer_id: 'acme',
    timestamp: '2026-03-15T11:00:00Z',
    properties: { n: 1, region: 'eu' },
    ...fields,
  });
  /** Each event is received a second after the one before. */
  async function sendOneByOne(events: object[]) {
    for (const [index, one] of events.entries()) {
      world.at(new Date(Date.parse('2026-03-15T12:00:00Z') + index * 1000).toISOString());
      expect((await world.api.request('POST', '/events/raw/bulk', { body: { events: [one] } })).status).to.equal(202);
    }
    await world.waitForPipeline();
  }
  const list = async (query = '', options = {}) => {
    const { status, body, text } = await world.api.request('GET', `/events/uncounted?${query}`, options);
    expect(status, text).to.equal(200);
    return body as { items: Uncounted[]; next_cursor: string | null };
  };
  const showAll = ({ items }: { items: Uncounted[] }) =>
    items.map(({ reason, event_id }) => `${reason} ${event_id}`).join(', ');

  const ALL = 'dead_letter dead, conflict good, unmatched stray, unusable many, unmatched asia';

  it('newest first, with the reason; a voided event is none', async () => {
    const all = await list();
    expect(showAll(all)).to.equal(ALL);
    expect(all.next_cursor).to.equal(null);
    const [dead, conflict, stray, many] = all.items;
    expect(dead).to.include({ message: 'event_name: is required', event_name: null, external_customer_id: 'acme' });
    expect(conflict).to.include({ event_name: 'call', external_customer_id: 'acme', meter_id: null });
    expect(stray).to.include({ event_name: 'stray', external_customer_id: 'beta' });
    expect(stray).to.include({ message: 'no meter has its event name and accepts it' });
    expect(many).to.include({ message: 'property "n" is not a number', meter_id: world.id('meter call') });
    expect(many).to.include({ event_name: 'call', external_customer_id: 'acme', received_at: '2026-03-15T12:00:03Z' });
  });

  it('by reason, name, customer and time of receipt', async () => {
    expect(showAll(await list('reason=unmatched'))).to.equal('unmatched stray, unmatched asia');
    expect(showAll(await list('reason=CONFLICT'))).to.equal('conflict good');
    expect(showAll(await list('event_name=call'))).to.equal('conflict good, unusable many, unmatched asia');
    expect(showAll(await list('external_customer_id=beta'))).to.equal('unmatched stray');
    const range = 'start_time=2026-03-15T12:00:03Z&end_time=2026-03-15T12:00:06Z';
    expect(showAll(await list(range))).to.equal('unmatched stray, unusable many');
  });

  it('with the content of stored events, and the name that is probably meant', async () => {
    await sendOneByOne([event('misspelt', { event_name: 'cal', properties: { n: 1.5 } })]);
    const { items } = await world.get('/events/uncounted?event_name=cal');
    expect(items[0]).to.deep.include({ nearest_event_name: 'call', timestamp: '2026-03-15T11:00:00Z' });
    // The name of a meter needs the permission to read meters.
    const key = await world.api.keyWithRoles(['event_reader'], { user_type: 'service_account' });
    const read = await world.api.request<{ items: { nearest_event_name: string | null }[] }>(
      'GET',
      '/events/uncounted?event_name=cal',
      { key },
    );
    expect([read.status, read.body.items[0]!.nearest_event_name]).to.deep.equal([200, null]);
    expect(items[0]!.properties).to.deep.equal({ n: 1.5 });
    const [dead] = (await world.get('/events/uncounted?reason=dead_letter')).items;
    expect(dead).to.include({ nearest_event_name: null, timestamp: null, properties: null });
    const [stray] = (await world.get('/events/uncounted?event_name=stray')).items;
    expect(stray!.nearest_event_name).to.equal(null);
    const body = { reason: 'a test' };
    expect((await world.api.request('POST', '/events/misspelt/void', { body })).status).to.equal(202);
    await world.waitForPipeline();
  });

  it('the number of events for each reason, within some days', async () => {
    const counts = async (query: string) => {
      const { counts: counted } = await world.get(`/events/uncounted?counts=true&limit=1${query}`);
      return counted!.map(({ reason, event_count, has_more }) => `${reason} ${event_count}${has_more ? '+' : ''}`);
    };
    const all = ['dead_letter 1', 'conflict 1', 'unusable 1', 'unmatched 2'];
    expect(await counts('')).to.deep.equal(all);
    expect(await counts('&days=1')).to.deep.equal(all);
    expect(await counts('&event_name=call')).to.deep.equal([
      'dead_letter 0',
      'conflict 1',
      'unusable 1',
      'unmatched 1',
    ]);
    world.at('2026-03-17T12:00:00Z');
    expect(await counts('&days=1')).to.deep.equal(['dead_letter 0', 'conflict 0', 'unusable 0', 'unmatched 0']);
    expect(await counts('&days=3')).to.deep.equal(all);
    expect((await world.get('/events/uncounted')).counts).to.equal(null);
    world.at('2026-03-15T12:00:20Z');
  });

  it('400 for days out of range, or with a start', async () => {
    for (const query of ['days=0', 'days=32', 'days=2&start_time=2026-03-15T00:00:00Z']) {
      const { status, body } = await world.api.request('GET', `/events/uncounted?${query}`);
      expect([status, body.details!.field], query).to.deep.equal([400, 'days']);
    }
  });

  it('by pages, also while others arrive', async () => {
    const seen: string[] = [];
    let cursor = '';
    for (let page = 0; page < 5 && (page === 0 || cursor !== ''); page++) {
      const { items, next_cursor } = await list(`limit=2${cursor && `&cursor=${cursor}`}`);
      seen.push(...items.map(({ reason, event_id }) => `${reason} ${event_id}`));
      cursor = next_cursor ?? '';
      if (page === 0) {
        world.at('2026-03-15T13:00:00Z');
        await world.send([event('later', { event_name: 'later' })]);
        await world.waitForPipeline();
      }
    }
    expect(seen.join(', ')).to.equal(ALL);
    expect((await list('limit=1')).items[0]!.event_id).to.equal('later');
  });

  it('dead letters have a cursor, too', async () => {
    const first = { event_id: 'dead-1' };
    expect((await world.api.request('POST', '/events/raw/bulk', { body: { events: [first, first] } })).status).to.equal(
      202,
    );
    await world.waitForPipeline();
    const pages = [];
    for (let cursor: string | null = ''; cursor !== null && pages.length < 4; ) {
      const query: string = `limit=1${cursor && `&cursor=${cursor}`}`;
      const { items, pagination } = await world.get(`/events/dead-letters?${query}`);
      pages.push(items[0]!.event_id);
      cursor = pagination.next_cursor as string | null;
    }
    expect(pages).to.deep.equal(['dead-1', 'dead-1', 'dead']);
  });

  it('400 for a cursor of another kind, and nothing of another tenant', async () => {
    for (const path of ['/events/uncounted?cursor=x', '/events/dead-letters?cursor=W10'])
      expect((await world.api.request('GET', path)).body).to.include({ code: 'validation_error' });
    const { key } = await world.api.otherTenant();
    expect((await list('', { key })).items).to.deep.equal([]);
  });

  it('counts an event again when a meter for it is made', async () => {
    await world.meter('stray');
    await world.waitForPipeline();
    expect(showAll(await list('external_customer_id=beta'))).to.equal('');
    expect((await world.api.request('DELETE', `/meters/${world.id('meter old')}`)).status).to.be.oneOf([200, 204]);
    expect(showAll(await list('event_name=old')), 'counted while its meter was there').to.equal('');
  });

  it('emits event.rejected, one for all events of a minute and a reason', async () => {
    const { postgres } = world.api.services;
    const load = async () =>
      (
        await postgres.raw(
          `select p.payload from graphile_worker._private_jobs p join graphile_worker.jobs j using (id)
            where j.task_identifier = ? order by p.payload ->> 'reason'`,
          [REJECTION_TASK],
        )
      ).rows as { payload: { reason: string } }[];
    const jobs = await load();
    expect(jobs.map(({ payload }) => payload.reason)).to.deep.equal([
      'conflict',
      'dead_letter',
      'unmatched',
      'unusable',
    ]);
    const work = notifyRejectionsWork(world.api.services, { clock: () => world.now });
    const attempt = { attempt: 1, is_last: false, signal: AbortSignal.timeout(60_000), mayGoOn: async () => true };
    for (const { payload } of jobs) expect(await work.run(payload, attempt)).to.equal('completed');
    const { items } = await world.get('/webhooks/events?limit=1000');
    const rejections = items.flatMap(({ event_name, payload }) =>
      event_name === 'event.rejected'
        ? [(payload as { rejection: { reason: string; events: object[] } }).rejection]
        : [],
    );
    const counts = rejections.map(({ reason, events }) => `${reason} ${events.length}`).sort();
    expect(counts).to.deep.equal(['conflict 1', 'dead_letter 3', 'unmatched 2', 'unusable 1']);
    expect(rejections.find(({ reason }) => reason === 'conflict')).to.deep.include({
      since: '2026-03-15T12:00:06Z',
      has_more: false,
    });
  });

  it('more than a thousand with one reason, beside the exact number of the others', async () => {
    const flood = Array.from({ length: 1_001 }, (_, index) => event(`flood_${index}`, { event_name: 'flood' }));
    await world.send(flood);
    await world.waitForPipeline();
    const { counts } = await world.get('/events/uncounted?counts=true&limit=1');
    const shown = counts!.map(({ reason, event_count, has_more }) => `${reason} ${event_count}${has_more ? '+' : ''}`);
    expect(shown).to.deep.equal(['dead_letter 3', 'conflict 1', 'unusable 1', 'unmatched 1000+']);
    const { items } = await world.get('/dashboard/attention');
    const attention = items.map(({ kind, count, is_minimum }) => `${kind} ${count}${is_minimum ? '+' : ''}`);
    expect(attention).to.deep.equal(['events_not_counted 1000+', 'dead_letters 3']);
  });
});
