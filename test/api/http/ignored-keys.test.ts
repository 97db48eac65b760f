/** Keys of a body that nobody knows: refused by name wherever they stand, or let pass and told. */
import { expect } from 'chai';
import { z } from 'zod';
import { describeUnknownKey } from '../../../api/http/ignored-keys.ts';
import { findIgnoredKeys } from '../../../core/foundation/ignored-keys.ts';
import { withoutEffect } from '../../../core/foundation/record.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

const named = z.object({ name: z.string() });

type WithVerdicts = { verdicts: { verdict: string; field: string | null }[] };

describe('keys that have no effect', () => {
  const cases: [what: string, shape: z.ZodType, value: unknown, unknown: string[]][] = [
    ['one of an object', named, { name: 'x', other: 1 }, ['other']],
    ['a name of every object', named, { name: 'x', constructor: 1, toString: 1 }, ['constructor', 'toString']],
    ['in a list', z.array(named), [{}, { a: 1 }, { name: 'x', b: 1 }], ['1.a', '2.b']],
    ['in a map', z.record(z.string(), named), { any: { a: 1 }, other: { name: 'x' } }, ['any.a']],
    ['in what may be absent', named.nullable().optional().default(null), { a: 1 }, ['a']],
    ['behind a preparation', z.preprocess((value) => value, z.object({ in: named })), { in: { a: 1 } }, ['in.a']],
    ['before a transformation', named.transform(() => 1), { a: 1 }, ['a']],
    ['in the nearest branch of a union', z.union([named, z.object({ id: z.string() })]), { id: 'x', a: 1 }, ['a']],
    ['in the only branch that takes objects', z.union([z.string(), named]), { a: 1 }, ['a']],
    ['none of a union with a free branch', z.union([named, z.unknown()]), { a: 1 }, []],
    [
      'none of a free map',
      z.object({ metadata: z.record(z.string(), z.unknown()) }),
      { metadata: { a: { b: 1 } } },
      [],
    ],
    ['none of what takes anything', z.object({ addons: z.unknown() }), { addons: [{ a: 1 }] }, []],
    ['none of an object that is open', z.looseObject({ a: z.string() }), { b: 1 }, []],
    ['none where no object is', named, ['x'], []],
    ['none in a text', named, 'name', []],
  ];
  for (const [what, shape, value, unknown] of cases) {
    it(what, () => {
      expect(findIgnoredKeys(shape, value).map((key) => key.path.join('.'))).to.deep.equal(unknown);
    });
  }

  it('are told apart from those that older clients send', () => {
    const shape = z.object({ name: z.string(), older: withoutEffect });
    const found = findIgnoredKeys(shape, { older: 1, newer: 1 });
    expect(found.map(({ path, is_unknown }) => [path[0], is_unknown])).to.deep.equal([
      ['older', false],
      ['newer', true],
    ]);
  });

  it('hint at the key that was meant, where one is near', () => {
    const shape = z.object({ event_name: z.string(), timestamp: z.string(), id: z.string() });
    const hintOf = (key: string) =>
      describeUnknownKey(findIgnoredKeys(shape, { [key]: 1 })[0]!).slice('is no key of this request'.length);
    expect(hintOf('timestmap')).to.equal('; did you mean timestamp?');
    expect(hintOf('eventName')).to.equal('; did you mean event_name?');
    expect(hintOf('colour')).to.equal('');
    expect(hintOf('t'.repeat(1_000_000))).to.equal('');
  });
});

