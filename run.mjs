// The launcher of `npm start`, `npm test` and the other scripts, each of which may be the first command in a fresh clone.
// It checks Node and the platform, installs the locked dependencies if they are missing or differ from the lock file, and
// runs the target in this process, so that Ctrl-C and exit codes are those of the target. The scripts use `exec`, because
// npm passes a signal to the shell, which without `exec` would end and leave Node running. This file is plain JavaScript
// without dependencies, in a syntax that an old Node can parse, so that it can report that Node is too old.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { availableParallelism, constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { formattedFiles } from './process/formatted-files.mjs';
import { formatHelp, hasNoOptions, overview } from './process/help.mjs';

const ROOT = dirname(fileURLToPath(import.meta.url));
const NODE_MODULES = join(ROOT, 'node_modules');
// Outside of node_modules, because `npm ci` first deletes that folder.
const INSTALL_LOCK = join(ROOT, '.installing');
const BEAT_MS = 1_000;
const NO_BEAT_MS = 10_000;

// Target of each script. `stores`: it may start the embedded stores, so the platform is checked unless the addresses of
// Postgres and ClickHouse are set. `settings`: .env is read. `dev`: it needs the development dependencies. Scripts that
// ingest events run node with the flags of process/node.sh (package.json).
const SCRIPTS = {
  start: { file: 'main.ts', stores: true, settings: true },
  demo: { file: 'demo.ts', stores: true },
  dev: { run: dev, stores: true, settings: true },
  api: { file: 'api/main.ts', settings: true },
  pipeline: { file: 'pipeline/main.ts', settings: true },
  scheduler: { file: 'scheduler/main.ts', settings: true },
  migrate: { file: 'sql/migrate.ts', settings: true },
  audit: { file: 'commands/audit.ts', stores: true, settings: true },
  partitions: { file: 'commands/partitions.ts', stores: true, settings: true },
  tenants: { file: 'commands/tenants.ts', stores: true, settings: true },
  console: { file: 'process/console-build.ts' },
  // One file that also runs where it was copied to, so nothing is installed for it.
  'verify-invoice': { file: 'commands/verify-invoice.mjs', alone: true },
  check: { run: check, dev: true },
  fix: { run: fix, dev: true },
  test: {
    run: (args) => mocha(args.length ? args : [...SIDE_BY_SIDE, ...filesOf('test', APART)]),
    stores: true,
    dev: true,
  },
  'test:product': { run: product, stores: true, dev: true },
  'test:kafka': {
    run: (args) => mocha(args.length ? args : [...ON_KAFKA, ...filesOf('test/kafka')]),
    stores: true,
    dev: true,
  },
  chaos: { file: 'test/chaos/main.ts', stores: true, dev: true },
  bench: { file: 'bench/main.ts', stores: true, dev: true },
  house: { file: 'test/support/house.ts', dev: true },
};

// Tests that `npm test` runs only if they are named, as in `npm test -- test/chaos`. test/kafka and test/pdfua need Java and Maven,
// test/spreadsheet LibreOffice, test/chart Helm, test/browser Chromium, test/doubles a Python package, test/collector a collector of
// OpenTelemetry. test/chaos and test/faults take many minutes: they kill processes and break stores, or need the machine for
// themselves. The others take some minutes: test/start and test/commands start the commands as a user does, each with its own stores;
// test/long simulates years, fills lists with ten thousand records, sends malformed requests, and runs many random histories.
const APART = [
  'test/kafka/',
  'test/chaos/',
  'test/faults/',
  'test/start/',
  'test/commands/',
  'test/spreadsheet/',
  'test/pdfua/',
  'test/chart/',
  'test/browser/',
  'test/doubles/',
  'test/collector/',
  'test/long/',
];
// Test files that start first, the longest at the front. If one of them started last, the other processes would idle until it ends.
const FIRST = [
  'test/kafka/chaos.test.ts',
  'test/kafka/story.test.ts',
  'test/kafka/log.test.ts',
  'test/kafka/processes.test.ts',
  'test/kafka/broker.test.ts',
  'test/storage/log/embedded/leases.test.ts',
  'test/storage/log/embedded/lease-thread.test.ts',
  'test/tracing/traces.test.ts',
];
// Tests of the behaviour that a customer sees, for use during development: rules, worked examples, requests and answers of each route, and
// a story for each rule. One of fifty random cases and of fifty listed ones runs. No process is killed and no store is broken. `npm test`
// also tests the interaction of rules and races (test/combined), imported and exported files (test/files), and the OpenAPI document and its
// page (test/interface). The longest folder starts first.
const PRODUCT = ['test/examples', 'test/scenarios', 'test/api', 'test/core'];
// Runs test files in up to four processes, each with its own stores. There is one process more than cores, because a test
// waits half of its time for a disk or for a child process.
const SIDE_BY_SIDE = ['--parallel', '--jobs', String(Math.min(4, availableParallelism() + 1))];
// Tests on Kafka mostly wait: for brokers to start, and for the sessions of killed processes to expire. Each may have three brokers.
const ON_KAFKA = ['--parallel', '--jobs', '2'];

