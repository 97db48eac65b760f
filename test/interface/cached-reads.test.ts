/** Reads that are answered before the framework are answered as by it: what it says, what it refuses, and what is written down of it. */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { register } from 'prom-client';
import { buildApp } from '../../api/app.ts';
import { makeHttpServer } from '../../process/http-server.ts';
import { UsageCache } from '../../storage/usage/usage-cache.ts';
import { startWorld, usage, type World } from '../support/world.ts';

describe('reads that are kept', () => {
  let world: World;
  /** The same service without what is kept. */
  let framework: Server;
  let paths: string[];

  before(async () => {
    const config = { RATE_LIMIT_REQUESTS: '60' };
    world = await startWorld({ now: '2026-01-10T00:00:00Z', usage_cache: new UsageCache(), config });
    await world.meter('calls');
    await world.plan('Calls', [usage('calls', '2')]);
    const meter_id = world.id('meter calls');
    const feature = await world.post('/features', { name: 'Calls', lookup_key: 'calls', type: 'metered', meter_id });
    const limit = { feature_id: feature.id, feature_type: 'metered', usage_limit: 50 };
    await world.post('/entitlements', { plan_id: world.id('plan Calls'), ...limit });
    await world.subscribe('acme', 'Calls');
    const wallet = await world.post('/wallets', { external_customer_id: 'acme', currency: 'usd' });
    const customer = world.id('customer acme');
    paths = [
      `/wallets/${wallet.id}/balance/real-time`,
      `/customers/usage?customer_id=${customer}`,
      `/customers/${customer}/entitlements`,
    ];
    await world.use('acme', 'calls', 3);
    await world.waitForPipeline();
    for (const path of paths) await world.get(path);
    framework = makeHttpServer(buildApp({ ...world.api.services, usage_cache: undefined })).listen(0);
  });
  after(async () => {
    framework.closeAllConnections();
    framework.close();
    await world.stop();
  });

  const ask = <Path extends string>(
    path: Path,
    { key = world.api.key, headers = {} }: { key?: string; headers?: object } = {},
  ) => world.api.request('GET', path, { key, headers: { 'x-request-id': 'r1', ...headers } });
  const askFramework = async (path: string) => {
    const { port } = framework.address() as AddressInfo;
    const headers = { 'x-api-key': world.api.key, 'x-request-id': 'r1' };
    const response = await fetch(`http://127.0.0.1:${port}/v1${path}`, { headers });
    return { headers: response.headers, text: await response.text() };
  };
  const answers = async (): Promise<Record<string, number>> => {
    const { values } = await register.getSingleMetric('farthing_running_answers_total')!.get();
    return Object.fromEntries(values.map(({ labels, value }) => [labels.from, value]));
  };

  it('say what the framework says, in its headers too, and gather nothing', async () => {
    for (const path of paths) {
      const before = await answers();
      const answer = await ask(path);
      const after = await answers();
      expect(after.gathered, path).to.equal(before.gathered);
      expect(after.kept! + after.arrived!, path).to.be.above(before.kept! + before.arrived!);
      const other = await askFramework(path);
      const headersOf = (headers: Headers) =>
        Object.fromEntries([...headers].filter(([name]) => !/^(date|ratelimit|content-length)$/.test(name)));
      expect(headersOf(answer.headers), path).to.deep.equal(headersOf(other.headers));
      expect(answer.text, path).to.equal(other.text);
    }
  });

  it('say it of another moment, and when usage has arrived or the wallet was changed', async () => {
    // How fresh it is was read a moment ago.
    const withoutFreshness = (text: string) => text.replace(/("as_of":)"[^"]+Z"/, '$1');
    const same = async (what: string) => {
      for (const path of paths)
        for (const time of ['first', 'second']) {
          const [kept, other] = [(await ask(path)).text, (await askFramework(path)).text].map(withoutFreshness);
          expect(kept, `${what}, ${time} ${path}`).to.equal(other);
        }
    };
    world.at('2026-01-10T00:00:01.250Z');
    await same('later');
    await world.use('acme', 'calls', 104);
    await world.waitForPipeline();
    await same('more usage');
    const name = 'a \\u0000as_of\\u0000 "name"';
    await world.api.request('PUT', paths[0]!.replace('/balance/real-time', ''), { body: { name } });
    await same('renamed');
  });

  it('are written down and counted as all are', async () => {
    await ask(paths[0]!, { headers: { 'x-request-id': 'written-down' } });
    const lines = world.api.logged().trim().split('\n');
    const line = JSON.parse(lines.find((one) => one.includes('written-down'))!);
    const { tenant_id, environment_id } = world.api.scope;
    expect(line).to.include({ tenant_id, environment_id, method: 'GET', route: '/wallets/:id/balance/real-time' });
    expect(line).to.include({ http_status: 200, path: `/v1${paths[0]}`, msg: 'request completed' });
    const metrics = await (await fetch(`${world.api.url}/metrics`)).text();
    expect(metrics).to.match(
      /http_request_duration_seconds_count\{method="GET",route="\/wallets\/:id\/balance\/real-time"/,
    );
  });

  it('are refused where the framework refuses', async () => {
    const other = await world.api.otherTenant();
    const poor = await world.api.keyWithRoles(['event_ingestor']);
    const [path] = paths as [string];
    for (const key of [other.key, poor]) await ask('/meters', { key });
    const statusOf = async (asked: Promise<{ status: number; body: { code?: string } }>) => {
      const { status, body } = await asked;
      return `${status} ${body.code ?? ''}`;
    };
    expect(await statusOf(ask(path, { key: 'sk_wrong' }))).to.equal('401 permission_denied');
    expect(await statusOf(ask(path, { key: poor }))).to.equal('403 permission_denied');
    expect(await statusOf(ask(path, { key: other.key }))).to.equal('404 not_found');
    expect(await statusOf(ask(path, { headers: { 'x-environment-id': 'env_other' } }))).to.equal(
      '403 permission_denied',
    );
    expect(await statusOf(ask(`${path}?expnad=x`))).to.equal('400 validation_error');
    expect(await statusOf(ask(path.replace('wallet_', 'wallet_X')))).to.equal('404 not_found');
  });

  it('count against the limit of their key', async () => {
    const statuses: number[] = [];
    let last: Awaited<ReturnType<typeof ask>>;
    do {
      last = await ask(paths[0]!);
      statuses.push(last.status);
    } while (last.status === 200 && statuses.length < 100);
    expect(last.status).to.equal(429);
    expect(last.body.code).to.equal('too_many_requests');
    expect(last.headers.get('retry-after')).to.match(/^\d+$/);
    expect(last.headers.get('ratelimit-policy')).to.equal('"key";q=60;w=60');
  });
}).timeout(120_000);
