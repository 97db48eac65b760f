/** GET /events/stream: new events as server-sent events, sampled, until the client or the server ends it. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { buildListener } from '../../../api/app.ts';
import { endStreams, makeHttpServer } from '../../../process/http-server.ts';
import { openDoor } from '../../../process/process-door.ts';
import { until } from '../../support/until.ts';
import { startWorld, type World } from '../../support/world.ts';

type StreamedEvent = { id: string; event_name: string; status: string; properties: Record<string, unknown> };
type Message = { items: StreamedEvent[]; passed_over: number; rate: string };
type TestStream = {
  status: number;
  headers: IncomingMessage['headers'];
  messages: Message[];
  events(): StreamedEvent[];
  /** Number of events that the messages state, in the sample and beside it. */
  count(): number;
  text(): string;
  hasEnded(): boolean;
  close(): void;
};

/** Opens a stream and waits until the feed reads from a known position: an event that is sent now is in it. */
async function openStream(url: string, key: string | null, query = ''): Promise<TestStream> {
  const sent = request(`${url}/v1/events/stream${query}`, { headers: key === null ? {} : { 'x-api-key': key } });
  sent.on('error', () => {});
  sent.end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  let text = '';
  let hasEnded = false;
  response.setEncoding('utf8');
  response.on('data', (piece: string) => (text += piece));
  response.on('error', () => {});
  response.on('close', () => (hasEnded = true));
  const messages: Message[] = [];
  let parsed = 0;
  const parse = () => {
    const blocks = text.slice(parsed).split('\n\n');
    parsed += blocks.slice(0, -1).reduce((sum, block) => sum + block.length + 2, 0);
    for (const block of blocks.slice(0, -1)) {
      const lines = block.split('\n');
      if (!lines.includes('event: events')) continue;
      const data = lines.filter((line) => line.startsWith('data: ')).map((line) => line.slice(6));
      messages.push(JSON.parse(data.join('\n')));
    }
    return messages;
  };
  return {
    status: response.statusCode!,
    headers: response.headers,
    get messages() {
      return parse();
    },
    events: () => parse().flatMap(({ items }) => items),
    count: () => parse().reduce((sum, { items, passed_over }) => sum + items.length + passed_over, 0),
    text: () => text,
    hasEnded: () => hasEnded,
    close: () => void sent.destroy(),
  };
}

