/**
 * Webhooks as receivers get them: signed, in order, at least once, and not repeated after a 2xx, whatever the receiver
 * does.
 */
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createSocketServer } from 'node:net';
import { expect } from 'chai';
import { deleteEndpoint } from '../../../../actions/delivery/webhooks/change-endpoint.ts';
import { dispatchBatch } from '../../../../actions/delivery/webhooks/dispatch-events.ts';
import { InFlightDeliveries } from '../../../../actions/delivery/webhooks/in-flight.ts';
import type { DeliveryResult, WebhookServices } from '../../../../actions/delivery/webhooks/send-delivery.ts';
import { type SendDueOptions, sendDue } from '../../../../actions/delivery/webhooks/send-due.ts';
import { createHttpBackend } from '../../../../integrations/http/webhook-backend.ts';
import { retryWebhooksJob } from '../../../../scheduler/jobs/retry-webhooks.ts';
import { sendWebhooksJob } from '../../../../scheduler/jobs/send-webhooks.ts';
import { createSealer } from '../../../../storage/foundation/secrets/sealing.ts';
import { startTestApi, type TestApi } from '../../../support/api.ts';
import { type Receiver, startReceiver } from '../../../support/receiver.ts';

const START = '2026-03-15T12:00:00.000Z';
const TIMEOUT_MS = 300;

