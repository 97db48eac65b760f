/** Resolution of receivers' names, against a DNS server that answers as a test configures it, or never. */
import { expect } from 'chai';
import { createHttpBackend } from '../../../../integrations/http/webhook-backend.ts';
import { type NamesServer, startNamesServer } from '../../../support/names-server.ts';
import { type Receiver, startReceiver } from '../../../support/receiver.ts';

describe('names of receivers of webhooks', () => {
  let receiver: Receiver;
  let names: NamesServer;
  before(async () => {
    receiver = await startReceiver();
    names = await startNamesServer();
  });
  after(async () => {
    names.stop();
    await receiver.stop();
  });

  const sendTo = async (host: string) => {
    const name_servers = { servers: [names.address], timeout_ms: 100 };
    const backend = createHttpBackend({ allow_private_addresses: false, name_servers });
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
      names.answer(private_);
      const { error, detail } = await sendTo('inner.example.com');
      expect(error).to.equal('the address is private or cannot be resolved');
      expect(detail).to.include(`DNS lookup ${private_}`).and.include('not allowed');
      expect([...names.queried_names]).to.include('inner');
      expect(receiver.received).to.deep.equal([]);
    });

  it('whose server never answers end soon, with the same words', async () => {
    names.answer(undefined);
    const outcomes = await Promise.all(Array.from({ length: 16 }, (_, n) => sendTo(`silent${n}.example.com`)));
    for (const { error, detail } of outcomes) {
      expect(error).to.equal('the address is private or cannot be resolved');
      expect(detail).to.match(/^query/);
    }
    expect([...names.queried_names].filter((name) => name.startsWith('silent'))).to.have.length(16);
  });
});