// Share of the random cases that run during development (test/support/samples.ts); `npm test` runs all of them.
const LAW_SAMPLES = '0.02';

// Checks that `npm run check` runs concurrently: none of them changes a file, and each ends within seconds.
const CHECKS = [
  ['format', 'node_modules/@biomejs/biome/bin/biome', () => ['check', ...formattedFiles(ROOT)]],
  // One process reads the sources once for the linter and for TypeScript's own compiler.
  [
    'lint and types',
    'node_modules/oxlint/bin/oxlint',
    ['-c', 'oxlint.config.mjs', '--type-aware', '--type-check', '.'],
    // The compiler is written in Go and runs for seconds. Garbage collection took a third of its time, so it now starts at 3 GB, which the
    // compiler just reaches. It uses all cores, although its threads then compute common types twice, to end no later than the core tests.
    { GOGC: 'off', GOMEMLIMIT: '3GiB', GOMAXPROCS: String(availableParallelism()) },
  ],
  [
    'core tests',
    'node_modules/mocha/bin/mocha.js',
    ['--reporter', 'dot', 'test/core/**/*.test.ts', 'test/tidy.test.ts'],
    { LAW_SAMPLES },
  ],
];

// npm has printed the reason, or a signal ended it, so this error is not printed.
class InstallFailed extends Error {
  constructor(code) {
    super(`npm ended with ${code}`);
    this.code = code;
  }
}

main(process.argv[2], process.argv.slice(3)).catch((error) => {
  if (!(error instanceof InstallFailed)) console.error(error);
  process.exit(error instanceof InstallFailed && error.code > 128 ? error.code : 1);
});

async function main(name, args) {
  checkNode();
  const script = Object.hasOwn(SCRIPTS, name || '') ? SCRIPTS[name] : undefined;
  if (isHelp(name)) return console.log(overview());
  if (!script) leave(`Scripts: ${Object.keys(SCRIPTS).join(', ')}. Run one of them with npm run <script>.`);
  if (args.some(isHelp)) return console.log(formatHelp(name));
  if (args.length > 0 && hasNoOptions(name)) leave(`${name}: takes no options, and this is one: ${args[0]}`, 2);
  process.chdir(ROOT);
  if (script.settings && existsSync('.env')) process.loadEnvFile('.env');
  if (script.stores && !addressesAreSet()) checkPlatform();
  if (!script.alone) await installWhenNeeded(script.dev === true);
  if (script.run) await script.run(args);
  else if (script.alone) await runAlone(script.file, args);
  else await runFile(script.file, args);
}

function isHelp(arg) {
  return arg === '--help' || arg === '-h';
}

async function runFile(file, args) {
  if (!existsSync(file)) leave(`${file} is not there.`);
  await import('./process/typescript.mjs');
  process.argv = [process.argv[0], join(ROOT, file), ...args];
  await import(pathToFileURL(file).href);
}

// Runs a file without dependencies in the folder of the caller, to which the paths in its arguments are relative.
async function runAlone(file, args) {
  if (process.env.INIT_CWD) process.chdir(process.env.INIT_CWD);
  process.argv = [process.argv[0], join(ROOT, file), ...args];
  await import(pathToFileURL(process.argv[1]).href);
}