describe('webhooks', () => {
  let api: TestApi;
  let receiver: Receiver;
  let services: WebhookServices;
  let now: Date;
  let made = 0;
  before(async () => {
    api = await startTestApi({ now: START });
    const { postgres } = api.services;
    services = {
      postgres,
      sealing: createSealer([]),
      backend: createHttpBackend({ allow_private_addresses: true, timeout_ms: TIMEOUT_MS }),
    };
  });
  beforeEach(async () => {
    receiver = await startReceiver();
    at(new Date(START));
  });
  afterEach(async () => {
    for (const { id } of (await api.request('GET', '/webhooks/endpoints?limit=1000')).body.items)
      await api.request('DELETE', `/webhooks/endpoints/${id}`);
    await receiver.stop();
  });
  after(() => api.stop());

  function at(instant: Date): void {
    now = instant;
    api.setNow(instant);
  }
  const later = (minutes: number) => at(new Date(now.getTime() + minutes * 60_000));

  async function endpoint(path = '/hooks', fields: Record<string, unknown> = {}) {
    const { status, body } = await api.request('POST', '/webhooks/endpoints', {
      body: { url: `${receiver.url}${path}`, ...fields },
    });
    expect(status).to.equal(201);
    receiver.expectSignedBy(path, body.secret);
    return body as { endpoint: { id: string }; secret: string };
  }
  async function customer(): Promise<string> {
    made += 1;
    const { status, body } = await api.request('POST', '/customers', { body: { external_id: `c-${made}` } });
    expect(status).to.equal(201);
    return body.id;
  }
  const rename = (id: string, name: string) => api.request('PUT', `/customers/${id}`, { body: { name } });

  const limits = { every_seconds: 60, max_attempts: 5 };
  const send = async () => (await sendWebhooksJob(services, limits).run(now)).done;
  const retry = async (options: Partial<Parameters<typeof retryWebhooksJob>[1]> = {}) => {
    const all = { enabled: true, rate_limit: 1_000, excluded_tenants: [], allowed_event_types: [] };
    return (await retryWebhooksJob(services, { ...limits, ...all, ...options }).run(now)).done;
  };
  const deliveries = async (query = '') =>
    (await api.request('GET', `/webhooks/deliveries?order=asc&limit=1000&${query}`)).body.items;
  const deliveryOf = async (endpoint_id: string) => (await deliveries(`endpoint_ids=${endpoint_id}`))[0];

  it('are signed, tell the record as it was after the change, and come once', async () => {
    await endpoint();
    const id = await customer();
    expect(await send()).to.deep.include({ delivered: 1, refused: 0 });
    expect(await send()).to.deep.include({ dispatched: 0, delivered: 0 });
    const [come] = receiver.received;
    expect(come!.status).to.equal(200);
    expect(come!.body).to.deep.include({ event_type: 'customer.created', id: come!.id });
    expect((await api.request('GET', `/customers/${id}`)).body).to.deep.include(come!.body.customer);
    expect(receiver.received).to.have.length(1);
  });

  it('go to the endpoints of their environment that want them', async () => {
    await endpoint('/all');
    await endpoint('/deleted', { event_names: ['Customer.Deleted'] });
    const other = await api.otherTenant();
    await api.request('POST', '/webhooks/endpoints', { key: other.key, body: { url: `${receiver.url}/other` } });
    const id = await customer();
    await api.request('DELETE', `/customers/${id}`);
    await send();
    expect(receiver.received.map(({ path, body }) => `${path} ${body.event_type}`).sort()).to.deep.equal([
      '/all customer.created',
      '/all customer.deleted',
      '/deleted customer.deleted',
    ]);
  });

  it('carry two signatures while a secret is replaced, and one when the time is over', async () => {
    const first = await endpoint();
    const path = `/webhooks/endpoints/${first.endpoint.id}/secret/rotate` as const;
    const { secret } = (await api.request('POST', path, { body: { overlap_hours: 1 } })).body;
    receiver.expectSignedBy('/hooks', first.secret, secret);
    await customer();
    expect(await send()).to.deep.include({ delivered: 1 });
    later(61);
    await customer();
    expect(await send()).to.deep.include({ delivered: 0, refused: 1 });
    receiver.expectSignedBy('/hooks', secret);
    await customer();
    expect(await send()).to.deep.include({ delivered: 1 });
  });

  it('are tried again after 1, 10, 60 and 720 minutes, and given up then; asked for again they come at once', async () => {
    const { endpoint: made } = await endpoint();
    receiver.answerWith(() => 500);
    await customer();
    expect(await send()).to.deep.include({ refused: 1 });
    for (const minutes of [1, 10, 60]) {
      later(minutes - 0.1);
      expect(await retry(), `before ${minutes}`).to.deep.include({ refused: 0 });
      later(0.1);
      expect(await retry(), `after ${minutes}`).to.deep.include({ refused: 1, given_up: 0 });
    }
    later(720);
    expect(await retry()).to.deep.include({ refused: 0, given_up: 1 });
    const given = await deliveryOf(made.id);
    expect(given).to.deep.include({
      delivery_status: 'failed',
      attempt_count: 5,
      failure_count: 5,
      http_status: 500,
      failure_reason: 'answered 500',
      next_attempt_at: null,
    });

    receiver.answerWith(() => 204);
    const asked = await api.request('POST', `/webhooks/${given!.system_event_id}/retry`);
    expect(asked.status, asked.text).to.equal(202);
    expect(asked.body).to.deep.equal({
      success: true,
      message: 'told again to 1 endpoint',
      system_event_id: given!.system_event_id,
    });
    expect(await send()).to.deep.include({ delivered: 1 });
    const { attempts, ...shown } = (await api.request('GET', `/webhooks/deliveries/${given!.id}`)).body;
    expect(shown).to.deep.include({ delivery_status: 'delivered', attempt_count: 6 });
    expect(attempts.map(({ http_status }) => http_status)).to.deep.equal([...Array(5).fill(500), 204]);
    expect(attempts[0]!.response_body).to.equal('answered 500');
    const again = await api.request('POST', '/webhooks/retry', { body: { system_event_id: given!.system_event_id } });
    expect([again.status, again.body.code]).to.deep.equal([400, 'invalid_operation']);
  });

  it('wait for a receiver that goes away for an hour: nothing is lost, nothing comes twice, and those of a record in order', async () => {
    await endpoint();
    const ids = [await customer(), await customer(), await customer()];
    await send();
    const url = new URL(receiver.url);
    const before = receiver.taken();
    await receiver.stop();
    for (let minute = 0; minute < 60; minute += 5) {
      later(5);
      await rename(ids[(minute / 5) % 3]!, `name of minute ${minute}`);
      await send();
      await retry();
    }
    // The address resolves again.
    const back: string[] = [];
    const names = new Map<string, string[]>();
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { customer: told } = JSON.parse(Buffer.concat(chunks).toString());
        back.push(request.headers['webhook-id'] as string);
        names.set(told.id, [...(names.get(told.id) ?? []), told.name]);
        response.end();
      });
    });
    await new Promise<void>((resolve) => server.listen(Number(url.port), '127.0.0.1', resolve));
    try {
      for (let hour = 0; hour < 14; hour++) {
        later(60);
        await retry();
        await send();
      }
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
    expect(before).to.have.length(3);
    expect(new Set(back).size, 'nothing twice').to.equal(back.length);
    expect(back, 'nothing lost').to.have.length(12);
    for (const told of names.values()) expect(told).to.deep.equal([...told].sort(byMinute));
  });

  it('end with a receiver that is slow, that redirects, or that answers without an end', async () => {
    const { endpoint: made } = await endpoint();
    const tried = async () => {
      await customer();
      await send();
      const all = await deliveries(`endpoint_ids=${made.id}`);
      return all.at(-1)!.failure_reason;
    };
    receiver.answerWith(() => undefined);
    expect(await tried()).to.equal(`no answer within ${TIMEOUT_MS} ms`);
    receiver.answerWith((_, response) => {
      response.writeHead(302, { location: `${receiver.url}/elsewhere` }).end();
      return undefined;
    });
    expect(await tried()).to.equal('answered 302');
    expect(receiver.received.map(({ path }) => path)).to.not.include('/elsewhere');
    receiver.answerWith((_, response) => {
      response.writeHead(200).write('x'.repeat(100_000));
      return undefined;
    });
    expect(await tried(), 'its status has said that it was taken').to.equal(null);
  });

  it('end with a receiver that wants to speak another protocol, at once', async () => {
    const server = createSocketServer((socket) => {
      const switching = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n';
      socket.on('error', () => {}).once('data', () => socket.write(switching));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const { body } = await api.request('POST', '/webhooks/endpoints', { body: { url } });
    await customer();
    expect(await send()).to.deep.include({ delivered: 0, refused: 1 });
    const { failure_reason } = (await deliveryOf(body.endpoint.id))!;
    expect(failure_reason).to.equal('the connection was closed without an answer');
    await new Promise((resolve) => server.close(resolve));
  });

  it('connect to no private address, by whatever name', async () => {
    const guarded = { ...services, backend: createHttpBackend({ allow_private_addresses: false }) };
    const port = new URL(receiver.url).port;
    const hosts = ['127.0.0.1', 'localhost', '[::1]', '2130706433', '0.0.0.0', '169.254.169.254', '[::ffff:127.0.0.1]'];
    for (const host of hosts)
      await api.request('POST', '/webhooks/endpoints', { body: { url: `http://${host}:${port}/${host.length}` } });
    await customer();
    const sent: DeliveryResult[] = [];
    const report = await sendWebhooksJob(guarded, { ...limits, onSent: (each) => void sent.push(each) }).run(now);
    expect(report.done).to.deep.include({ delivered: 0, refused: hosts.length });
    expect(receiver.received).to.deep.equal([]);
    for (const { failure_reason } of await deliveries('delivery_status=pending'))
      expect(failure_reason).to.equal('the address is private or cannot be resolved');
    for (const { detail } of sent) expect(detail).to.match(/is not allowed/);
    expect(sent).to.have.length(hosts.length);
  });

  it('of an endpoint that is slow keep nobody else waiting', async () => {
    await endpoint('/slow');
    await endpoint('/fast');
    receiver.answerWith(({ path }) => (path === '/slow' ? undefined : 200));
    for (let n = 0; n < 12; n++) await customer();
    const patient = { ...services, backend: createHttpBackend({ allow_private_addresses: true, timeout_ms: 1_500 }) };
    const order: string[] = [];
    const sending: SendDueOptions = {
      clock: () => now,
      which: 'first',
      in_hand: new InFlightDeliveries(),
      max_attempts: 5,
      mayGoOn: () => true,
      onSent: ({ how }) => void order.push(how),
    };
    await sendDue(patient, sending);
    expect(receiver.taken('/fast')).to.have.length(12);
    // The first eight deliveries to the slow receiver are running already; the others are delivered while these wait.
    expect(order.slice(0, 12)).to.deep.equal(Array(12).fill('delivered'));
  });

  it('of one environment are sixteen at once, however many endpoints it has', async () => {
    for (const path of ['/one', '/two', '/three']) await endpoint(path);
    for (let n = 0; n < 8; n++) await customer();
    receiver.answerWith(() => undefined);
    let inHand = 0;
    let most = 0;
    const { backend } = services;
    const counting: typeof backend.send = async (...args) => {
      inHand += 1;
      most = Math.max(most, inHand);
      return backend.send(...args).finally(() => (inHand -= 1));
    };
    const report = await sendWebhooksJob({ ...services, backend: { ...backend, send: counting } }, limits).run(now);
    expect(report.done).to.deep.include({ refused: 24 });
    expect(most).to.equal(16);
  });

  it('that have failed take turns between tenants, however new those of one are', async () => {
    await endpoint('/mine');
    const other = await api.otherTenant();
    await api.request('POST', '/webhooks/endpoints', { key: other.key, body: { url: `${receiver.url}/other` } });
    await api.request('POST', '/customers', { key: other.key, body: { external_id: 'first' } });
    for (let n = 0; n < 3; n++) await customer();
    receiver.answerWith(() => 500);
    expect(await send()).to.deep.include({ refused: 4 });
    receiver.answerWith(() => 200);
    later(2);
    const seen = receiver.received.length;
    let looks = 0;
    const mayGoOn = () => looks++ < 2;
    const in_hand = new InFlightDeliveries();
    await sendDue(services, {
      clock: () => now,
      which: 'again',
      in_hand,
      max_attempts: 5,
      permit: async () => {},
      mayGoOn,
    });
    await in_hand.end();
    const paths = receiver.received.slice(seen).map(({ path }) => path);
    expect(paths.sort(), 'one of each in the first two').to.deep.equal(['/mine', '/other']);
    expect(await retry()).to.deep.include({ delivered: 2 });
  });

  it('that fail are no change for the audit log', async () => {
    const { endpoint: made } = await endpoint();
    receiver.answerWith(() => 500);
    await customer();
    const told = () =>
      services.postgres('audit_entries').whereIn('entity_type', ['webhook_endpoint', 'webhook_attempt']).select('id');
    const before = await told();
    expect(await send()).to.deep.include({ refused: 1 });
    expect(await told()).to.deep.equal(before);
    const { body } = await api.request('GET', `/webhooks/endpoints/${made.id}`);
    expect(body.failing_since).to.equal(START.replace('.000', ''));
  });

  it('are given up when they have waited for 48 hours for an endpoint that is disabled', async () => {
    const { endpoint: made } = await endpoint();
    await customer();
    await dispatchBatch(services, { has_targets: true, now });
    await api.request('PUT', `/webhooks/endpoints/${made.id}`, { body: { endpoint_status: 'disabled' } });
    later(47 * 60);
    expect(await retry()).to.deep.include({ expired: 0 });
    later(2 * 60);
    expect(await retry()).to.deep.include({ expired: 1 });
    const given = await deliveryOf(made.id);
    expect(given).to.deep.include({ delivery_status: 'failed', attempt_count: 0 });
    expect(given!.failure_reason).to.match(/disabled/);
  });

  it('do not wait for an endpoint that is deleted while they are made', async () => {
    const { endpoint: made } = await endpoint();
    await customer();
    const { postgres } = services;
    let sending: Promise<unknown> = Promise.resolve();
    await postgres.transaction(async (transaction) => {
      const author = { user_id: '', now };
      await deleteEndpoint({ postgres: transaction }, api.scope, { id: made.id, author });
      sending = send();
      const waits = () =>
        postgres('pg_stat_activity').whereRaw(`datname = current_database() and wait_event_type = 'Lock'`);
      while ((await waits()).length === 0);
    });
    await sending;
    expect(await deliveries(`endpoint_ids=${made.id}&delivery_status=pending`)).to.deep.equal([]);
  });

  it('that are not tried again keep no later event of their record waiting', async () => {
    await endpoint();
    const rules = [
      { enabled: false },
      { excluded_tenants: [api.scope.tenant_id] },
      { allowed_event_types: ['customer.updated'] },
    ];
    for (const rule of rules) {
      receiver.answerWith(() => 500);
      const id = await customer();
      const sent = async () => (await sendWebhooksJob(services, { ...limits, ...rule }).run(now)).done;
      expect(await sent(), JSON.stringify(rule)).to.deep.include({ refused: 0, given_up: 1 });
      receiver.answerWith(() => 200);
      await rename(id, 'later');
      expect(await sent(), JSON.stringify(rule)).to.deep.include({ delivered: 1 });
    }
  });

  it('for a managed service that there is no more are given up, and keep nobody waiting', async () => {
    await customer();
    await dispatchBatch(services, { has_targets: false, now });
    await endpoint();
    await customer();
    expect(await send()).to.deep.include({ delivered: 1 });
    expect(await retry()).to.deep.include({ expired: 1 });
    const given = (await deliveries('delivery_status=failed')).filter((one) => !one.endpoint_id);
    expect(given).to.have.length(1);
    expect(given[0]!.failure_reason).to.match(/not configured/);
  });

  it('are sent when one of them throws, which is said at the end', async () => {
    await endpoint();
    for (let n = 0; n < 20; n++) await customer();
    const { backend } = services;
    let count = 0;
    const send: typeof backend.send = async (...args) => {
      count += 1;
      if (count === 1) throw new Error('this one alone');
      return backend.send(...args);
    };
    let failure: unknown;
    await sendWebhooksJob({ ...services, backend: { ...backend, send } }, limits)
      .run(now)
      .catch((error: unknown) => (failure = error));
    expect((failure as Error).message).to.equal('this one alone');
    expect(receiver.taken()).to.have.length(19);
  });

  it('are sent by one of several who look at once', async () => {
    await endpoint();
    for (let n = 0; n < 30; n++) await customer();
    await Promise.all([send(), send(), send()]);
    const taken = receiver.taken();
    expect([taken.length, new Set(taken).size]).to.deep.equal([30, 30]);
  });

  it('come again under the same id when the process dies before it could write down a 2xx', async () => {
    const { endpoint: made } = await endpoint();
    await customer();
    const dying = {
      ...services,
      backend: {
        ...services.backend,
        send: async (...args: Parameters<typeof services.backend.send>) => {
          await services.backend.send(...args);
          throw new Error('killed');
        },
      },
    };
    let failure: unknown;
    await sendWebhooksJob(dying, limits)
      .run(now)
      .catch((error: unknown) => (failure = error));
    expect((failure as Error).message).to.equal('killed');
    expect(await send(), 'while the lease lasts').to.deep.include({ delivered: 0 });
    await services.postgres('webhook_deliveries').update({ leased_until: '2000-01-01' });
    expect(await send()).to.deep.include({ delivered: 1 });
    expect(new Set(receiver.taken()).size).to.equal(1);
    expect(await deliveryOf(made.id)).to.deep.include({ delivery_status: 'delivered', attempt_count: 1 });
  });

  it('are retried at the rate, for the tenants and the events that the settings allow, and not after 48 hours', async () => {
    await endpoint();
    receiver.answerWith(() => 503);
    const ids = [await customer(), await customer(), await customer(), await customer()];
    await send();
    later(2);
    expect(await retry({ enabled: false })).to.deep.equal({ expired: 0 });
    expect(await retry({ excluded_tenants: [api.scope.tenant_id] })).to.deep.include({ refused: 0 });
    expect(await retry({ allowed_event_types: ['invoice.finalized'] })).to.deep.include({ refused: 0 });
    const begun = performance.now();
    const seen = receiver.received.length;
    const { items } = (await api.request('GET', `/webhooks/events?entity_ids=${ids.join(',')}`)).body;
    expect(await retry({ allowed_event_types: ['customer.created'], rate_limit: 2 })).to.deep.include({ refused: 4 });
    expect(performance.now() - begun, 'two at once, and two in the next second').to.be.greaterThan(900);
    const again = receiver.received.slice(seen).map(({ id }) => id);
    // Two requests run concurrently and may arrive in either order.
    const pairs = (ids: string[]) => [ids.slice(0, 2).sort(), ids.slice(2).sort()];
    expect(pairs(again), 'the newest first').to.deep.equal(pairs(items.map(({ id }: { id: string }) => id)));
    later(48 * 60);
    expect(await retry()).to.deep.include({ refused: 0, delivered: 0, expired: 4 });
  });

  it('switch off an endpoint that has failed for days, which says so and begins anew when it is enabled', async () => {
    const { endpoint: made } = await endpoint('/bad', { event_names: ['customer.created'] });
    await endpoint('/good', { event_names: ['webhook_endpoint.disabled'] });
    receiver.answerWith(({ path }) => (path === '/bad' ? 500 : 200));
    const shown = async () => (await api.request('GET', `/webhooks/endpoints/${made.id}`)).body;
    for (let day = 0; day <= 5; day++) {
      expect((await shown()).endpoint_status, `day ${day}`).to.equal('enabled');
      await customer();
      await customer();
      await send();
      later(24 * 60);
    }
    const off = await shown();
    expect(off).to.deep.include({ endpoint_status: 'disabled', failing_since: START.replace('.000', '') });
    expect(off.disabled_reason).to.match(/taken nothing since/);
    await send();
    expect(receiver.received.at(-1)!.body).to.deep.include({ event_type: 'webhook_endpoint.disabled' });
    expect(receiver.received.at(-1)!.body.webhook_endpoint).to.deep.include({ id: made.id });
    expect(JSON.stringify(receiver.received.at(-1)!.body)).to.not.include('whsec_"');

    const count = receiver.received.length;
    await customer();
    await send();
    expect(receiver.received, 'nothing is sent to it').to.have.length(count);
    receiver.answerWith(() => 200);
    await api.request('PUT', `/webhooks/endpoints/${made.id}`, { body: { endpoint_status: 'enabled' } });
    expect(await shown()).to.deep.include({ endpoint_status: 'enabled', disabled_reason: null, failing_since: null });
    const last = (await api.request('GET', '/webhooks/events?event_names=customer.created&limit=1')).body.items[0];
    const asked = await api.request('POST', `/webhooks/${last!.id}/retry`);
    expect(asked.status, 'what happened meanwhile can be asked for').to.equal(202);
    await send();
    expect(receiver.taken('/bad')).to.include(last!.id);
  });
});

function byMinute(a: string, b: string): number {
  return Number(a.split(' ').at(-1)) - Number(b.split(' ').at(-1));
}