describe('a key that the service does not know', () => {
  const meter = { name: 'Calls', event_name: 'call', aggregation: { type: 'COUNT' } };
  const event = { event_name: 'call', external_customer_id: 'acme' };
  const twice = '{"event_name":"call","external_customer_id":"acme","event_name":"other"}';

  describe('is refused by name', () => {
    let api: TestApi;
    before(async () => {
      api = await startTestApi();
    });
    after(() => api.stop());

    const bodies: [method: string, path: string, body: unknown, message: string][] = [
      ['POST', '/customers', { external_id: 'a', nmae: 'A' }, 'nmae: is no key of this request; did you mean name?'],
      [
        'POST',
        '/meters',
        { ...meter, aggregation: { type: 'SUM', feild: 'x' } },
        'aggregation.feild: is no key of this request; did you mean field?',
      ],
      [
        'POST',
        '/customers/search',
        { filters: [{ field: 'id', operator: 'eq', data_type: 'string', value: { strnig: 'x' } }] },
        'filters[0].value.strnig: is no key of this request; did you mean string?',
      ],
      ['POST', '/plans/search', { limits: 5 }, 'limits: is no key of this request; did you mean limit?'],
      [
        'POST',
        '/events',
        { ...event, timestmap: 'x' },
        'timestmap: is no key of this request; did you mean timestamp?',
      ],
      [
        'POST',
        '/events/bulk',
        { events: [event, { ...event, propertys: {} }] },
        'events[1].propertys: is no key of this request; did you mean properties?',
      ],
      [
        'POST',
        '/events/bulk',
        { events: [event], event: [] },
        'event: is no key of this request; did you mean events?',
      ],
      ['POST', '/events/raw/bulk', { events: [{}], more: 1 }, 'more: is no key of this request'],
      [
        'POST',
        '/events/raw/bulk',
        { events: [event, { ...event, timestmp: '2026-03-01T00:00:00Z' }] },
        'events[1].timestmp: is no key of an event; did you mean timestamp?',
      ],
      [
        'POST',
        '/events/e1/replace',
        { reason: 'x', event: { ...event, sorce: 'x' } },
        'event.sorce: is no key of this request; did you mean source?',
      ],
      ['POST', '/events', twice, 'event_name: stands twice in the event'],
      ['POST', '/events/bulk', `{"events":[${twice}]}`, 'events[0].event_name: stands twice in the event'],
      ['POST', '/events/e1/replace', `{"reason":"x","event":${twice}}`, 'event.event_name: stands twice in the event'],
    ];
    for (const [method, path, body, message] of bodies) {
      it(`${method} ${path}: ${message}`, async () => {
        const answer = await api.request(method, path, { body });
        expect([answer.status, answer.body.message]).to.deep.equal([400, message]);
        expect(answer.body.details!.field).to.equal(message.slice(0, message.indexOf(':')));
      });
    }

    it('stores nothing', async () => {
      expect((await api.request('GET', '/customers')).body.pagination.total).to.equal(0);
      expect(await api.services.postgres('log_records')).to.have.length(0);
    });

    it('refuses only the event that has it, where verdicts are asked for', async () => {
      const events = [{ ...event, event_id: 'good' }, { ...event, timestmap: 'x' }, event];
      const answer = await api.request('POST', '/events/bulk?verdicts=true', { body: { events } });
      expect(answer.status).to.equal(202);
      const verdicts = (answer.body as WithVerdicts).verdicts;
      expect(verdicts.map(({ verdict, field }) => [verdict, field])).to.deep.equal([
        ['accepted', null],
        ['refused', 'timestmap'],
        ['accepted', null],
      ]);
    });

    it('lets properties, metadata and raw events be called anything', async () => {
      const properties = { nmae: 1, deep: { timestmap: [{ any: 1 }] } };
      for (const [path, body, status] of [
        ['/events', { ...event, properties }, 202],
        ['/events/bulk', { events: [{ ...event, properties }] }, 202],
        ['/events/raw/bulk', { events: [{ ...event, anything: 1, event_type: 'x', eventName: 'beside it' }] }, 202],
        ['/customers', { external_id: 'free', metadata: { nmae: 'x' } }, 201],
      ] as const) {
        const answer = await api.request('POST', path, { body });
        expect(answer.status, `${path} ${answer.text}`).to.equal(status);
        expect(answer.headers.get('x-ignored-keys')).to.equal(null);
      }
    });

    it('takes a record back as it was read, and tells what cannot be changed', async () => {
      const records: [path: string, body: object][] = [
        ['/customers', { external_id: 'again' }],
        ['/plans', { name: 'Pro' }],
        ['/meters', { ...meter, filters: [{ key: 'region', values: ['eu'] }] }],
        ['/features', { name: 'Seats', type: 'boolean' }],
        ['/environments', { name: 'Staging', type: 'development' }],
      ];
      for (const [path, body] of records) {
        const { id } = (await api.request('POST', path, { body })).body;
        const read = await api.request('GET', `${path}/${id}`);
        const written = await api.request('PUT', `${path}/${id}`, { body: read.body });
        expect(written.status, `${path} ${written.text}`).to.equal(200);
        expect(written.headers.get('x-ignored-keys'), path).to.match(/\bid\b.*\bcreated_at\b/);
      }
    });
  });

  describe('passes with UNKNOWN_BODY_KEYS=ignore, and the answer names it', () => {
    let api: TestApi;
    before(async () => {
      api = await startTestApi({ config: { UNKNOWN_BODY_KEYS: 'ignore' } });
    });
    after(() => api.stop());

    it('in records', async () => {
      const body = { ...meter, newer: 1, aggregation: { type: 'COUNT', 'größe, x': 1 } };
      const answer = await api.request('POST', '/meters', { body });
      expect(answer.status, answer.text).to.equal(201);
      expect(answer.headers.get('x-ignored-keys')).to.equal('aggregation.gr??e??x, newer');
      expect(answer.headers.get('access-control-expose-headers')).to.contain('X-Ignored-Keys');
    });

    it('in events, which keep it as it was sent', async () => {
      const sent = { ...event, event_id: 'newer', tags: ['a'] };
      for (const [path, body, named] of [
        ['/events', sent, 'tags'],
        ['/events/bulk', { events: [event, sent] }, 'events[1].tags'],
        ['/events/raw/bulk', { events: [event, { ...sent, propertes: {} }], more: 1 }, 'more, events[1].propertes'],
      ] as const) {
        const answer = await api.request('POST', path, { body });
        expect([answer.status, answer.headers.get('x-ignored-keys')]).to.deep.equal([202, named]);
      }
    });

    it('in metrics of OpenTelemetry, but not metrics in another spelling', async () => {
      const newer = await api.request('POST', '/otlp/v1/metrics', { body: { resourceMetrics: [], newer: 1 } });
      expect([newer.status, newer.headers.get('x-ignored-keys')]).to.deep.equal([200, 'newer']);
      const misspelt = await api.request('POST', '/otlp/v1/metrics', { body: { resource_metrics: [] } });
      expect([misspelt.status, misspelt.body.details!.field]).to.deep.equal([400, 'resource_metrics']);
    });

    it('names twenty of them, and says that there are more', async () => {
      const many = Object.fromEntries(Array.from({ length: 23 }, (_, index) => [`key_${index}`, 1]));
      const answer = await api.request('POST', '/customers', { body: { external_id: 'many', ...many } });
      expect(answer.status).to.equal(201);
      expect(answer.headers.get('x-ignored-keys')).to.match(/^key_0, .*key_19, and more$/);
    });
  });
});
