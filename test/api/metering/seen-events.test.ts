/** GET /events/names and /events/properties: names and properties of recent events. */
import { expect } from 'chai';
import { startWorld, type World } from '../../support/world.ts';

describe('names and properties of recent events', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-03-15T12:00:00Z' });
    await world.meter('call');
    await world.waitForPipeline();
    await world.send([
      event('1', { properties: { model: 'small', n: 1, ok: true, tags: ['a'], more: { x: 1 } } }),
      event('2', { properties: { model: 'small', n: 2.5, ok: false, either: 'text' } }),
      event('3', {
        properties: { model: 'a "large" one', either: 7, nothing: null },
        timestamp: '2026-03-14T00:00:00Z',
      }),
      event('4', { event_name: 'stray', properties: { url: 'x'.repeat(300) } }),
      event('5', { event_name: 'old', timestamp: '2026-03-08T11:59:59Z' }),
      event('6', { event_name: 'ancient', timestamp: '2026-01-01T00:00:00Z' }),
    ]);
    await world.waitForPipeline();
  });
  after(() => world.stop());

  const event = (event_id: string, fields: object = {}) => ({
    event_id,
    event_name: 'call',
    external_customer_id: 'acme',
    timestamp: '2026-03-15T11:00:00Z',
    properties: {},
    ...fields,
  });
  const names = async (query = '', options = {}) => {
    const { status, body, text } = await world.api.request('GET', `/events/names?${query}`, options);
    expect(status, text).to.equal(200);
    return body.items;
  };
  const properties = async (query: string, options = {}) => {
    const { status, body, text } = await world.api.request('GET', `/events/properties?${query}`, options);
    expect(status, text).to.equal(200);
    return body.items;
  };

  it('names with counts, times and meters, the most frequent first', async () => {
    expect(await names()).to.deep.equal([
      {
        ...{ event_name: 'call', event_count: '3', meter_ids: [world.id('meter call')] },
        ...{ first_seen_at: '2026-03-14T00:00:00Z', last_seen_at: '2026-03-15T11:00:00Z' },
      },
      {
        ...{ event_name: 'stray', event_count: '1', meter_ids: [] },
        ...{ first_seen_at: '2026-03-15T11:00:00Z', last_seen_at: '2026-03-15T11:00:00Z' },
      },
    ]);
    expect((await names('days=8')).map(({ event_name }) => event_name)).to.deep.equal(['call', 'old', 'stray']);
  });

  it('properties with types and sample values', async () => {
    const found = await properties('event_name=call');
    expect(found.map((one) => [one.property, one.value_type, one.event_count])).to.deep.equal([
      ['model', 'string', '3'],
      ['either', 'mixed', '2'],
      ['n', 'number', '2'],
      ['ok', 'boolean', '2'],
      ['more', 'object', '1'],
      ['nothing', 'null', '1'],
      ['tags', 'array', '1'],
    ]);
    const samples = Object.fromEntries(found.map((one) => [one.property, one.sample_values]));
    expect(samples.model).to.deep.equal(['small', 'a "large" one']);
    expect(samples.either).to.have.members(['text', '7']);
    expect(samples.n).to.have.members(['1', '2.5']);
    expect(samples.ok).to.have.members(['true', 'false']);
    expect(samples.nothing).to.deep.equal([]);
    expect((await properties('event_name=stray'))[0]!.sample_values).to.deep.equal(['x'.repeat(200)]);
    expect(await properties('event_name=ancient')).to.deep.equal([]);
  });

  it('400 names the parameter', async () => {
    for (const query of ['days=0', 'days=32', 'days=x']) {
      const { status, body } = await world.api.request('GET', `/events/names?${query}`);
      expect([status, body.details?.field], query).to.deep.equal([400, 'days']);
    }
    for (const query of ['', 'event_name=', 'event_name=%20']) {
      const { status, body } = await world.api.request('GET', `/events/properties?${query}`);
      expect([status, body.details?.field], query).to.deep.equal([400, 'event_name']);
    }
  });

  it('401 and 403; meters need their own permission; nothing of another tenant', async () => {
    const other = (await world.api.otherTenant()).key;
    const ingestor = await world.api.keyWithRoles(['event_ingestor'], { user_type: 'service_account' });
    for (const path of ['/events/names', '/events/properties?event_name=call'] as const) {
      expect((await world.api.request('GET', path, { key: null })).status, path).to.equal(401);
      expect((await world.api.request('GET', path, { key: ingestor })).status, path).to.equal(403);
    }
    const reader = await world.api.keyWithRoles(['event_reader'], { user_type: 'service_account' });
    expect((await names('', { key: reader })).map(({ meter_ids }) => meter_ids)).to.deep.equal([null, null]);
    expect(await names('', { key: other })).to.deep.equal([]);
    expect(await properties('event_name=call', { key: other })).to.deep.equal([]);
  });
});
