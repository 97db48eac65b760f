/** Requests that are sent on one connection without waiting for answers: docs/decisions/0021-fairness.md. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { makeHttpServer } from '../../process/http-server.ts';

describe('requests of one connection', () => {
  let server: Server;
  let client: Socket;
  /** Those that were handed on, oldest first. */
  let begun: { request: IncomingMessage; response: ServerResponse }[];
  let text: string;
  const caller = new AsyncLocalStorage<string>();
  /** On whose behalf each was begun. */
  let behalf: (string | undefined)[];

  beforeEach(async () => {
    begun = [];
    behalf = [];
    text = '';
    server = makeHttpServer((request, response) => {
      begun.push({ request, response });
      behalf.push(caller.getStore());
      server.emit('begun');
      if (request.url?.startsWith('/as/')) caller.run(request.url, () => setImmediate(() => response.end('done')));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    client.on('data', (part) => {
      text += part;
    });
  });

  afterEach(() => {
    client.destroy();
    server.closeAllConnections();
    server.close();
  });

  const get = (path: string, rest = '') => `GET ${path} HTTP/1.1\r\nHost: x\r\n${rest}\r\n`;
  const urls = () => begun.map(({ request }) => request.url);

  async function isBegun(count: number): Promise<void> {
    while (begun.length < count) await once(server, 'begun');
  }

  /** What was sent before on this connection has been read when what is sent on another, later, is begun. */
  async function otherIsBegun(): Promise<void> {
    const other = connect((server.address() as AddressInfo).port, '127.0.0.1');
    const before = begun.length;
    other.write(get('/other'));
    await isBegun(before + 1);
    const [{ response } = begun[0]!] = begun.splice(before, 1);
    response.end();
    await once(other, 'data');
    other.destroy();
  }

  async function answeredAll(count: number): Promise<void> {
    for (let at = 0; at < count; at++) {
      await isBegun(at + 1);
      begun[at]!.response.end(`answer ${at}`);
    }
  }

  it('are begun one after the other, and answered in their order', async () => {
    client.write(get('/0') + get('/1') + get('/2', 'Connection: close\r\n'));
    await isBegun(1);
    await otherIsBegun();
    expect(urls()).to.deep.equal(['/0']);
    begun[0]!.response.write('half');
    await once(client, 'data');
    expect(urls()).to.deep.equal(['/0']);
    await answeredAll(3);
    await once(client, 'close');
    expect(urls()).to.deep.equal(['/0', '/1', '/2']);
    expect(text.match(/answer \d/g)).to.deep.equal(['answer 0', 'answer 1', 'answer 2']);
  });

  it('are not begun once the connection is closed', async () => {
    client.write(get('/0') + get('/1') + get('/2'));
    await isBegun(1);
    const closed = once(begun[0]!.response, 'close');
    client.resetAndDestroy();
    await closed;
    await otherIsBegun();
    expect(urls()).to.deep.equal(['/0']);
  });

  it('are not begun behind an answer that broke off', async () => {
    client.write(get('/0') + get('/1'));
    await isBegun(1);
    begun[0]!.response.write('half');
    begun[0]!.response.destroy();
    await once(client, 'close');
    await otherIsBegun();
    expect(urls()).to.deep.equal(['/0']);
  });

  it('are read only so far while many wait, and all are answered', async () => {
    const long = `X-Long: ${'a'.repeat(4_000)}\r\n`;
    const accepted = once(server, 'connection');
    const count = 2_000;
    const sent = get('/', long).repeat(count - 1) + get('/', 'Connection: close\r\n');
    client.write(sent);
    const [socket] = (await accepted) as [Socket];
    await isBegun(1);
    await once(socket, 'pause');
    await otherIsBegun();
    expect(socket.bytesRead).to.be.lessThan(sent.length / 4);
    await answeredAll(count);
    await once(client, 'close');
    expect(text.match(/answer \d+/g)).to.have.length(count);
  });

  it('are done on behalf of nobody but their own caller', async () => {
    client.write(get('/as/a') + get('/as/b') + get('/as/c', 'Connection: close\r\n'));
    await once(client, 'close');
    expect(urls()).to.deep.equal(['/as/a', '/as/b', '/as/c']);
    expect(behalf).to.deep.equal([undefined, undefined, undefined]);
  });

  it('with bodies are read whole, one after the other', async () => {
    const body = 'b'.repeat(200_000);
    const post = `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n`;
    client.write(`${post}\r\n${body}${post}Expect: 100-continue\r\n\r\n${body}${post}Connection: close\r\n\r\n${body}`);
    for (let at = 0; at < 3; at++) {
      await isBegun(at + 1);
      let length = 0;
      if (begun[at]!.request.headers.expect !== undefined) begun[at]!.response.writeContinue();
      for await (const part of begun[at]!.request) length += part.length;
      begun[at]!.response.end(`answer ${length}`);
    }
    await once(client, 'close');
    expect(text.match(/answer \d+/g)).to.deep.equal(Array(3).fill('answer 200000'));
  });

  it('are answered before the refusal of what came behind them', async () => {
    client.write(`${get('/0')}${get('/1')}what is this?\r\n\r\n`);
    await isBegun(1);
    await otherIsBegun();
    expect(text).to.equal('');
    await answeredAll(2);
    await once(client, 'close');
    expect(text.match(/answer \d|HTTP\/1\.1 \d+/g)).to.deep.equal([
      'HTTP/1.1 200',
      'answer 0',
      'HTTP/1.1 200',
      'answer 1',
      'HTTP/1.1 400',
    ]);
  });

  it('of one that is refused for what it expects leave those behind it theirs', async () => {
    client.write(get('/0', 'Expect: nothing\r\n') + get('/1', 'Connection: close\r\n'));
    await answeredAll(1);
    await once(client, 'close');
    expect(text.match(/answer \d|HTTP\/1\.1 \d+/g)).to.deep.equal(['HTTP/1.1 417', 'HTTP/1.1 200', 'answer 0']);
  });

  it('are answered while the server closes, which then ends', async () => {
    client.write(get('/0') + get('/1'));
    await isBegun(1);
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeIdleConnections();
    await answeredAll(2);
    while (!text.includes('answer 1')) await once(client, 'data');
    server.closeIdleConnections();
    await closed;
  });
});
