/** How names of receivers are resolved, against a server of names that answers as it is told, or never. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { httpBackend } from '../../../integrations/webhooks/http.ts';
import { type Receiver, startReceiver } from '../../support/receiver.ts';

const TYPE_A = 1;
const HEADER_BYTES = 12;

describe('names of receivers of webhooks', () => {
  let receiver: Receiver;
  let names: Socket;
  let server: string;
  /** The address of every name; none: nothing is answered. */
  let address: string | undefined;
  const asked = new Set<string>();
  before(async () => {
    receiver = await startReceiver();
    names = createSocket('udp4');
    names.on('message', (query, { port, address: from }) => {
      asked.add(query.subarray(HEADER_BYTES + 1, HEADER_BYTES + 1 + query[HEADER_BYTES]!).toString());
      if (address) names.send(answerTo(query, address), port, from);
    });
    names.bind(0, '127.0.0.1');
    await once(names, 'listening');
    server = `127.0.0.1:${(names.address() as AddressInfo).port}`;
  });
  after(async () => {
    names.close();
    await receiver.stop();
  });

  const sendTo = async (host: string) => {
    const name_servers = { servers: [server], timeout_ms: 100 };
    const backend = httpBackend({ allow_private_addresses: false, name_servers });
    const message = {
      id: 'sys_event_1',
      event_name: 'customer.created',
      body: '{}',
      tenant_id: 't',
      environment_id: 'e',
    };
    const url = `http://${host}:${new URL(receiver.url).port}/`;
    return backend.send(message, { url, secrets: [`whsec_${Buffer.alloc(32).toString('base64')}`] });
  };

  for (const private_ of ['127.0.0.1', '10.1.2.3', '169.254.169.254'])
    it(`one that leads to ${private_} is refused when it is connected to`, async () => {
      address = private_;
      const { error, detail } = await sendTo('inner.example.com');
      expect(error).to.equal('the address is private or cannot be resolved');
      expect(detail).to.include(`DNS lookup ${private_}`).and.include('not allowed');
      expect([...asked]).to.include('inner');
      expect(receiver.received).to.deep.equal([]);
    });

  it('whose server never answers end soon, with the same words', async () => {
    address = undefined;
    const outcomes = await Promise.all(Array.from({ length: 16 }, (_, n) => sendTo(`silent${n}.example.com`)));
    for (const { error, detail } of outcomes) {
      expect(error).to.equal('the address is private or cannot be resolved');
      expect(detail).to.match(/^query/);
    }
    expect([...asked].filter((name) => name.startsWith('silent'))).to.have.length(16);
  });
});

/** The question again, with an address of it where it is asked for one of four bytes. */
function answerTo(query: Buffer, address: string): Buffer {
  let end = HEADER_BYTES;
  while (query[end] !== 0) end += query[end]! + 1;
  const question = query.subarray(HEADER_BYTES, end + 5);
  const isAsked = query.readUInt16BE(end + 1) === TYPE_A;
  const header = Buffer.from([query[0]!, query[1]!, 0x81, 0x80, 0, 1, 0, isAsked ? 1 : 0, 0, 0, 0, 0]);
  const bytes = address.split('.').map(Number);
  const record = Buffer.from([0xc0, HEADER_BYTES, 0, TYPE_A, 0, 1, 0, 0, 0, 1, 0, 4, ...bytes]);
  return Buffer.concat([header, question, ...(isAsked ? [record] : [])]);
}
