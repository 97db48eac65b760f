/** What a process without an interface of its own answers at its port: whoever asks, and whatever he asks for, it goes on. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'chai';
import { readConfig } from '../../config.ts';
import { createHealthListener, type Door, openDoor } from '../../process/process-door.ts';
import { startTestApi, type TestApi } from '../support/api.ts';

describe('the port of a pipeline or a scheduler', () => {
  let api: TestApi;
  let door: Door;
  before(async () => {
    api = await startTestApi();
    const config = readConfig({ PORT: '0', METRICS: 'public' });
    door = await openDoor(config);
    door.open(createHealthListener({ ...api.services, config }));
  });
  after(async () => {
    await door.close();
    await api.stop();
  });

  /** As it is on the line: a client of HTTP would make another target of some. */
  async function ask(method: string, target: string) {
    const { hostname, port } = new URL(door.url);
    const socket = connect(Number(port), hostname);
    socket.write(`${method} ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    let text = '';
    socket.on('data', (part) => {
      text += part;
    });
    await once(socket, 'close');
    const [head = '', body = ''] = text.split('\r\n\r\n');
    return { status: Number(head.split(' ')[1]), allow: /^allow: (.*)$/im.exec(head)?.[1], body };
  }

  // Of `//` and `http://[` no URL can be made.
  for (const target of ['//', '///', 'http://[', '/%', '*', '/nowhere'])
    it(`404 for ${target}, and lives on`, async () => {
      expect((await ask('GET', target)).status).to.equal(404);
      expect((await ask('GET', '/health')).status).to.equal(200);
    });

  for (const target of ['/health', '/ready', '/metrics', '/health?', 'http://balancer.example/ready'])
    it(`200 for GET and HEAD of ${target}`, async () => {
      const [got, head] = [await ask('GET', target), await ask('HEAD', target)];
      expect([got.status, head.status]).to.deep.equal([200, 200]);
      expect([got.body === '', head.body === '']).to.deep.equal([false, true]);
    });

  for (const path of ['/health', '/ready', '/metrics'])
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH'])
      it(`405 with what is allowed for ${method} ${path}`, async () => {
        const { status, allow, body } = await ask(method, path);
        expect({ status, allow }).to.deep.equal({ status: 405, allow: 'GET, HEAD' });
        expect(JSON.parse(body).code).to.equal('invalid_operation');
      });

  for (const path of ['/health', '/ready', '/metrics'])
    it(`400 for a query parameter of ${path}, named`, async () => {
      const { status, body } = await ask('GET', `${path}?fro=queries`);
      expect({ status, ...JSON.parse(body) }).to.deep.include({ status: 400, details: { field: 'fro' } });
    });
});