// Runs a child process and passes signals on to it: a terminal signals the child as well, a supervisor does not, and a second one changes
// nothing. With `leaves_ms`, the child is killed so long after a signal, and its exit code after a signal is always that of the signal.
function inChild(args, { command = process.execPath, shell = false, leaves_ms } = {}) {
  const child = spawn(command, args, { stdio: 'inherit', shell });
  let told;
  let patience;
  const tell = (signal) => {
    child.kill(signal);
    told ??= signal;
    if (leaves_ms !== undefined) patience ??= setTimeout(() => child.kill('SIGKILL'), leaves_ms);
  };
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, tell);
  return new Promise((resolve) => {
    child.on('error', ({ message }) => leave(`${command} could not be started (${message}): is Node installed whole?`));
    child.on('exit', (code, signal) => {
      // After a signal the handlers remain, because a further signal would end this process before it has cleaned up.
      if (!told) for (const each of ['SIGINT', 'SIGTERM']) process.off(each, tell);
      clearTimeout(patience);
      // npm may exit with 0 or 1 after a signal.
      if (told && leaves_ms !== undefined) resolve(128 + constants.signals[told]);
      else resolve(code ?? 128 + constants.signals[signal]);
    });
  });
}

// An argument that is a folder stands for the tests in it. All others go to mocha unchanged: --grep, --bail, a path.
async function mocha(args) {
  const isFolder = (arg) => !arg.startsWith('-') && existsSync(arg) && statSync(arg).isDirectory();
  const given = args.map((arg) => (isFolder(arg) ? `${arg.replace(/\/+$/, '')}/**/*.test.ts` : arg));
  process.argv = [process.argv[0], join(NODE_MODULES, 'mocha/bin/mocha.js'), ...given];
  await import(pathToFileURL(process.argv[1]).href);
}

/** The test files below a folder in the order in which they start, without those whose path begins with one of `apart`. */
function filesOf(folder, apart = []) {
  for (const file of FIRST) if (!existsSync(file)) leave(`${file} is not there.`);
  const found = readdirSync(folder, { recursive: true })
    .map((name) => join(folder, name))
    .filter((file) => file.endsWith('.test.ts') && !apart.some((other) => file.startsWith(other)));
  const first = FIRST.filter((file) => found.includes(file));
  return [...first, ...found.filter((file) => !first.includes(file)).sort()];
}

async function product(args) {
  process.env.LAW_SAMPLES ??= LAW_SAMPLES;
  await mocha([...SIDE_BY_SIDE, ...PRODUCT, ...args]);
}

// Starts main.ts again whenever one of its files changes.
async function dev(args) {
  process.exit(await inChild(['--watch', '--import', './process/typescript.mjs', 'main.ts', ...args]));
}

async function check() {
  await writeConsoleTypes();
  const results = await Promise.all(
    CHECKS.map(([what, bin, args, env]) => quietly(what, [bin, ...(Array.isArray(args) ? args : args())], env)),
  );
  for (const { output } of results.filter(({ ok }) => !ok)) process.stdout.write(output);
  for (const { what, ok, seconds } of results) console.log(`${ok ? 'ok    ' : 'failed'} ${what} (${seconds} s)`);
  if (results.some(({ ok }) => !ok)) process.exitCode = 1;
}

// The console is typed by the OpenAPI document of the API, so its types are made before types are checked: not again while the document
// is the same. The generator needs the programming interface of TypeScript 5.
async function writeConsoleTypes() {
  const folder = join(NODE_MODULES, '.cache', 'console');
  const [document, checked, types] = ['openapi.json', 'typed.json', 'openapi.d.ts'].map((name) => join(folder, name));
  const target = join(ROOT, 'console', 'client', 'openapi.d.ts');
  mkdirSync(folder, { recursive: true });
  await runWell(['--import', './process/typescript.mjs', 'api/openapi-file.ts', document]);
  const text = readFileSync(document, 'utf8');
  if (existsSync(target) && existsSync(checked) && readFileSync(checked, 'utf8') === text) return;
  const loader = pathToFileURL(join(ROOT, 'process', 'typescript-5.mjs')).href;
  const register = `data:text/javascript,import{register}from'node:module';register(${JSON.stringify(loader)})`;
  await runWell(['--import', register, 'node_modules/openapi-typescript/bin/cli.js', document, '-o', types]);
  renameSync(types, target);
  renameSync(document, checked);
}

