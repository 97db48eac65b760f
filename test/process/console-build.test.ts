/** The build of the console, by the real vite on a console of two files. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { buildConsole } from '../../process/console-build.ts';
import { findConsoleFolder, isConsoleCurrent } from '../../process/console-files.ts';
import { findBuiltConsole, type StartedConsole, startConsoleBuild } from '../../process/console-source.ts';
import { until } from '../support/until.ts';

const LONG = `export const WORDS = ${JSON.stringify('a word of the console '.repeat(200))};\n`;

describe('the build of the console', function () {
  this.timeout(60_000);
  let root: string;
  const running: StartedConsole[] = [];
  const write = (path: string, text: string) => {
    mkdirSync(join(root, path, '..'), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  const listBuilds = () => readdirSync(join(root, 'console-dist')).sort();
  const readAssets = (folder: string) => readdirSync(join(folder, 'assets')).sort();

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'farthing-console-'));
    write('console/index.html', '<!doctype html><div id="root"></div><script type="module" src="/main.ts"></script>');
    write(
      'console/main.ts',
      "import { WORDS } from './words.ts';\nimport { SUM } from '../core/sum.ts';\ndocument.title = WORDS + SUM;\n",
    );
    write('console/words.ts', LONG);
    write('console/vite.config.ts', 'export default { root: import.meta.dirname };\n');
    write('core/sum.ts', 'export const SUM: string = "2";\n');
    write('core/other.ts', 'export const OTHER = 1;\n');
    write('package-lock.json', '{"packages":{}}');
  });
  afterEach(async () => {
    for (const one of running.splice(0)) await one.stop();
    chmodSync(root, 0o700);
    rmSync(root, { recursive: true, force: true });
  });

  it('has the page, its files, and each of them compressed', async () => {
    expect(findConsoleFolder(root)).to.equal(undefined);
    expect(await buildConsole(root)).to.equal(true);
    const folder = findConsoleFolder(root)!;
    expect(existsSync(join(folder, 'index.html'))).to.equal(true);
    const names = readAssets(folder);
    expect(names.map((name) => name.replace(/-[\w-]{8}\./, '-HASH.'))).to.deep.equal([
      'index-HASH.js',
      'index-HASH.js.br',
      'index-HASH.js.gz',
    ]);
    const [plain, brotli, gzip] = names.map((name) => readFileSync(join(folder, 'assets', name)));
    expect(brotliDecompressSync(brotli!).equals(plain!)).to.equal(true);
    expect(gunzipSync(gzip!).equals(plain!)).to.equal(true);
    expect(brotli!.length).to.be.below(plain!.length / 5);
    expect(listBuilds()).to.have.length(2).and.include('current.json');
  });

  it('is made again after a change of what it is made of, and of nothing else', async () => {
    await buildConsole(root);
    const first = findConsoleFolder(root);
    expect(await buildConsole(root)).to.equal(false);
    write('core/other.ts', 'export const OTHER = 2;\n');
    write('console/client/openapi.d.ts', 'export type paths = object;\n');
    expect(isConsoleCurrent(root)).to.equal(true);
    const CHANGES: [path: string, text: string][] = [
      ['console/words.ts', LONG.replace('word', 'name')],
      ['core/sum.ts', 'export const SUM: string = "3";\n'],
      ['package-lock.json', '{"packages":{"":{}}}'],
      ['console/new.ts', ''],
    ];
    for (const [path, text] of CHANGES) {
      write(path, text);
      expect(isConsoleCurrent(root), path).to.equal(false);
      expect(await buildConsole(root), path).to.equal(true);
    }
    rmSync(join(root, 'console/new.ts'));
    expect(isConsoleCurrent(root)).to.equal(false);
    // That before remains for a process that serves it; the older ones are gone.
    expect(existsSync(first!)).to.equal(false);
    expect(listBuilds()).to.have.length(3);
  });

  it('leaves the previous one as it was if it fails', async () => {
    await buildConsole(root);
    const folder = findConsoleFolder(root);
    const before = listBuilds();
    write('console/main.ts', "import './nothing.ts';\n");
    const failure = await buildConsole(root).catch((error: unknown) => error);
    expect(String(failure)).to.contain('nothing.ts');
    expect([findConsoleFolder(root), listBuilds()]).to.deep.equal([folder, before]);
  });

  it('counts as missing if its files are', async () => {
    await buildConsole(root);
    rmSync(join(findConsoleFolder(root)!, 'index.html'));
    expect([findConsoleFolder(root), isConsoleCurrent(root)]).to.deep.equal([undefined, false]);
    write('console-dist/current.json', 'no JSON');
    expect(findConsoleFolder(root)).to.equal(undefined);
  });

  describe('of npm start', () => {
    /** Lines of the log. */
    const faults: string[] = [];
    const logger = { error: ({ reason }: { reason: string }, text: string) => void faults.push(`${text}: ${reason}`) };
    const start = () => {
      const started = startConsoleBuild({ logger: logger as never, root, script: join(root, 'build.ts') });
      running.push(started);
      return started;
    };
    /** The child process builds this root in place of the repository. */
    const module = JSON.stringify(join(import.meta.dirname, '../../process/console-build.ts'));
    const script = (code: string) =>
      write(
        'build.ts',
        `import { buildConsole } from ${module};\nprocess.once('disconnect', () => process.exit(1));\n${code}`,
      );

    beforeEach(() => {
      faults.length = 0;
      script(`await buildConsole(${JSON.stringify(root)});\nprocess.exit(0);\n`);
    });

    it('is made in a child process, and served when it is there', async () => {
      const started = start();
      expect(started.find()).to.deep.equal({ why: 'building' });
      await until('it is built', async () => started.find().folder !== undefined);
      expect(started.find()).to.deep.equal({ folder: findConsoleFolder(root) });
      expect(start().find()).to.deep.equal(started.find());
      expect(faults).to.deep.equal([]);
    });

    it('hides a stale one while the new one is made', async () => {
      await buildConsole(root);
      write('console/words.ts', LONG.replace('word', 'name'));
      expect(findBuiltConsole(root).find().folder).to.be.a('string');
      const started = start();
      expect(started.find()).to.deep.equal({ why: 'building' });
      await until('it is built', async () => started.find().folder !== undefined);
    });

    it('is one line in the log if it fails', async () => {
      write('console/main.ts', "import './nothing.ts';\n");
      const started = start();
      await until('it has failed', async () => JSON.stringify(started.find()) === '{"why":"failed"}');
      expect(faults).to.have.length(1);
      expect(faults[0]).to.match(/^the console could not be built: run npm run console: .*nothing\.ts/);
      expect(faults[0]).to.not.contain('\n');
    });

    it('is stopped with the service, without a fault and without a trace', async () => {
      script('setInterval(() => {}, 1000);\n');
      const started = start();
      await started.stop();
      expect(faults).to.deep.equal([]);
      expect(existsSync(join(root, 'console-dist'))).to.equal(false);
    });

    it('is not made without sources', async () => {
      await buildConsole(root);
      const folder = findConsoleFolder(root)!;
      rmSync(join(root, 'console'), { recursive: true });
      expect(start().find()).to.deep.equal({ folder });
      rmSync(join(root, 'console-dist'), { recursive: true });
      expect(start().find()).to.deep.equal({ why: 'absent' });
      expect(faults).to.deep.equal([]);
    });
  });
});
