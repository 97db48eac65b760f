/** Svix as the webhook backend, by its published client, against a fake server. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { createWebhookBackend } from '../../../../actions/delivery/webhooks/backend.ts';
import type { WebhookServices } from '../../../../actions/delivery/webhooks/send-delivery.ts';
import { retryWebhooksJob } from '../../../../scheduler/jobs/retry-webhooks.ts';
import { sendWebhooksJob } from '../../../../scheduler/jobs/send-webhooks.ts';
import { createSealer } from '../../../../storage/foundation/secrets/sealing.ts';
import { startTestApi, type TestApi } from '../../../support/api.ts';

const AT = '2026-03-15T12:00:00Z';

describe('webhooks by Svix', () => {
  let api: TestApi;
  let svix: Server;
  let services: WebhookServices;
  // Requests in the order of their arrival.
  const asked: {
    path: string;
    body: { payload?: { customer: { id: string } } };
    key: string | undefined;
    token: string | undefined;
  }[] = [];
  let messageStatus = 202;
  before(async () => {
    svix = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const path = request.url!.split('?')[0]!;
        const body = JSON.parse(Buffer.concat(chunks).toString());
        const { 'idempotency-key': key, authorization: token } = request.headers;
        asked.push({ path, body, key: key as string | undefined, token });
        const [status, answer] = answerTo(path, body);
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
      });
    });
    svix.listen(0, '127.0.0.1');
    await once(svix, 'listening');
    const server = `http://127.0.0.1:${(svix.address() as AddressInfo).port}`;
    api = await startTestApi({ now: AT, config: { SVIX_TOKEN: 'testsk_1', SVIX_SERVER_URL: server } });
    services = {
      postgres: api.services.postgres,
      sealing: createSealer([]),
      backend: createWebhookBackend(api.services.config),
    };
  });
  after(async () => {
    await api.stop();
    svix.closeAllConnections();
    svix.close();
  });

  function answerTo(path: string, body: Record<string, unknown>): [number, object] {
    if (path === '/api/v1/app') return [200, { id: 'app_1', ...body, createdAt: AT, updatedAt: AT, metadata: {} }];
    if (path.startsWith('/api/v1/auth/app-portal-access'))
      return [200, { url: 'https://app.svix.example/login', token: 'appsk_1' }];
    if (messageStatus !== 202) return [messageStatus, { code: 'not_now', detail: 'not now' }];
    return [202, { id: 'msg_1', ...body, timestamp: AT }];
  }
  const limits = { every_seconds: 60, max_attempts: 5 };
  const send = async () => (await sendWebhooksJob(services, limits).run(new Date(AT))).done;
  const messages = () => asked.filter(({ path }) => path.endsWith('/msg'));

  it('hands over each event once, under its id, to the application of its environment', async () => {
    const { body: customer } = await api.request('POST', '/customers', { body: { external_id: 'acme' } });
    expect(await send()).to.deep.include({ delivered: 1, refused: 0 });
    expect(await send()).to.deep.include({ delivered: 0 });
    const [event] = (await api.request('GET', '/webhooks/events')).body.items;
    const uid = `${api.scope.tenant_id}_${api.scope.environment_id}`;
    expect(asked[0]!.body).to.deep.include({ uid });
    const [message] = messages();
    expect(message).to.deep.include({ path: `/api/v1/app/${uid}/msg`, token: 'Bearer testsk_1' });
    expect(message!.key).to.equal(`${event!.id}_customer.created`);
    expect(message!.body).to.deep.include({ eventType: 'customer.created', eventId: event!.id });
    expect(message!.body.payload!.customer.id).to.equal(customer.id);
  });

  it('tries again what Svix has not taken; that it has it already is as good', async () => {
    messageStatus = 500;
    await api.request('POST', '/customers', { body: { external_id: 'second' } });
    expect(await send()).to.deep.include({ delivered: 0, refused: 1 });
    const [failed] = (await api.request('GET', '/webhooks/deliveries?delivery_status=pending')).body.items;
    expect(failed).to.deep.include({ endpoint_id: null, http_status: 500, failure_count: 1 });
    messageStatus = 409;
    const again = { ...limits, enabled: true, rate_limit: 5, excluded_tenants: [], allowed_event_types: [] };
    const { done } = await retryWebhooksJob(services, again).run(new Date(Date.parse(AT) + 60_000));
    expect(done).to.deep.include({ delivered: 1 });
  });

  it('has the endpoints: they are not made here, and the dashboard leads there', async () => {
    messageStatus = 202;
    const made = await api.request('POST', '/webhooks/endpoints', { body: { url: 'https://example.com' } });
    expect([made.status, made.body.code]).to.deep.equal([400, 'invalid_operation']);
    const { body } = await api.request('GET', '/webhooks/dashboard');
    expect(body).to.deep.equal({
      svix_enabled: true,
      url: 'https://app.svix.example/login',
      token: 'appsk_1',
      app_id: `${api.scope.tenant_id}_${api.scope.environment_id}`,
    });
    expect(asked.at(-1)!.body).to.deep.include({ readOnly: false });
    await api.request('GET', '/webhooks/dashboard', { key: await api.keyWithRoles(['all_reader']) });
    expect(asked.at(-1)!.body).to.deep.include({ readOnly: true });
  });
});