async function runWell(args) {
  const { ok, output } = await quietly(args[0], args);
  if (ok) return;
  process.stdout.write(output);
  leave(`failed: ${args.join(' ')}`);
}

async function fix() {
  const [, biome] = CHECKS[0];
  const [, oxlint] = CHECKS[1];
  const linted = await quietly('lint', [oxlint, '-c', 'oxlint.config.mjs', '--fix', '.']);
  const formatted = await quietly('format', [biome, 'check', '--write', ...formattedFiles(ROOT)]);
  for (const { ok, output } of [linted, formatted]) if (!ok) process.stdout.write(output);
  if (!linted.ok || !formatted.ok) process.exitCode = 1;
}

function quietly(what, args, env = {}) {
  const started = Date.now();
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...(process.stdout.isTTY ? { FORCE_COLOR: '1' } : {}), ...env, ...process.env },
  });
  const chunks = [];
  child.stdout.on('data', (chunk) => chunks.push(chunk));
  child.stderr.on('data', (chunk) => chunks.push(chunk));
  return new Promise((resolve) => {
    child.on('close', (code) => {
      const seconds = ((Date.now() - started) / 1000).toFixed(1);
      resolve({ what, ok: code === 0, seconds, output: Buffer.concat(chunks) });
    });
  });
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  leave(
    `Farthing needs Node 20.19 or newer, and this is ${process.versions.node}: take 22 or 24 from https://nodejs.org.`,
  );
}

function addressesAreSet() {
  return Boolean(process.env.DATABASE_URL && process.env.CLICKHOUSE_URL);
}

// Reports an unsupported platform before hundreds of megabytes are installed in vain; the stores check it again.
function checkPlatform() {
  const { platform, arch } = process;
  const system = platform === 'darwin' || (platform === 'linux' && !isMusl());
  if (system && (arch === 'x64' || arch === 'arm64')) return;
  const here = `${platform}${isMusl() ? ' without glibc' : ''} ${arch}`;
  leave(
    `The built-in Postgres and ClickHouse need Linux with glibc or macOS on x64 or arm64, and this is ${here}: ` +
      'use docker compose, or set DATABASE_URL and CLICKHOUSE_URL to servers of your own.',
  );
}

function isMusl() {
  return process.platform === 'linux' && !process.report.getReport().header.glibcVersionRuntime;
}

async function installWhenNeeded(dev) {
  if (isInstalled(dev)) return;
  const release = await takeInstallLock();
  try {
    if (isInstalled(dev)) return; // Another launcher did it while we waited.
    console.log('Installing the locked dependencies into node_modules; this is needed once and takes a minute or two.');
    const hideProgress = showProgress();
    const code = await npm(['ci', ...(dev ? ['--include=dev'] : [])]).finally(hideProgress);
    const isBrokenOff = code > 128;
    if (isBrokenOff) process.stdout.write(process.stdout.isTTY ? SHOW_CURSOR : '');
    if (isBrokenOff) console.log('Stopped in the installation; what was half there is taken away again.');
    // An incomplete installation is removed. npm deletes its old record (.package-lock.json) meanwhile and writes the new one last.
    if (isBrokenOff || (code !== 0 && !readJson(join(NODE_MODULES, '.package-lock.json'))))
      rmSync(NODE_MODULES, { recursive: true, force: true });
    if (code !== 0) throw new InstallFailed(code);
  } finally {
    release();
  }
}

// npm prints nothing until its end, so the packages that have arrived are counted: in one line of a terminal, else in a line for each tenth.
function showProgress() {
  const wanted = Object.entries(readJson(join(ROOT, 'package-lock.json')).packages)
    .filter(([path, locked]) => path !== '' && isForThisPlatform(locked))
    .map(([path]) => join(ROOT, path, 'package.json'));
  const { isTTY } = process.stdout;
  let shown = 0;
  const timer = setInterval(() => {
    const arrived = wanted.filter((file) => existsSync(file)).length;
    // npm first deletes an earlier installation.
    if (arrived < shown) shown = 0;
    if (arrived === shown || (!isTTY && arrived - shown < wanted.length / 10)) return;
    shown = arrived;
    const line = `  ${arrived} of ${wanted.length} packages`;
    process.stdout.write(isTTY ? `\r${line}` : `${line}\n`);
  }, PROGRESS_MS);
  return () => {
    clearInterval(timer);
    if (isTTY && shown > 0) process.stdout.write('\n');
  };
}

