// CloudEvents as their own library sends them: docs/rules/events.md, "CloudEvents".
import { expect } from 'chai';
import { CloudEvent, HTTP } from 'cloudevents';
import { startWorld, type World } from '../../support/world.ts';

const ONE = 'application/cloudevents+json';
const BATCH = 'application/cloudevents-batch+json';
const WHOLE = {
  specversion: '1.0',
  id: 'c-1',
  source: '/gw',
  type: 'call',
  subject: 'acme',
  time: '2026-03-15T12:00:01Z',
  data: { n: '2.50' },
};

describe('CloudEvents', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-03-15T12:00:00Z' });
    await world.meter('call', { type: 'SUM', field: 'n' });
    await world.waitForPipeline();
  });
  after(() => world.stop());

  const post = <Path extends string>(path: Path, body: unknown, headers: object, key?: string) =>
    world.api.request('POST', path, {
      body: body === undefined || typeof body === 'string' ? body : JSON.stringify(body),
      headers: { ...headers } as Record<string, string>,
      ...(key === undefined ? {} : { key }),
    });
  const one = <Path extends string>(change: object, key?: Path) =>
    post('/events', { ...WHOLE, ...change }, { 'content-type': ONE }, key);
  const batch = (events: unknown, path = '/events/bulk') => post(path, events, { 'content-type': BATCH });
  const usageOf = async (customer: string) => {
    await world.waitForPipeline();
    const body = {
      event_name: 'call',
      external_customer_id: customer,
      property_name: 'n',
      aggregation_type: 'SUM',
      start_time: '2026-03-15T00:00:00Z',
      end_time: '2026-03-16T00:00:00Z',
    };
    return (await world.post('/events/usage', body)).value;
  };
  const eventOf = async (id: string) => {
    await world.waitForPipeline();
    return (await world.get(`/events/${encodeURIComponent(id)}`)).event;
  };

  it('as the library writes them, binary and as JSON: one event, which counts once', async () => {
    const event = new CloudEvent({ ...WHOLE, id: 'größe 100%', subject: 'Zoë "Z" 5%', time: WHOLE.time });
    for (const message of [HTTP.binary(event), HTTP.structured(event), HTTP.binary(event)]) {
      const answer = await post('/events', message.body, message.headers);
      expect(answer.status, answer.text).to.equal(202);
      expect(answer.body.event_id).to.equal('/gw größe 100%');
    }
    expect(await usageOf('Zoë "Z" 5%')).to.equal('2.5');
    const kept = await eventOf('/gw größe 100%');
    expect(kept).to.deep.include({ event_name: 'call', external_customer_id: 'Zoë "Z" 5%', source: '/gw' });
  });

  it('a batch as the library writes it', async () => {
    const events = ['b-1', 'b-2', 'b-2'].map((id) => new CloudEvent({ ...WHOLE, id, subject: 'batch' }));
    const answer = await batch(events.map((event) => event.toJSON()));
    expect(answer.status, answer.text).to.equal(202);
    expect(await usageOf('batch')).to.equal('5');
  });

  it('numbers of the data keep their digits', async () => {
    const text = JSON.stringify({ ...WHOLE, id: 'd', subject: 'digits', data: {} }).replace(
      '{}',
      '{"n": 12345678901234567890.10}',
    );
    expect((await post('/events', text, { 'content-type': ONE })).status).to.equal(202);
    expect(await usageOf('digits')).to.equal('12345678901234567890.1');
  });

  it('two sources may count alike', async () => {
    for (const source of ['/a', '/b', '/a'])
      expect((await one({ id: '1', source, subject: 'sources' })).status).to.equal(202);
    expect(await usageOf('sources')).to.equal('5');
  });

  it('without data in headers alone; extension attributes are named', async () => {
    const headers = {
      'ce-specversion': '1.0',
      'ce-id': 'h',
      'ce-source': '/gw',
      'ce-type': 'ping',
      'ce-subject': 'acme',
      'ce-traceparent': '00-x',
    };
    const answer = await post('/events', undefined, headers);
    expect(answer.status, answer.text).to.equal(202);
    expect(answer.headers.get('x-ignored-keys')).to.equal('traceparent');
    // Without a time: that of receipt.
    expect((await eventOf('/gw h'))!.timestamp).to.match(/^2026-03-15T12:00:00/);
  });

  it('an Idempotency-Key is of one event in headers', async () => {
    const headers = (id: string) => ({
      'idempotency-key': 'k',
      'ce-specversion': '1.0',
      'ce-id': id,
      'ce-source': '/k',
      'ce-type': 'x',
      'ce-subject': 'y',
    });
    expect((await post('/events', undefined, headers('1'))).status).to.equal(202);
    expect((await post('/events', undefined, headers('1'))).headers.get('idempotency-replayed')).to.equal('true');
    expect((await post('/events', undefined, headers('2'))).status).to.equal(422);
  });

  const HEADERS = { 'ce-specversion': '1.0', 'ce-id': '1', 'ce-source': '/gw', 'ce-type': 'x', 'ce-subject': 'y' };
  const REFUSED: [what: string, path: string, headers: object, body: unknown, field: string][] = [
    ...['specversion', 'id', 'source', 'type', 'subject'].flatMap(
      (name): [string, string, object, unknown, string][] => [
        [`without ${name}`, '/events', { 'content-type': ONE }, { ...WHOLE, [name]: undefined }, name],
        [`without ce-${name}`, '/events', { ...HEADERS, [`ce-${name}`]: '' }, undefined, name],
      ],
    ),
    ['a time that is none', '/events', { 'content-type': ONE }, { ...WHOLE, time: 'x' }, 'time'],
    ['data that are a list', '/events', { ...HEADERS, 'content-type': 'application/json' }, [], 'data'],
    ['data twice', '/events', { ...HEADERS, 'ce-data': 'x' }, undefined, 'data'],
    ['headers that are no UTF-8', '/events', { ...HEADERS, 'ce-id': '%ff' }, undefined, 'id'],
    ['a batch at the wrong place', '/events', { 'content-type': BATCH }, [WHOLE], 'Content-Type'],
    ['one at the wrong place', '/events/bulk', { 'content-type': ONE }, WHOLE, 'Content-Type'],
    ['headers at the wrong place', '/events/bulk', HEADERS, undefined, 'body'],
    ['an empty batch', '/events/bulk', { 'content-type': BATCH }, [], 'body'],
    ['too large a batch', '/events/bulk', { 'content-type': BATCH }, new Array(1001).fill(WHOLE), 'body'],
    ['one that is no object', '/events', { 'content-type': ONE }, '[]', 'body'],
    ['a key twice', '/events', { 'content-type': ONE }, '{"id":"a","id":"b"}', 'id'],
    ['no JSON', '/events', { 'content-type': ONE }, '{', 'body'],
    [
      'the third of a batch',
      '/events/bulk',
      { 'content-type': BATCH },
      [WHOLE, WHOLE, { ...WHOLE, subject: '' }],
      'events[2].subject',
    ],
  ];
  for (const [what, path, headers, body, field] of REFUSED) {
    it(`400 names ${field}: ${what}`, async () => {
      const answer = await post(path, body, headers);
      expect(answer.status, answer.text).to.equal(400);
      expect(answer.body.code).to.equal('validation_error');
      expect(answer.body.details!.field).to.equal(field);
    });
  }

  it('of a batch the good ones, where verdicts are asked for', async () => {
    const events = [{ ...WHOLE, id: 'v', subject: 'verdicts' }, { ...WHOLE, type: undefined }, 5];
    const { status, body } = await batch(events, '/events/bulk?verdicts=true');
    expect(status).to.equal(202);
    const told = (body.verdicts as Record<string, unknown>[]).map((one) => [one.event_id, one.verdict, one.field]);
    expect(told).to.deep.equal([
      ['/gw v', 'accepted', null],
      [null, 'refused', 'type'],
      [null, 'refused', ''],
    ]);
    expect(await usageOf('verdicts')).to.equal('2.5');
  });

  it('needs what events need', async () => {
    expect((await one({}, await world.api.keyWithRoles(['metrics_reader']))).status).to.equal(403);
    const ingestor = await world.api.keyWithRoles(['event_ingestor']);
    expect((await one({ id: 'mine', subject: 'ingestor' }, ingestor)).status).to.equal(202);
    const { key } = await world.api.otherTenant();
    expect((await one({ id: 'mine', subject: 'ingestor' }, key)).status).to.equal(202);
    expect(await usageOf('ingestor')).to.equal('2.5');
  });
});
