/** GET /events and POST /events/query. */
import { expect } from 'chai';
import { startWorld, type World } from '../../support/world.ts';

describe('events: lists', () => {
  let world: World;
  const ask = (body: object) => world.api.request('POST', '/events/query', { body });
  const get = (query: Record<string, string>) => world.api.request('GET', `/events?${new URLSearchParams(query)}`);
  const ids = (answer: { body: { events: { id: string }[] } }) => answer.body.events.map(({ id }) => id).join(' ');

  before(async () => {
    world = await startWorld({ now: '2026-03-15T12:00:00Z' });
    const minute = (index: number) => new Date(Date.UTC(2026, 2, 1, 0, index)).toISOString();
    const events = Array.from({ length: 7 }, (_, i) => ({
      event_id: `e${i}`,
      event_name: i % 2 === 0 ? 'even' : 'odd',
      external_customer_id: i < 5 ? 'acme' : 'globex',
      // Two share an instant: the id decides.
      timestamp: i === 3 ? minute(2) : minute(i),
      source: i < 2 ? 'app' : 'batch',
      properties: { n: i, tier: i < 3 ? 'gold' : 'free' },
    }));
    await world.send(events);
    const exact =
      '{"event_id":"exact","event_name":"exact","external_customer_id":"acme","timestamp":"2026-02-01T00:00:00.123456789+01:00","properties":{ "a" : 12345678901234567890.10, "b":1e2, "c":{"d":[0.10]}, "big":123456789012345678901234567890, "zero":-0e5 }}';
    const answer = await world.api.request('POST', '/events', { body: exact });
    expect(answer.status, answer.text).to.equal(202);
    await world.waitForPipeline();
  });
  after(() => world.stop());

  describe('200', () => {
    it('newest first, of one instant the greater id first, in pages by offset', async () => {
      const first = await ask({ page_size: 3, start_time: '2026-03-01T00:00:00Z' });
      expect(first.status, first.text).to.equal(200);
      expect(ids(first)).to.equal('e6 e5 e4');
      expect(first.body).to.include({ has_more: true, offset: 0, total_count: null });
      const second = await ask({ page_size: 3, offset: 3, start_time: '2026-03-01T00:00:00Z', count_total: true });
      expect(ids(second)).to.equal('e3 e2 e1');
      expect(second.body).to.include({ has_more: true, offset: 3, total_count: 7 });
      const last = await ask({ page_size: 3, offset: 6, start_time: '2026-03-01T00:00:00Z' });
      expect(ids(last)).to.equal('e0');
      expect(last.body.has_more).to.equal(false);
    });

    for (const order of ['desc', 'asc']) {
      it(`cursors go forth and back through every event once, ${order}`, async () => {
        const range = { start_time: '2026-03-01T00:00:00Z', order, page_size: 2 };
        const expected = ['e0', 'e1', 'e2', 'e3', 'e4', 'e5', 'e6'];
        if (order === 'desc') expected.reverse();
        const forth: string[] = [];
        let page = await ask(range);
        for (;;) {
          forth.push(...page.body.events.map(({ id }: { id: string }) => id));
          if (!page.body.has_more) break;
          page = await ask({ ...range, iter_last_key: page.body.iter_last_key, offset: 99 });
        }
        expect(forth).to.deep.equal(expected);
        const back = await ask({ ...range, iter_first_key: page.body.iter_first_key });
        expect(ids(back)).to.equal(expected.slice(4, 6).join(' '));
        expect(back.body).to.include({ has_more: true, offset: null });
      });
    }

    it('keys are nanoseconds and the id', async () => {
      const { body } = await ask({ event_id: 'e1' });
      expect(body.iter_first_key).to.equal('1772323260000000000::e1');
    });

    const FILTERS: [name: string, body: object, query: Record<string, string>, expected: string][] = [
      ['customer', { external_customer_id: 'globex' }, { external_customer_id: 'globex' }, 'e6 e5'],
      ['name, trimmed', { event_name: ' odd ' }, { event_name: ' odd ' }, 'e5 e3 e1'],
      ['id', { event_id: 'e4' }, { event_id: 'e4' }, 'e4'],
      ['source', { source: 'app' }, { source: 'app' }, 'e1 e0'],
      [
        'half-open range',
        { start_time: '2026-03-01T00:01:00Z', end_time: '2026-03-01T00:04:00Z' },
        { start_time: '2026-03-01T00:01:00Z', end_time: '2026-03-01T00:04:00Z' },
        'e3 e2 e1',
      ],
      ['a property', { property_filters: { tier: ['gold'] } }, { property_filters: 'tier:gold' }, 'e2 e1 e0'],
      [
        'properties, all of them',
        { property_filters: { tier: ['gold', 'free'], n: ['1', '4.0', '6'] } },
        { property_filters: 'tier:gold,free;n:1,4.0,6' },
        'e6 e4 e1',
      ],
      [
        'a number as it was not written',
        { property_filters: { big: ['1.2345678901234567890123456789e29'] } },
        { property_filters: 'big:123456789012345678901234567890.0' },
        'exact',
      ],
      ['a zero with a sign', { property_filters: { zero: ['0'] } }, { property_filters: 'zero:-0.0' }, 'exact'],
      ['nothing passes', { property_filters: { tier: ['Gold'] } }, { property_filters: 'tier:Gold' }, ''],
      [
        'by name',
        { sort: 'event_name', order: 'ASC' },
        { sort: 'event_name', order: 'asc' },
        'e0 e2 e4 e6 exact e1 e3 e5',
      ],
    ];
    for (const [name, body, query, expected] of FILTERS) {
      it(`filter: ${name}`, async () => {
        const posted = await ask({ ...body, count_total: true });
        expect(ids(posted), posted.text).to.equal(expected);
        expect(posted.body.total_count).to.equal(expected === '' ? 0 : expected.split(' ').length);
        const got = await get({ ...query, count_total: 'true' });
        expect(got.body, got.text).to.deep.equal(posted.body);
      });
    }

    it('pages of filtered events', async () => {
      const filter = { property_filters: { tier: ['free'] }, page_size: 2 };
      const first = await ask(filter);
      expect([ids(first), first.body.has_more]).to.deep.equal(['e6 e5', true]);
      const second = await ask({ ...filter, offset: 2 });
      expect([ids(second), second.body.has_more]).to.deep.equal(['e4 e3', false]);
    });

    it('properties keep the digits that were sent', async () => {
      const { text, body } = await ask({ event_name: 'exact' });
      expect(text).to.contain('"a" : 12345678901234567890.10, "b":1e2, "c":{"d":[0.10]}');
      expect(body.events[0]!.timestamp).to.equal('2026-01-31T23:00:00.123456Z');
      expect(body.events[0]).to.include({
        customer_id: '',
        source: '',
        environment_id: world.api.scope.environment_id,
      });
    });

    it('another tenant sees nothing of it', async () => {
      const { key } = await world.api.otherTenant();
      const answer = await world.api.request('POST', '/events/query', { body: {}, key });
      expect(answer.body).to.include({ has_more: false, iter_first_key: null });
      expect(answer.body.events).to.deep.equal([]);
    });
  });

  describe('400', () => {
    const BAD: [name: string, body: object, field: string][] = [
      ['page_size 0', { page_size: 0 }, 'page_size'],
      ['page_size 1001', { page_size: 1001 }, 'page_size'],
      ['an unknown sort', { sort: 'id' }, 'sort'],
      ['an unknown order', { order: 'up' }, 'order'],
      ['a time that is none', { start_time: 'yesterday' }, 'start_time'],
      ['a range turned round', { start_time: '2026-03-02T00:00:00Z', end_time: '2026-03-01T00:00:00Z' }, 'end_time'],
      ['a negative offset', { offset: -1 }, 'offset'],
      ['a key that is none', { iter_last_key: 'e1' }, 'iter_last_key'],
      ['a key with a sort by name', { iter_last_key: '1::e1', sort: 'event_name' }, 'sort'],
      ['filters that are no lists', { property_filters: { a: 'b' } }, 'property_filters'],
    ];
    for (const [name, body, field] of BAD) {
      it(name, async () => {
        const answer = await ask(body);
        expect(answer.status, answer.text).to.equal(400);
        expect(answer.body.code).to.equal('validation_error');
        expect(answer.body.message).to.contain(field);
      });
    }
    for (const query of [
      { page_size: '51' },
      { property_filters: 'a' },
      { property_filters: ':b' },
      { property_filters: 'a:' },
    ]) {
      it(`?${new URLSearchParams(query as never)}`, async () => {
        expect((await get(query as never)).status).to.equal(400);
      });
    }
  });

  it('401 without a key', async () => {
    expect((await world.api.request('GET', '/events', { key: null })).status).to.equal(401);
  });

  describe('large events', () => {});
});
