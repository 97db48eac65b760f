/** What a server answers before any handler is reached. */
import { once } from 'node:events';
import type { Server, ServerOptions } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect } from 'chai';
import { makeHttpServer } from '../../process/http-server.ts';

describe('a server of HTTP', () => {
  let server: Server;
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  /** Sends these bytes and nothing more; resolves with everything that came until the server closed the connection. */
  async function exchange(bytes: string, options: ServerOptions = {}): Promise<string> {
    server = makeHttpServer((request, response) => {
      if (request.url === '/begun') response.write('half');
      request.resume();
    }, options);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.write(bytes);
    let text = '';
    socket.on('data', (part) => {
      text += part;
    });
    await once(socket, 'close');
    return text;
  }

  const IMPATIENT = { headersTimeout: 50, requestTimeout: 50, connectionsCheckingInterval: 10 };
  const rows: [what: string, bytes: string, options: ServerOptions, status: number][] = [
    ['headers of 64 KiB', `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'a'.repeat(65_536)}\r\n\r\n`, {}, 431],
    ['headers that do not end', 'GET / HTTP/1.1\r\nHost: x\r\n', IMPATIENT, 408],
    ['a body that does not come', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n', IMPATIENT, 408],
    ['bytes that are no HTTP', 'what is this?\r\n\r\n', {}, 400],
    ['no Host', 'GET / HTTP/1.1\r\n\r\n', {}, 400],
    ['no Host, and a body that does not come', 'POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n', {}, 400],
    [
      'another Expect than 100-continue',
      'POST / HTTP/1.1\r\nHost: x\r\nExpect: nonsense\r\nContent-Length: 10\r\n\r\n',
      {},
      417,
    ],
    ['no Host, and such an Expect', 'GET / HTTP/1.1\r\nExpect: nonsense\r\n\r\n', {}, 400],
  ];
  for (const [what, bytes, options, status] of rows) {
    it(`${status} with the error record for ${what}`, async () => {
      const [head, body] = (await exchange(bytes, options)).split('\r\n\r\n');
      expect(head).to.match(new RegExp(`^HTTP/1\\.1 ${status} `));
      expect(head).to.contain('Content-Type: application/json');
      const record = JSON.parse(body!);
      expect(record).to.have.all.keys('code', 'http_status_code', 'message', 'details', 'success', 'error');
      expect(record).to.deep.include({ code: 'validation_error', http_status_code: status, success: false });
    });
  }

  it('keeps a connection for longer than any balancer before it, also behind headers that it has no patience for', async () => {
    server = makeHttpServer((_request, response) => response.end('there'), {
      headersTimeout: 30,
      connectionsCheckingInterval: 10,
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    const ask = async () => {
      socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      const [answer] = (await once(socket, 'data')) as [Buffer];
      return answer.toString();
    };
    expect(await ask()).to.match(/\r\nKeep-Alive: timeout=620\r\n/);
    // Others come and are refused for their slowness meanwhile.
    const slow = connect((server.address() as AddressInfo).port, '127.0.0.1');
    slow.write('GET / HTTP/1.1\r\n');
    slow.resume();
    await once(slow, 'close');
    expect(await ask()).to.match(/^HTTP\/1\.1 200 /);
    socket.destroy();
  });

  it('asks for the body of who waits to be asked, and answers who speaks HTTP/1.0 without Host', async () => {
    server = makeHttpServer((request, response) => {
      if (request.headers.expect !== undefined) response.writeContinue();
      request.pipe(response);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.write(
      'POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\nConnection: close\r\n\r\n',
    );
    const [asked] = (await once(socket, 'data')) as [Buffer];
    expect(asked.toString()).to.equal('HTTP/1.1 100 Continue\r\n\r\n');
    socket.write('there');
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).to.match(/^HTTP\/1\.1 200 /);
    socket.destroy();
    const old = connect((server.address() as AddressInfo).port, '127.0.0.1');
    old.write('GET / HTTP/1.0\r\n\r\n');
    const [first] = (await once(old, 'data')) as [Buffer];
    expect(first.toString()).to.match(/^HTTP\/1\.1 200 /);
    old.destroy();
  });

  it('breaks an answer that has begun off, and mixes no other into it', async () => {
    const text = await exchange('POST /begun HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n', IMPATIENT);
    expect(text).to.match(/^HTTP\/1\.1 200 /);
    expect(text).to.not.contain('408');
  });
});
