/** The console as a browser gets it: pages with their policy, files with their caches, and nothing in place of an answer of the API. */
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { pino } from 'pino';
import { readConfig } from '../../config.ts';
import type { ConsoleSource } from '../../process/console-source.ts';
import { startTestApi, type TestApi } from '../support/api.ts';

const CHROMIUM = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8';
const SCRIPT = 'document.title = "Farthing";\n'.repeat(100);
const PAGE =
  '<!doctype html><meta property="csp-nonce" nonce="__NONCE__"><script nonce="__NONCE__" src="/assets/app-1a2b3c4d.js"></script>';

describe('the console', () => {
  const folder = mkdtempSync(join(tmpdir(), 'farthing-console-'));
  let found: ReturnType<ConsoleSource['find']> = { folder };
  let api: TestApi;

  before(async () => {
    mkdirSync(join(folder, 'assets'));
    const files: [string, string | Buffer][] = [
      ['index.html', PAGE],
      ['mark.svg', '<svg xmlns="http://www.w3.org/2000/svg"/>'],
      ['secret.json', '{}'],
      ['assets/app-1a2b3c4d.js', SCRIPT],
      ['assets/app-1a2b3c4d.js.br', brotliCompressSync(SCRIPT)],
      ['assets/app-1a2b3c4d.js.gz', gzipSync(SCRIPT)],
      ['assets/small-1a2b3c4d.css', 'a{}'],
    ];
    for (const [name, content] of files) writeFileSync(join(folder, name), content);
    api = await startTestApi({ console: { find: () => found } });
  });
  beforeEach(() => {
    found = { folder };
  });
  after(async () => {
    await api.stop();
    rmSync(folder, { recursive: true });
  });

  const get = (path: string, headers: Record<string, string> = {}, method = 'GET', url = api.url) =>
    api.request(method, `${url}${path}` as '/users/me', { key: null, headers });
  const open = (path: string, url = api.url) => get(path, { accept: CHROMIUM }, 'GET', url);

  it('is every page that has no other owner, with a nonce of its own and a policy that allows this host alone', async () => {
    const nonces = new Set<string>();
    for (const path of [
      '/',
      '/sign-in',
      '/env/env_1/customers?status=active',
      '/env/env_1/events/a.b',
      '/v1x',
      '/index.html',
    ]) {
      const { status, headers, text } = await open(path);
      expect(status, path).to.equal(200);
      const nonce = /nonce="([^"]+)"/.exec(text)![1]!;
      expect(text).to.equal(PAGE.replaceAll('__NONCE__', nonce));
      expect(Buffer.from(nonce, 'base64')).to.have.length(16);
      nonces.add(nonce);
      expect(headers.get('content-security-policy')).to.equal(
        `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'`,
      );
      expect(Object.fromEntries(headers)).to.include({
        'content-type': 'text/html; charset=utf-8',
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
        'cross-origin-resource-policy': 'same-origin',
      });
      expect(headers.get('vary')).to.contain('Accept');
    }
    expect(nonces.size).to.equal(6);
    const head = await get('/', { accept: CHROMIUM }, 'HEAD');
    expect([head.status, head.text]).to.deep.equal([200, '']);
  });

  it('is in the way of no answer of the API', async () => {
    for (const [path, status] of [
      ['/v1/nothing', 404],
      ['/V1/nothing', 404],
      ['/v1/users/me', 401],
      ['/docs/', 200],
      ['/docs/nothing', 404],
      ['/webhooks/nothing', 404],
      ['/portal/x', 404],
      ['/assets/nothing.js', 404],
      ['/assets/', 404],
      ['/health', 200],
      ['/metrics', 200],
    ] as const) {
      const answer = await open(path);
      expect(answer.status, path).to.equal(status);
      expect(answer.text, path).to.not.contain('csp-nonce');
    }
    for (const accept of ['*/*', 'application/json', 'application/json, text/html', '']) {
      const root = await get('/', { accept });
      expect([root.status, root.headers.get('location')], accept).to.deep.equal([302, '/docs/']);
      expect((await get('/customers', { accept })).body.code, accept).to.equal('not_found');
    }
    expect((await get('/sign-in', { accept: CHROMIUM }, 'POST')).status).to.equal(404);
  });

  it('has no file outside of its build, and no browser stores such an answer', async () => {
    for (const path of [
      '/assets/..',
      '/assets/.',
      '/assets/../index.html',
      '/assets/..%2findex.html',
      '/assets/%2e%2e/secret.json',
      '/assets/..%5csecret.json',
      '/assets//etc/passwd',
      '/secret.json',
    ]) {
      // `fetch` resolves dots in a path before it sends the request.
      const sent = request(`${api.url}/`, { path });
      sent.end();
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      response.resume();
      expect(response.statusCode, path).to.equal(404);
      expect(response.headers['cache-control'] ?? '', path).to.not.contain('max-age');
    }
  });

  it('has files that a browser stores for a year, as small as it can read them', async () => {
    const path = '/assets/app-1a2b3c4d.js';
    for (const [accepted, encoding, length] of [
      ['gzip, deflate, br', 'br', brotliCompressSync(SCRIPT).length],
      ['gzip', 'gzip', gzipSync(SCRIPT).length],
      ['br;q=0, gzip;q=0', null, SCRIPT.length],
      ['identity', null, SCRIPT.length],
    ] as const) {
      const { status, headers } = await get(path, { 'accept-encoding': accepted });
      expect(status).to.equal(200);
      expect(headers.get('content-encoding'), accepted).to.equal(encoding);
      expect(headers.get('content-length'), accepted).to.equal(String(length));
      expect(Object.fromEntries(headers)).to.include({
        'content-type': 'text/javascript; charset=utf-8',
        'cache-control': 'public, max-age=31536000, immutable',
        'x-content-type-options': 'nosniff',
      });
      expect(headers.get('vary')).to.contain('Accept-Encoding');
    }
    const etag = (await get(path, { 'accept-encoding': 'br' })).headers.get('etag')!;
    expect((await get(path, { 'accept-encoding': 'br', 'if-none-match': etag })).status).to.equal(304);
    const small = await get('/assets/small-1a2b3c4d.css', { 'accept-encoding': 'br' });
    expect([small.status, small.headers.get('content-encoding'), small.text]).to.deep.equal([200, null, 'a{}']);
    const icon = await get('/mark.svg');
    expect([icon.status, icon.headers.get('content-type'), icon.headers.get('cache-control')]).to.deep.equal([
      200,
      'image/svg+xml',
      'public, max-age=3600',
    ]);
  });

  it('serves nothing else of its folder and none beside it', async () => {
    for (const path of [
      '/secret.json',
      '/assets/..%2findex.html',
      '/assets/%2e%2e/secret.json',
      '/assets/../../package.json',
      '/assets/.hidden',
      '/package.json',
      '/assets',
    ]) {
      const { status, text } = await get(path);
      expect(status, path).to.be.oneOf([400, 404]);
      expect(text, path).to.contain('"code"');
    }
  });

  it('is a page that reloads itself until it is built, and one that says so if that failed', async () => {
    found = { why: 'building' };
    const building = await open('/env/env_1');
    expect([building.status, building.headers.get('retry-after')]).to.deep.equal([503, '2']);
    expect(building.text).to.contain('<meta http-equiv="refresh" content="2">').and.contain('is being built');
    // A refresh alone stays in the document if the address has a fragment, as the one-time link does.
    const nonce = /<script nonce="([^"]+)">setTimeout\(\(\) => location.reload\(\), 2000\)<\/script>/.exec(
      building.text,
    )?.[1];
    expect(building.headers.get('content-security-policy'))
      .to.contain("default-src 'none'")
      .and.contain(`script-src 'self' 'nonce-${nonce}';`);
    expect((await api.request('GET', '/users/me')).status).to.equal(200);
    expect((await get('/')).status).to.equal(302);
    found = { why: 'failed' };
    const failed = await open('/');
    expect([failed.status, failed.headers.get('retry-after')]).to.deep.equal([503, null]);
    const lines = api.logged().trim().split('\n');
    const levels = lines.map((line) => JSON.parse(line)).filter(({ http_status }) => http_status === 503);
    // Nobody has to do anything about a console that is being built.
    expect(levels.map(({ level }) => pino.levels.labels[level])).to.deep.equal(['warn', 'error']);
    expect(failed.text).to.contain('could not be built').and.not.contain('refresh');
    expect((await get('/assets/app-1a2b3c4d.js')).status).to.equal(404);
    // A process that does not build has the answers of an API.
    found = { why: 'absent' };
    expect((await open('/')).status).to.equal(302);
    expect((await open('/sign-in')).status).to.equal(404);
  });

  it('is the new one as soon as there is one', async () => {
    const next = mkdtempSync(join(tmpdir(), 'farthing-console-'));
    writeFileSync(join(next, 'index.html'), '<!doctype html>next');
    found = { folder: next };
    expect((await open('/')).text).to.equal('<!doctype html>next');
    rmSync(next, { recursive: true });
  });

  it('is there only where CONSOLE says so', async () => {
    expect(() => readConfig({ CONSOLE: 'internal' })).to.throw('INTERNAL_PORT: is required');
    for (const config of [{ CONSOLE: 'off' }, { CONSOLE: 'internal', INTERNAL_PORT: '1' }] as Record<
      string,
      string
    >[]) {
      const other = await startTestApi({ config, console: { find: () => ({ folder }) } });
      expect((await open('/', other.url)).status).to.equal(302);
      expect((await open('/sign-in', other.url)).status).to.equal(404);
      expect((await open('/assets/app-1a2b3c4d.js', other.url)).status).to.equal(404);
      await other.stop();
    }
  });
});
