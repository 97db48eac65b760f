import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { checkPlatform, openDataDirectory } from '../../../storage/embedded/data-dir.ts';
import { processStart } from '../../../storage/embedded/process-start.ts';

const module = fileURLToPath(new URL('../../../storage/embedded/data-dir.ts', import.meta.url));
const NODE = ['--import', './process/typescript.mjs', '--input-type=module', '-e'];

describe('openDataDirectory', () => {
  let dir: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'farthing-dir-'));
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));
  const lock = () => join(dir, 'farthing.lock');
  const opening = `import { openDataDirectory } from ${JSON.stringify(module)}; openDataDirectory(process.argv[1]);`;

  it('makes the directory and gives it back', () => {
    const inner = join(dir, 'a', 'b');
    const first = openDataDirectory(inner);
    expect(() => openDataDirectory(inner)).to.throw(`The data directory ${inner} is in use by process ${process.pid}`);
    first.release();
    openDataDirectory(inner).release();
  });

  it('names the process that holds it', async () => {
    const script = `${opening} console.log('holding'); setInterval(() => {}, 1000);`;
    const holder = spawn(process.execPath, [...NODE, script, dir], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(holder.stdout, 'data');
    expect(() => openDataDirectory(dir)).to.throw(`in use by process ${holder.pid}: stop it`);
    holder.kill('SIGKILL');
    await once(holder, 'exit');
    openDataDirectory(dir).release();
  });

  const stale: [what: string, content: () => string][] = [
    ['of a dead process', () => JSON.stringify({ pid: 2 ** 22 + 1, started: 'once' })],
    ['whose pid another process has got', () => JSON.stringify({ pid: process.ppid, started: 'earlier' })],
    ['that nobody can read', () => 'x'],
    ['that is empty', () => ''],
  ];
  for (const [what, content] of stale) {
    it(`takes a lock over ${what}`, () => {
      writeFileSync(lock(), content());
      const opened = openDataDirectory(dir);
      expect(JSON.parse(readFileSync(lock(), 'utf8'))).to.deep.equal({
        pid: process.pid,
        started: processStart(process.pid),
      });
      opened.release();
    });
  }

  it('lets one of eight win a stale lock', async () => {
    writeFileSync(lock(), JSON.stringify({ pid: 2 ** 22 + 1, started: 'once' }));
    const script = `${opening} console.log('won'); setTimeout(() => {}, 20000);`;
    const racers = Array.from({ length: 8 }, () =>
      spawn(process.execPath, [...NODE, script, dir], { stdio: ['ignore', 'pipe', 'ignore'] }),
    );
    const results = racers.map((racer) =>
      Promise.race([once(racer.stdout, 'data').then(() => 'won'), once(racer, 'exit').then(() => 'lost')]),
    );
    const all = await Promise.all(results);
    for (const racer of racers) racer.kill('SIGKILL');
    expect(all.filter((result) => result === 'won')).to.have.length(1);
  });

  it('says in one line that it cannot write', () => {
    const file = join(dir, 'file');
    writeFileSync(file, '');
    expect(() => openDataDirectory(join(file, 'inner'))).to.throw(
      /^The data directory .* is not writable \(DATA_DIR names another\): .*ENOTDIR[^\n]*$/,
    );
    if (process.getuid?.() !== 0) return;
    chmodSync(dir, 0o755);
    const nobody = { uid: 1, gid: 1, env: {} };
    const run = spawnSync(process.execPath, [...NODE, opening, dir], { ...nobody, encoding: 'utf8' });
    expect(run.stderr).to.contain(`The data directory ${dir} is not writable (DATA_DIR names another): EACCES`);
  });

  it('says so where nothing can ever be made', () => {
    if (process.platform !== 'linux') return;
    // In a process of its own: one that tries for ever hears nothing.
    const run = spawnSync(process.execPath, [...NODE, opening, '/proc/farthing/data'], {
      encoding: 'utf8',
      timeout: 60_000,
    });
    expect(run.stderr).to.contain(
      'The data directory /proc/farthing/data is not writable (DATA_DIR names another): ENOENT',
    );
  });
});

describe('checkPlatform', () => {
  const cases: [system: string, machine: string, glibc: boolean, here: string | undefined][] = [
    ['linux', 'x64', true, undefined],
    ['linux', 'arm64', true, undefined],
    ['darwin', 'arm64', false, undefined],
    ['darwin', 'x64', false, undefined],
    ['linux', 'x64', false, 'linux without glibc x64'],
    ['linux', 'riscv64', true, 'linux riscv64'],
    ['win32', 'x64', false, 'win32 x64'],
    ['freebsd', 'x64', false, 'freebsd x64'],
  ];
  for (const [system, machine, glibc, here] of cases) {
    it(`${system} ${machine} ${glibc ? 'with' : 'without'} glibc`, () => {
      const check = () => checkPlatform(system, machine, glibc);
      if (here === undefined) check();
      else expect(check).to.throw(`this is ${here}: use docker compose, or set DATABASE_URL and CLICKHOUSE_URL`);
    });
  }
});
