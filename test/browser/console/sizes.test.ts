/** Bytes of the first page of the console, and the origin of all that it loads. */
import { expect } from 'chai';
import type { Request } from 'playwright-core';
import { type ConsoleApp, declareTests, startConsole, waitUntilShown } from '../../support/console.ts';

const SCRIPT_BYTES_MAX = 220 * 1024;

describe('the first page of the console', function () {
  this.timeout(240_000);
  let app: ConsoleApp;
  before(async () => {
    app = await startConsole();
  });
  after(() => app?.stop());
  const test = declareTests(() => app);

  test('loads at most 220 KB of packed scripts, all of this host, with nothing inline', async () => {
    const { page } = await app.open('/');
    await waitUntilShown(page);
    const requests: Request[] = [];
    page.on('requestfinished', (request) => requests.push(request));
    const client = await page.context().newCDPSession(page);
    await client.send('Network.setCacheDisabled', { cacheDisabled: true });
    await page.reload();
    await waitUntilShown(page);
    const scripts = requests.filter((request) => new URL(request.url()).pathname.endsWith('.js'));
    expect(scripts.length).to.be.above(1);
    const sizes = await Promise.all(scripts.map((request) => request.sizes()));
    const bytes = sizes.reduce((sum, { responseBodySize }) => sum + responseBodySize, 0);
    const packed = await Promise.all(
      scripts.map(async (request) => (await request.response())!.headers()['content-encoding']),
    );
    expect(new Set(packed)).to.not.include(undefined);
    expect(bytes).to.be.below(SCRIPT_BYTES_MAX);
    expect(new Set(requests.map((request) => new URL(request.url()).host))).to.deep.equal(
      new Set([new URL(app.url).host]),
    );
    const html = await (await fetch(app.url, { headers: { accept: 'text/html' } })).text();
    expect([...html.matchAll(/<script(?![^>]*\bsrc=)/g)]).to.deep.equal([]);
    expect(html).to.not.match(/<style|\son\w+=|javascript:/);
  });
});