describe('events: the stream of new events', () => {
  let world: World;
  const open = (query = '', key: string | null = world.api.key) => openStream(world.api.url, key, query);
  const event = (event_id: string, fields: object = {}) => ({
    event_id,
    event_name: 'call',
    external_customer_id: 'acme',
    properties: { n: 1 },
    ...fields,
  });
  /** Sends events until one is in the stream, because the feed begins a moment after the stream. */
  let begun = 0;
  const begin = async (stream: TestStream, fields: object = {}) => {
    await until('the stream begins', async () => {
      await world.send([event(`begin-${begun++}`, fields)]);
      await world.waitForPipeline();
      return stream.count() > 0;
    });
    await until('the stream has all events', async () => stream.messages.at(-1)?.rate === '0.0');
    return stream.count();
  };

  before(async () => {
    world = await startWorld({ now: '2026-03-15T12:00:00Z' });
    await world.meter('call', { type: 'SUM', field: 'n' });
    await world.waitForPipeline();
  });
  after(() => world.stop());

  describe('200', () => {
    it('new events with their status, and none from before', async () => {
      await world.send([event('before')]);
      await world.waitForPipeline();
      const stream = await open();
      expect(stream.status).to.equal(200);
      expect(stream.headers['content-type']).to.equal('text/event-stream; charset=utf-8');
      expect(stream.headers['cache-control']).to.equal('no-store');
      await begin(stream);
      await world.send([event('good'), event('odd', { event_name: 'cal' }), event('bad', { properties: { n: 'x' } })]);
      const shown = await until('the events are in the stream', async () => {
        const found = stream.events().filter(({ id }) => ['good', 'odd', 'bad'].includes(id));
        return found.length === 3 && found;
      });
      expect(shown.map(({ id, status }) => `${id} ${status}`).sort()).to.deep.equal([
        'bad unusable',
        'good counted',
        'odd unmatched',
      ]);
      expect(shown.find(({ id }) => id === 'good')).to.deep.include({ event_name: 'call', properties: { n: 1 } });
      expect(stream.events().map(({ id }) => id)).to.not.include('before');
      stream.close();
    });

    it('at most twenty events in a message, and the number of the others', async () => {
      const stream = await open();
      const earlier = await begin(stream);
      const events = Array.from({ length: 150 }, (_, index) => event(`many-${index}`));
      await world.send(events);
      await until('all are counted', async () => stream.count() === earlier + events.length);
      expect(stream.messages.every(({ items }) => items.length <= 20)).to.equal(true);
      expect(stream.messages.some(({ passed_over, rate }) => passed_over > 0 && Number(rate) > 20)).to.equal(true);
      await until('the rate is 0 again', async () => stream.messages.at(-1)!.rate === '0.0');
      const ids = stream.events().map(({ id }) => id);
      expect(new Set(ids).size).to.equal(ids.length);
      stream.close();
    });

    it('only events with the name and of the customer in the query', async () => {
      const named = await open('?event_name=call');
      const own = await open('?external_customer_id=zenith&event_name=call');
      await begin(named);
      await begin(own, { external_customer_id: 'zenith' });
      await world.send([
        event('other', { event_name: 'other', external_customer_id: 'zenith' }),
        event('hers', { external_customer_id: 'zenith' }),
        event('his'),
      ]);
      await until('both have theirs', async () => {
        const has = (stream: TestStream, id: string) => stream.events().some((one) => one.id === id);
        return has(named, 'hers') && has(named, 'his') && has(own, 'hers');
      });
      expect(named.events().map(({ event_name }) => event_name)).to.not.include('other');
      expect(own.events().map(({ id }) => id)).to.not.include.members(['his']);
      named.close();
      own.close();
    });

    it('properties with line breaks, as they were sent', async () => {
      const stream = await open();
      await begin(stream);
      const text =
        '{"event_id":"broken","event_name":"call","external_customer_id":"acme","properties":{\r\n"n":\n1.10}}';
      const sent = await world.api.request('POST', '/events', {
        body: text,
        headers: { 'content-type': 'application/json' },
      });
      expect(sent.status, sent.text).to.equal(202);
      const found = await until('it is there', async () => stream.events().find(({ id }) => id === 'broken'));
      expect(found.properties).to.deep.equal({ n: 1.1 });
      expect(stream.text()).to.match(/"n":\ndata: 1\.10/);
      stream.close();
    });
  });

  it('has no event of another tenant', async () => {
    const { key } = await world.api.otherTenant();
    const [own, other] = [await open(), await open('', key)];
    const body = { event_id: 'foreign', event_name: 'call', external_customer_id: 'acme', properties: { n: 1 } };
    await begin(own);
    await until('the other stream has begun', async () => {
      await world.api.request('POST', '/events', { key, body: { ...body, event_id: `foreign-${begun++}` } });
      await world.waitForPipeline();
      return other.count() > 0;
    });
    await world.send([event('mine')]);
    await until('the own event is there', async () => own.events().some(({ id }) => id === 'mine'));
    expect(own.text()).to.not.include('foreign');
    expect(other.events().every(({ id }) => id.startsWith('foreign'))).to.equal(true);
    own.close();
    other.close();
  });

  it('400 for an unknown parameter, 401 without a key, 403 for a key that may not read events', async () => {
    const refused = await world.api.request('GET', '/events/stream?event=call');
    expect(refused.status).to.equal(400);
    expect(refused.text).to.include('"event"');
    expect((await world.api.request('GET', '/events/stream', { key: null })).status).to.equal(401);
    const key = await world.api.keyWithRoles(['event_ingestor']);
    expect((await world.api.request('GET', '/events/stream', { key })).status).to.equal(403);
  });

  it('429 for more filters than one reader takes, until a stream is closed', async () => {
    const streams = await Promise.all(Array.from({ length: 20 }, (_, index) => open(`?event_name=name-${index}`)));
    expect(streams.map(({ status }) => status)).to.deep.equal(streams.map(() => 200));
    const refused = await world.api.request('GET', '/events/stream?event_name=one-more');
    expect([refused.status, refused.body]).to.deep.include(429);
    for (const stream of streams) stream.close();
    const again = await until('the streams are released', async () => {
      const stream = await open('?event_name=one-more');
      return stream.status === 200 && stream;
    });
    again.close();
  });

  it('ends when the server stops, which does not wait for it', async () => {
    const door = await openDoor({ PORT: 0, HOST: '127.0.0.1', INTERNAL_PORT: undefined });
    door.open(buildListener(world.api.services));
    const stream = await openStream(door.url, world.api.key);
    expect(stream.status).to.equal(200);
    const began_ms = performance.now();
    await door.close();
    expect(performance.now() - began_ms).to.be.below(5_000);
    await until('the stream has ended', async () => stream.hasEnded());
  });

  it('writes nothing after its end, also to a client that does not read the rest', async () => {
    const listener = buildListener(world.api.services);
    let hasEnded = false;
    let late = 0;
    const server = makeHttpServer((incoming, response) => {
      const write = response.write.bind(response) as (text: string) => boolean;
      response.write = (text: string) => {
        if (hasEnded) late++;
        return write(text);
      };
      // The response stays open, as it does while the client reads nothing.
      response.end = () => {
        hasEnded = true;
        return response;
      };
      listener(incoming, response);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const unread = await openStream(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, world.api.key);
    const other = await open();
    await begin(unread);
    await begin(other);
    endStreams(server);
    expect(hasEnded).to.equal(true);
    await world.send([event('after-the-end')]);
    await until('the other stream has it', async () => other.events().some(({ id }) => id === 'after-the-end'));
    await until('the other stream is quiet', async () => other.messages.at(-1)?.rate === '0.0');
    expect(late).to.equal(0);
    unread.close();
    other.close();
    server.close();
  });
});
