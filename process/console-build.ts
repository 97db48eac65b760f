/**
 * `npm run console`, and the child process of the first `npm start`: builds the console by vite, compresses its files, and puts the finished
 * folder in its place by a rename. Several processes may build at once; each has a folder of its own until then.
 */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, gzip, constants as zlib } from 'node:zlib';
import type { Plugin } from 'vite';
import { HOUR_MS } from '../core/foundation/time/durations.ts';
import {
  type ConsoleBuild,
  computeBuildKey,
  getBuildFolder,
  isConsoleCurrent,
  ROOT,
  readConsoleBuild,
} from './console-files.ts';

/** Builds the console if its build is missing or stale. Returns whether it was built. */
export async function buildConsole(root: string): Promise<boolean> {
  if (isConsoleCurrent(root)) return false;
  const before = computeBuildKey(root, []);
  const target = getBuildFolder(root);
  mkdirSync(target, { recursive: true });
  const folder = join(target, `${UNFINISHED}${process.pid}`);
  const remove = () => rmSync(folder, { recursive: true, force: true });
  process.once('exit', remove);
  try {
    const sources = await runVite(root, folder);
    await compressFiles(folder);
    // A source was changed meanwhile, so the files may be of either state.
    if (computeBuildKey(root, []) !== before) return await buildConsole(root);
    const build = { key: computeBuildKey(root, sources), sources };
    const previous = readConsoleBuild(root);
    publishBuild(target, folder, build);
    // Another process may still serve the previous build.
    removeOldBuilds(target, [build.key, previous?.key]);
    return true;
  } finally {
    remove();
    process.off('exit', remove);
  }
}

const UNFINISHED = '.unfinished-';

/** Returns the sources outside of `console/` and of the packages. */
async function runVite(root: string, outDir: string): Promise<string[]> {
  // It is loaded here, because a process whose console is built does not need it.
  const { build } = await import('vite');
  const paths = new Set<string>();
  const collectSources: Plugin = {
    name: 'collect-sources',
    // A chunk does not name the modules whose constants it has inlined.
    buildEnd() {
      for (const id of this.getModuleIds()) paths.add(relative(root, id.split('?')[0]!).split(sep).join('/'));
    },
  };
  await build({
    configFile: join(root, 'console', 'vite.config.ts'),
    logLevel: 'silent',
    plugins: [collectSources],
    build: { outDir, emptyOutDir: true },
  });
  if (!existsSync(join(outDir, 'index.html'))) throw new Error('the build has no index.html');
  const own = [...paths].filter((path) => /^\w/.test(path) && !/^(?:console|node_modules)\//.test(path));
  return own.filter((path) => existsSync(join(root, path))).sort();
}

const COMPRESSED = /\.(?:js|css|svg|json|txt)$/;
/** A smaller file is one packet. */
const COMPRESSED_BYTES_MIN = 1024;

/** Writes `.br` and `.gz` beside each file of text: a server that compresses per request would use a weaker and slower setting. */
async function compressFiles(folder: string): Promise<void> {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name));
  const texts = files.filter((file) => COMPRESSED.test(file) && statSync(file).size >= COMPRESSED_BYTES_MIN);
  await Promise.all(
    texts.map(async (file) => {
      const content = await readFile(file);
      const params = { [zlib.BROTLI_PARAM_SIZE_HINT]: content.length };
      await writeFile(`${file}.br`, await promisify(brotliCompress)(content, { params }));
      await writeFile(`${file}.gz`, await promisify(gzip)(content, { level: 9 }));
    }),
  );
}

function publishBuild(target: string, folder: string, build: ConsoleBuild): void {
  // Another process may have made the same build.
  if (!existsSync(join(target, build.key))) renameSync(folder, join(target, build.key));
  const temporary = join(target, `${UNFINISHED}${process.pid}.json`);
  writeFileSync(temporary, JSON.stringify(build));
  renameSync(temporary, join(target, 'current.json'));
}

/** Age from which an unfinished build belongs to a process that was killed. */
const ABANDONED_MS = HOUR_MS;

function removeOldBuilds(target: string, used: readonly (string | undefined)[]): void {
  for (const name of readdirSync(target)) {
    const path = join(target, name);
    const isUnfinished = name.startsWith(UNFINISHED) && Date.now() - statSync(path).mtimeMs < ABANDONED_MS;
    if (name === 'current.json' || used.includes(name) || isUnfinished) continue;
    rmSync(path, { recursive: true, force: true });
  }
}

if (process.argv[1] === import.meta.filename) {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
  // The process that started this one has ended.
  if (process.connected) process.once('disconnect', () => process.exit(1));
  buildConsole(ROOT).then(
    (isBuilt) => {
      if (!process.connected) process.stdout.write(isBuilt ? 'the console is built\n' : 'the console is up to date\n');
      process.exit(0);
    },
    (error: unknown) => {
      process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
      process.exit(1);
    },
  );
}