const PROGRESS_MS = 500;

function isForThisPlatform({ os, cpu, libc }) {
  const own = isMusl() ? 'musl' : 'glibc';
  const fits = (list, name) => !list || list.includes(name);
  return fits(os, process.platform) && fits(cpu, process.arch) && (process.platform !== 'linux' || fits(libc, own));
}

// npm hides the cursor while its spinner runs, and a killed npm leaves it hidden.
const SHOW_CURSOR = '\x1b[?25h';

// After this time npm is killed: it reacts to a signal only between its steps, one of which takes most of a minute.
const NPM_LEAVES_MS = 1_000;

// npm records the packages in node_modules in the format of the lock file; the record must agree with the lock file.
function isInstalled(dev) {
  const locked = readJson(join(ROOT, 'package-lock.json'));
  const installed = readJson(join(NODE_MODULES, '.package-lock.json'));
  if (!locked) leave('package-lock.json is missing or broken: take it from the repository again.');
  if (!installed) return false;
  return Object.entries(locked.packages).every(([path, wanted]) => {
    if (path === '' || (wanted.dev && !dev)) return true;
    const found = installed.packages[path];
    if (!found) return Boolean(wanted.optional || wanted.devOptional || wanted.peer);
    // For packages of other platforms the lock file has no hash if the registry that it was made from lacked one.
    return found.version === wanted.version && (!wanted.integrity || found.integrity === wanted.integrity);
  });
}

function npm(args) {
  const cli = process.env.npm_execpath || '';
  const [command, ...first] = cli.endsWith('npm-cli.js') ? [process.execPath, cli] : ['npm'];
  const shell = process.platform === 'win32' && command === 'npm';
  return inChild([...first, ...args, '--no-audit', '--no-fund', '--no-progress', '--loglevel=error'], {
    command,
    shell,
    leaves_ms: NPM_LEAVES_MS,
  });
}

// Two launchers may start at once, also in two containers that share the sources and do not see each other's processes. Only one of
// them can create the directory; it then writes a beat into it each second. A launcher that sees no new beat takes the lock over. A lock of
// the kernel would need a package, which is not installed yet.
async function takeInstallLock() {
  const holder = join(INSTALL_LOCK, randomUUID());
  for (let seen, is_told = false; ; ) {
    try {
      mkdirSync(INSTALL_LOCK);
      return holdInstallLock(holder);
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    const beat = lastBeat(INSTALL_LOCK);
    // Only the clock of this process counts: that of the other machine, or of the disk, may differ.
    if (seen?.beat !== beat) seen = { beat, at: performance.now() };
    if (performance.now() - seen.at > NO_BEAT_MS) takeAway(INSTALL_LOCK, beat);
    else if (!is_told) console.log('Another process is installing the dependencies; waiting for it.');
    is_told = true;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

function holdInstallLock(holder) {
  let beats = 0;
  writeFileSync(holder, '0');
  const beat = () => {
    try {
      writeFileSync(holder, String(++beats), { flag: 'r+' });
    } catch {
      // Another launcher has taken the lock over, and installs again.
    }
  };
  const beating = setInterval(beat, BEAT_MS);
  return () => {
    clearInterval(beating);
    // A lock that another launcher has taken over belongs to that launcher.
    if (existsSync(holder)) rmSync(INSTALL_LOCK, { recursive: true, force: true });
  };
}

function lastBeat(lock) {
  try {
    return readdirSync(lock)
      .map((name) => `${name} ${readFileSync(join(lock, name), 'utf8')}`)
      .join();
  } catch {
    return ''; // The holder has just removed the lock.
  }
}

// If two launchers find the lock abandoned, the rename succeeds for one of them. If it has caught a newer lock, it restores that lock.
function takeAway(lock, beat) {
  const aside = `${lock}.${randomUUID()}`;
  try {
    renameSync(lock, aside);
    if (lastBeat(aside) === beat) rmSync(aside, { recursive: true, force: true });
    else renameSync(aside, lock);
  } catch (error) {
    if (error.code !== 'ENOENT' && error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
  }
}

function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

function leave(line, code = 1) {
  console.error(line);
  process.exit(code);
}
