import { get as getHttp, type IncomingHttpHeaders } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { UsageCache } from '../../storage/usage/usage-cache.ts';
import { startWorld, usage, type World } from '../support/world.ts';

type Answer = { status: number; headers: IncomingHttpHeaders; bytes: Buffer };

describe('answers', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-01-10T00:00:00Z', usage_cache: new UsageCache() });
  });
  after(() => world.stop());

  const get = (path: string, headers: Record<string, string> = {}) =>
    new Promise<Answer>((resolve, reject) => {
      const options = { headers: { 'x-api-key': world.api.key, ...headers } };
      getHttp(world.api.url + path, options, (response) => {
        const { statusCode: status = 0, headers } = response;
        buffer(response).then((bytes) => resolve({ status, headers, bytes }), reject);
      }).on('error', reject);
    });

  const expectCompressed = async (path: string) => {
    const plain = await get(path);
    expect(plain.headers, path).to.not.have.property('content-encoding');
    expect(plain.bytes.length, path).to.be.above(4096);
    for (const [encoding, inflate] of [['gzip', gunzipSync] as const, ['br', brotliDecompressSync] as const]) {
      const packed = await get(path, { 'accept-encoding': encoding });
      expect(packed.status, path).to.equal(200);
      expect(packed.headers['content-encoding'], path).to.equal(encoding);
      expect(packed.headers.vary, path).to.match(/Accept-Encoding/i);
      expect(packed.bytes.length, path).to.be.below(plain.bytes.length / 2);
      expect(inflate(packed.bytes).equals(plain.bytes), path).to.equal(true);
    }
    return plain;
  };

  it('of operations are compressed if they are long', async () => {
    for (let n = 0; n < 20; n++) await world.meter(`tokens_${n}`);
    const { headers, bytes } = await expectCompressed('/v1/meters?limit=20');
    expect(headers['content-length']).to.equal(String(bytes.length));
    const short = await get('/v1/meters?limit=1', { 'accept-encoding': 'gzip' });
    expect(short.headers).to.not.have.property('content-encoding');
  });

  it('from the cache are compressed, too', async () => {
    const plan = await world.plan('Pro', [usage('tokens_1', '2')]);
    for (let n = 0; n < 12; n++) {
      const feature = await world.post('/features', { name: `F ${n}`, lookup_key: `f_${n}`, type: 'boolean' });
      const entitled = { feature_id: feature.id, feature_type: 'boolean', is_enabled: true };
      await world.post('/entitlements', { plan_id: plan.id, ...entitled });
    }
    await world.subscribe('acme', 'Pro');
    const path = `/v1/customers/${world.id('customer acme')}/entitlements`;
    await get(path);
    await expectCompressed(path);
  });

  it('that a route writes itself are compressed, too', async () => {
    await world.send(
      Array.from({ length: 30 }, (_, n) => ({
        event_id: `event-${n}`,
        event_name: 'tokens_1',
        external_customer_id: 'acme',
        timestamp: '2026-01-09T00:00:00Z',
        properties: { n, text: 'a long text '.repeat(10) },
      })),
    );
    await world.waitForPipeline();
    await expectCompressed('/v1/events?event_name=tokens_1');
    await expectCompressed('/v1/events/event-1');
  });

  it('that are documents are compressed and, if the caller has them, not sent again', async () => {
    const paths = ['/v1/openapi.json', '/docs/', '/docs/operations/invoices.json', '/docs/rules/proration.md'];
    for (const path of [...paths, '/docs/swagger-ui-bundle.js', '/docs/swagger-ui.css']) {
      const { etag } = (await expectCompressed(path)).headers;
      const again = await get(path, { 'if-none-match': etag! });
      expect([again.status, again.bytes.length, again.headers.etag], path).to.deep.equal([304, 0, etag]);
      // `fetch` adds `Cache-Control: no-cache`.
      expect((await fetch(world.api.url + path, { headers: { 'if-none-match': etag! } })).status, path).to.equal(304);
      const other = await get(path, { 'if-none-match': 'W/"other"' });
      expect(other.status, path).to.equal(200);
    }
    for (const path of ['/docs/swagger-ui-bundle.js', '/docs/start.js', '/docs/page.css']) {
      const whole = await get(path);
      const ranged = await get(path, { range: 'bytes=0-9999', 'accept-encoding': 'gzip' });
      expect(ranged.status, path).to.equal(200);
      expect(ranged.headers, path).to.not.have.any.keys('accept-ranges', 'content-range');
      const sent = ranged.headers['content-encoding'] === 'gzip' ? gunzipSync(ranged.bytes) : ranged.bytes;
      expect(sent.equals(whole.bytes), path).to.equal(true);
    }
    const { bytes } = await get('/v1/openapi.json', { 'accept-encoding': 'gzip' });
    expect(bytes.length).to.be.below(300_000);
  });
});
