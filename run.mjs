// The launcher behind `npm start`, `npm test` and the other scripts: each of them may be the first command in a fresh
// clone. It checks Node and the platform, installs the locked dependencies when they are missing or other than the lock
// file says, and runs the target in this process, so that Ctrl-C and exit codes are the target's own.
// The scripts say `exec`: a signal to npm goes to the shell between, which would die of it and leave Node behind.
// Plain JavaScript without dependencies, in a syntax that an old Node can read far enough to be told that it is too old.
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
// Beside node_modules, which `npm ci` takes away first.
const INSTALL_LOCK = join(ROOT, '.installing');
const BEAT_MS = 1_000;
const NO_BEAT_MS = 10_000;

// What each script runs. `stores` starts the embedded Postgres and ClickHouse unless their addresses are set;
// `settings` reads .env; `dev` needs the development dependencies. The scripts that take in events run node with the flags
// of process/node.sh (package.json).
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
  // Runs as it is, wherever it was copied to.
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

// The tests against a real Kafka need Java and Maven, those with a spreadsheet LibreOffice, and those of doubles a package of Python, so they
// are asked for by name.
// Those that kill processes and break stores, or want the machine to themselves, take many minutes: `npm test -- test/chaos`,
// `npm test -- test/faults`. Those that start the commands as a user does, each with stores of its own, take some:
// `npm test -- test/start test/commands`; and so do those that play years, fill lists with ten thousand records, send spoilt requests, or go through many random
// histories: `npm test -- test/long`.
const APART = [
  'test/kafka/',
  'test/chaos/',
  'test/faults/',
  'test/start/',
  'test/commands/',
  'test/spreadsheet/',
  'test/doubles/',
  'test/long/',
];
// Given out first, the longest before all: begun as one of the last it would be waited for by processes that have nothing to do.
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
// What a customer sees, asked while one works: rules, worked examples, what each route takes and answers, and a story for each rule; of the random cases and of
// what is gone through one after the other one of fifty. No process is killed and no store broken. `npm test` has besides the rules that meet each other and races (test/combined),
// files that go in and out (test/files), and what the OpenAPI document and its page promise (test/interface).
// What takes longest is given out first.
const PRODUCT = ['test/examples', 'test/scenarios', 'test/api', 'test/core'];
// A file is run by one of these processes, each with stores of its own. One more than there are cores: half of its time a
// test waits for a disk or for a process that it has started.
const SIDE_BY_SIDE = ['--parallel', '--jobs', String(Math.min(4, availableParallelism() + 1))];
// On Kafka much of it is waited: for brokers that start, and for sessions of those who were killed to end. Each may have three brokers.
const ON_KAFKA = ['--parallel', '--jobs', '2'];

// Of the random cases one of fifty is tried while one works (test/support/samples.ts): `npm test` tries all of them.
const LAW_SAMPLES = '0.02';

// What `npm run check` asks at once: none of them changes a file, and all of them end within seconds.
const CHECKS = [
  ['format', 'node_modules/@biomejs/biome/bin/biome', () => ['check', ...formattedFiles(ROOT)]],
  // Both in one reading of the sources, with TypeScript's own compiler.
  [
    'lint and types',
    'node_modules/oxlint/bin/oxlint',
    ['-c', 'oxlint.config.mjs', '--type-aware', '--type-check', '.'],
    // The compiler is written in Go and lives for seconds: to collect its garbage took a third of its time, so it does from 3 GB on, which it just reaches.
    // As many threads as cores: types that are needed everywhere are made twice, and it ends with the core tests and not behind them.
    { GOGC: 'off', GOMEMLIMIT: '3GiB', GOMAXPROCS: String(availableParallelism()) },
  ],
  [
    'core tests',
    'node_modules/mocha/bin/mocha.js',
    ['--reporter', 'dot', 'test/core/**/*.test.ts', 'test/tidy.test.ts'],
    { LAW_SAMPLES },
  ],
];

// npm has said why, or was told to end.
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

// It takes files that the caller names from where the caller is, and no dependencies.
async function runAlone(file, args) {
  if (process.env.INIT_CWD) process.chdir(process.env.INIT_CWD);
  process.argv = [process.argv[0], join(ROOT, file), ...args];
  await import(pathToFileURL(process.argv[1]).href);
}

// Its signals are the child's: a terminal tells the child as well, a supervisor does not, and a second telling changes nothing.
// Where it does not go within `leaves_ms` of a signal it is killed, and its code is then that of the signal, however it went.
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
      // Once it was told, we are about to end as well, and one more would end us before what is half there is taken away.
      if (!told) for (const each of ['SIGINT', 'SIGTERM']) process.off(each, tell);
      clearTimeout(patience);
      // npm may end with 0 or 1 when it is told to end.
      if (told && leaves_ms !== undefined) resolve(128 + constants.signals[told]);
      else resolve(code ?? 128 + constants.signals[signal]);
    });
  });
}

