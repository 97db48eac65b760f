/** Bytes of the first page of the console, the origin of all that it loads, and the styles of its components. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Request } from 'playwright-core';
import { findConsoleFolder, ROOT } from '../../../process/console-files.ts';
import { type ConsoleApp, declareTests, startConsole, waitUntilShown } from '../../support/console.ts';

const SCRIPT_BYTES_MAX = 220 * 1024;
const START_BYTES_MAX = 60 * 1024;
/** Class of a component of the library, or a function of React DOM. */
const LATER = /\bm_[\da-f]{6,8}\b|createRoot/;
const UNPACKED_BYTES_MAX = 1_500;

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
    // A file of a few hundred bytes is not packed.
    for (const [at, { responseBodySize }] of sizes.entries()) {
      const { 'content-encoding': encoding } = (await scripts[at]!.response())!.headers();
      if (responseBodySize > UNPACKED_BYTES_MAX) expect(encoding, scripts[at]!.url()).to.be.oneOf(['br', 'gzip']);
    }
    expect(bytes).to.be.below(SCRIPT_BYTES_MAX);
    expect(new Set(requests.map((request) => new URL(request.url()).host))).to.deep.equal(
      new Set([new URL(app.url).host]),
    );
    const html = await (await fetch(app.url, { headers: { accept: 'text/html' } })).text();
    expect([...html.matchAll(/<script(?![^>]*\bsrc=)/g)]).to.deep.equal([]);
    expect(html).to.not.match(/<style|\son\w+=|javascript:/);
  });

  it('starts the router without React DOM and the components, in at most 60 KB of packed scripts', () => {
    const folder = findConsoleFolder(ROOT)!;
    const html = readFileSync(join(folder, 'index.html'), 'utf8');
    const [, entry] = /<script type="module"[^>]* src="\/assets\/([^"]+)"/.exec(html)!;
    const start = listImported(join(folder, 'assets'), entry!);
    const sizes = [...start].map((file) => measureSent(join(folder, 'assets', file)));
    expect(sizes.reduce((sum, bytes) => sum + bytes, 0)).to.be.below(START_BYTES_MAX);
    for (const file of start) expect(readFileSync(join(folder, 'assets', file), 'utf8'), file).to.not.match(LATER);
  });

  it('has the styles of each component of the library that it uses', () => {
    const folder = join(findConsoleFolder(ROOT)!, 'assets');
    const readAll = (ending: string) =>
      readdirSync(folder)
        .filter((name) => name.endsWith(ending))
        .map((name) => readFileSync(join(folder, name), 'utf8'))
        .join('\n');
    const listClasses = (text: string) => new Set(text.match(/\bm_[\da-f]{6,8}\b/g));
    const styled = listClasses(readAll('.css'));
    const known = listClasses(readFileSync(join(ROOT, 'node_modules/@mantine/core/styles.css'), 'utf8'));
    const used = [...listClasses(readAll('.js'))].filter((name) => known.has(name));
    expect(used.length).to.be.above(20);
    expect(used.filter((name) => !styled.has(name))).to.deep.equal([]);
  });
});

/** Bytes that a browser gets: those of the compressed file that the build writes, or of the file if it is small. */
function measureSent(file: string): number {
  const packed = `${file}.br`;
  return statSync(existsSync(packed) ? packed : file).size;
}

/** The file and all that it imports before it runs. */
function listImported(folder: string, file: string, found = new Set<string>()): Set<string> {
  if (found.has(file)) return found;
  found.add(file);
  const imports = readFileSync(join(folder, file), 'utf8').matchAll(/(?:from|import)\s*["']\.\/([\w.-]+\.js)["']/g);
  for (const [, imported] of imports) listImported(folder, imported!, found);
  return found;
}
