/** Requests of a process that has no capacity left. One request runs at a time, and a lock on the table of the plans holds it. */
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { register } from 'prom-client';
import { buildApp } from '../../../api/app.ts';
import { limitLoad } from '../../../api/http/admission.ts';
import { findKnownTenant } from '../../../api/http/auth.ts';
import { makeToken } from '../../../api/http/token.ts';
import { routes } from '../../../api/resources.ts';
import { makeHttpServer } from '../../../process/http-server.ts';
import { Admission } from '../../../storage/concurrency/admission.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { until } from '../../support/until.ts';

describe('admission of requests', () => {
  let api: TestApi;
  let server: Server;
  let now_ms: number;
  let others: Admission;
  let quiet: string;
  /** Names of the answered requests, in their order. */
  let answered: string[];

  before(async () => {
    api = await startTestApi();
    quiet = (await api.otherTenant()).key;
  });
  after(() => api.stop());

  beforeEach(async () => {
    now_ms = 0;
    answered = [];
    const make = () =>
      new Admission(
        { at_once_min: 1, burst_ms: 5_000, lasting_ms: 500 },
        { now: () => now_ms, watchShortage: () => () => true },
      );
    others = make();
    const admitted = { routes, headers: ['Access-Control-Allow-Origin', '*'], listener: buildApp(api.services) };
    server = makeHttpServer(limitLoad(api.services, admitted, { events: make(), others })).listen(0, '127.0.0.1');
    await once(server, 'listening');
    for (const key of [api.key, quiet]) await send('warm up', '/customers', { key });
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  type Sent = { method?: string; key?: string; body?: object; signal?: AbortSignal };

  async function send(name: string, path: string, { method = 'GET', key = api.key, body, signal }: Sent = {}) {
    const { port } = server.address() as AddressInfo;
    const response = await fetch(`http://127.0.0.1:${port}${/^\/(health|metrics)/.test(path) ? '' : '/v1'}${path}`, {
      method,
      headers: { 'x-api-key': key, 'content-type': 'application/json', 'x-request-id': 'r1' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
    const text = await response.text();
    answered.push(name);
    return { status: response.status, headers: response.headers, text };
  }

  /**
   * Sends a request of each tenant that hangs, and runs `work` meanwhile: the others wait. The request of the second tenant has the place of a
   * first request and ends last, so the others run one after the other.
   */
  async function whileFull(work: () => Promise<void>): Promise<void> {
    const first = await hang('addons');
    const other = await hang('plans');
    const hanging = [send('hanging', '/plans')];
    await waitUntilHanging('plans');
    hanging.push(send('hanging', '/addons', { key: quiet }));
    await waitUntilHanging('addons');
    try {
      await work();
    } finally {
      await other.rollback();
      await waitUntilWaiting(0);
      await first.rollback();
    }
    for (const { status } of await Promise.all(hanging)) expect(status).to.equal(200);
  }

  /** Locks the table until the rollback. */
  async function hang(table: string) {
    const transaction = await api.services.postgres.transaction();
    await transaction.raw(`lock table ${table} in access exclusive mode`);
    return transaction;
  }

  function waitUntilHanging(table: string) {
    const text = `select 1 from pg_locks where not granted and relation = ?::regclass`;
    return until(`a request for ${table} hangs`, async () => {
      const { rows } = await api.services.postgres.raw(text, [table]);
      return rows.length > 0;
    });
  }

  const waitUntilWaiting = (count: number) => until(`${count} wait`, async () => others.waiting === count);

  /** Sends requests one after the other, until all of them wait. */
  async function queue(...sent: readonly [name: string, key: string][]) {
    const answers: ReturnType<typeof send>[] = [];
    for (const [name, key] of sent) {
      const before = others.waiting;
      answers.push(send(name, '/customers', { key }));
      await waitUntilWaiting(before + 1);
    }
    return answers;
  }

  it('tenants have their turns, and all unknown keys together have one', async () => {
    answered = [];
    let all: Promise<{ status: number }>[] = [];
    await whileFull(async () => {
      const flood = ['a1', 'a2', 'a3'].map((name) => [name, api.key] as [string, string]);
      all = await queue(...flood, ['unknown 1', 'sk_1'], ['unknown 2', 'sk_2'], ['quiet', quiet]);
    });
    expect((await Promise.all(all)).map(({ status }) => status)).to.deep.equal([200, 200, 200, 401, 401, 200]);
    const waited = answered.filter((name) => name !== 'hanging');
    expect(waited).to.deep.equal(['a1', 'unknown 1', 'quiet', 'a2', 'unknown 2', 'a3']);
  });

  it('a tenant without a running request does not wait', async () => {
    const third = (await api.otherTenant()).key;
    await api.services.postgres.transaction(async (transaction) => {
      await transaction.raw('lock table plans in access exclusive mode');
      const hanging = send('hanging', '/plans');
      const [waiting] = await queue(['waiting', api.key]);
      expect((await send('third', '/customers', { key: third })).status).to.equal(200);
      expect(others.waiting).to.equal(1);
      await transaction.rollback();
      for (const { status } of await Promise.all([hanging, waiting!])) expect(status).to.equal(200);
    });
  });

  it('events and webhooks of providers do not wait for other requests, and probes for none', async () => {
    let waiting: Promise<{ status: number }>[] = [];
    await whileFull(async () => {
      waiting = await queue(['a1', api.key]);
      const event = { event_name: 'call', external_customer_id: 'acme' };
      const statuses: number[] = [];
      const post = async (path: string, body: object) =>
        statuses.push((await send(path, path, { method: 'POST', body })).status);
      await post('/events', event);
      await post('/v1/events/bulk?verdicts=true', { events: [event] });
      await post('/events/raw/bulk/', { events: [event] });
      await post('/otlp/v1/metrics', {});
      await post('/webhooks/sandbox/tenant_1/env_1', {});
      for (const path of ['/health', '/metrics']) statuses.push((await send(path, path)).status);
      expect(statuses).to.deep.equal([202, 202, 202, 200, 401, 200, 200]);
      expect(others.waiting).to.equal(1);
    });
    expect((await waiting[0]!).status).to.equal(200);
  });

  it('503: a request that waited too long gets Retry-After and the error record, and is counted', async () => {
    const before = await readMetric('farthing_requests_refused_total', 'others');
    await whileFull(async () => {
      const [late] = await queue(['late', api.key]);
      expect(await readMetric('farthing_requests_waiting', 'others')).to.equal(1);
      now_ms += 10_000;
      others.adapt(true);
      const { status, headers, text } = await late!;
      expect(status).to.equal(503);
      expect(headers.get('retry-after')).to.equal('10');
      expect(headers.get('x-request-id')).to.equal('r1');
      expect(headers.get('access-control-allow-origin')).to.equal('*');
      expect(JSON.parse(text)).to.include({ code: 'service_unavailable', http_status_code: 503, success: false });
    });
    expect(await readMetric('farthing_requests_refused_total', 'others')).to.equal(before + 1);
    expect(await readMetric('farthing_requests_waiting', 'others')).to.equal(0);
  });

  it('a caller that leaves while it waits does not run', async () => {
    await whileFull(async () => {
      const leaving = new AbortController();
      const left = send('left', '/customers', { signal: leaving.signal }).catch((error: Error) => error.name);
      await waitUntilWaiting(1);
      leaving.abort();
      await waitUntilWaiting(0);
      expect(await left).to.equal('AbortError');
    });
  });

  it('a key and a token name their tenant after they were accepted', async () => {
    const { services, scope } = api;
    const { user_id } = await api.otherTenant();
    const row = await services.postgres('users').where({ id: user_id }).first();
    const claims = { user_id, tenant_id: row.tenant_id, environment_id: null };
    const token = await makeToken(services, claims, services.clock());
    const headers = { authorization: `Bearer ${token}` };
    expect(findKnownTenant({ headers }, services)).to.equal(undefined);
    expect((await api.request('GET', '/users/me', { key: null, headers })).status).to.equal(200);
    expect(findKnownTenant({ headers }, services)).to.equal(row.tenant_id);
    expect(findKnownTenant({ headers: { 'x-api-key': api.key } }, services)).to.equal(scope.tenant_id);
    for (const unknown of [{}, { 'x-api-key': 'sk_1' }, { authorization: 'Bearer none' }])
      expect(findKnownTenant({ headers: unknown }, services)).to.equal(undefined);
  });
});

async function readMetric(name: string, kind: string): Promise<number> {
  const { values } = await register.getSingleMetric(name)!.get();
  return values.find(({ labels }) => labels.kind === kind)!.value;
}