// A folder stands for the tests in it. Everything else is mocha's own: --grep, --bail, a path.
async function mocha(args) {
  const isFolder = (arg) => !arg.startsWith('-') && existsSync(arg) && statSync(arg).isDirectory();
  const given = args.map((arg) => (isFolder(arg) ? `${arg.replace(/\/+$/, '')}/**/*.test.ts` : arg));
  process.argv = [process.argv[0], join(NODE_MODULES, 'mocha/bin/mocha.js'), ...given];
  await import(pathToFileURL(process.argv[1]).href);
}

/** The tests below a folder, in the order in which they are given out. */
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
  const results = await Promise.all(
    CHECKS.map(([what, bin, args, env]) => quietly(what, [bin, ...(Array.isArray(args) ? args : args())], env)),
  );
  for (const { output } of results.filter(({ ok }) => !ok)) process.stdout.write(output);
  for (const { what, ok, seconds } of results) console.log(`${ok ? 'ok    ' : 'failed'} ${what} (${seconds} s)`);
  if (results.some(({ ok }) => !ok)) process.exitCode = 1;
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

// Told before 900 MB are installed for nothing; the stores themselves check again.
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
    console.log('Installing the locked dependencies into node_modules; this is needed once and takes about a minute.');
    const code = await npm(['ci', ...(dev ? ['--include=dev'] : [])]);
    const isBrokenOff = code > 128;
    if (isBrokenOff) process.stdout.write(process.stdout.isTTY ? SHOW_CURSOR : '');
    if (isBrokenOff) console.log('Stopped in the installation; what was half there is taken away again.');
    // Half of the dependencies would be no use to anybody; npm writes its record last, and takes the old one away at some time.
    if (isBrokenOff || (code !== 0 && !readJson(join(NODE_MODULES, '.package-lock.json'))))
      rmSync(NODE_MODULES, { recursive: true, force: true });
    if (code !== 0) throw new InstallFailed(code);
  } finally {
    release();
  }
}

// npm hides the cursor behind its spinner.
const SHOW_CURSOR = '\x1b[?25h';

// npm looks at signals between its steps only, one of which takes most of the minute, and then takes all back by itself.
const NPM_LEAVES_MS = 1_000;

// npm keeps a record of what it put into node_modules, in the form of the lock file: the two must agree.
function isInstalled(dev) {
  const locked = readJson(join(ROOT, 'package-lock.json'));
  const installed = readJson(join(NODE_MODULES, '.package-lock.json'));
  if (!locked) leave('package-lock.json is missing or broken: take it from the repository again.');
  if (!installed) return false;
  return Object.entries(locked.packages).every(([path, wanted]) => {
    if (path === '' || (wanted.dev && !dev)) return true;
    const found = installed.packages[path];
    if (!found) return Boolean(wanted.optional || wanted.devOptional || wanted.peer);
    // Of packages for other platforms the lock file has no hash, where the registry that it was made from lacked them.
    return found.version === wanted.version && (!wanted.integrity || found.integrity === wanted.integrity);
  });
}

function npm(args) {
  const cli = process.env.npm_execpath || '';
  const [command, ...first] = cli.endsWith('npm-cli.js') ? [process.execPath, cli] : ['npm'];
  const shell = process.platform === 'win32' && command === 'npm';
  return inChild([...first, ...args, '--no-audit', '--no-fund', '--loglevel=error'], {
    command,
    shell,
    leaves_ms: NPM_LEAVES_MS,
  });
}

// Two launchers may start at once, also from two containers that share the sources, where neither sees the process of the other. A
// directory is made by one of them only, which then writes into it each second; who finds that this has stopped takes it over. A lock
// of the kernel would need a package, which is yet to be installed.
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
    // By our own clock: that of the other machine, or of the disk, may be another one.
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
      // It was taken away from us, and whoever did that installs again.
    }
  };
  const beating = setInterval(beat, BEAT_MS);
  return () => {
    clearInterval(beating);
    // One that somebody else has taken over is not ours to remove.
    if (existsSync(holder)) rmSync(INSTALL_LOCK, { recursive: true, force: true });
  };
}

function lastBeat(lock) {
  try {
    return readdirSync(lock)
      .map((name) => `${name} ${readFileSync(join(lock, name), 'utf8')}`)
      .join();
  } catch {
    return ''; // It has just gone.
  }
}

// Renaming decides between two who found it still; whoever caught another one puts it back.
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
