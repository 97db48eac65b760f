import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
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
  const opening = `import { openDataDirectory } from ${JSON.stringify(module)}; openDataDirectory(process.argv[1])`;

  const signature = () => ({ pid: process.pid, started: processStart(process.pid), host: hostname() });
  const takeOver = () => {
    const opened = openDataDirectory(dir);
    opened.sign();
    expect(JSON.parse(readFileSync(lock(), 'utf8'))).to.deep.equal(signature());
    opened.release();
    expect(readFileSync(lock(), 'utf8')).to.equal('');
    return opened;
  };

  it('makes the directory and gives it back', () => {
    const inner = join(dir, 'a', 'b');
    const first = openDataDirectory(inner);
    expect(() => openDataDirectory(inner)).to.throw(
      `The data directory ${inner} is in use by another process: stop it`,
    );
    first.sign();
    expect(() => openDataDirectory(inner)).to.throw(
      `in use by process ${process.pid} on ${hostname()}: stop it, or choose`,
    );
    first.release();
    openDataDirectory(inner).release();
  });

  it('names the process that holds it, and is free when that was killed', async () => {
    const script = `${opening}.sign(); console.log('holding'); setInterval(() => {}, 1000);`;
    const holder = spawn(process.execPath, [...NODE, script, dir], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(holder.stdout, 'data');
    expect(() => openDataDirectory(dir)).to.throw(`in use by process ${holder.pid} on ${hostname()}: stop it`);
    holder.kill('SIGKILL');
    await once(holder, 'exit');
    expect(takeOver().is_of_earlier_version).to.equal(false);
  });

  it('is free when its owner was killed, though a child of that lives on', async () => {
    const script = `
      import { spawn } from 'node:child_process';
      ${opening};
      console.log(spawn('sleep', ['60'], { detached: true, stdio: 'ignore' }).pid);
      setInterval(() => {}, 1000);`;
    const holder = spawn(process.execPath, [...NODE, script, dir], { stdio: ['ignore', 'pipe', 'inherit'] });
    const child = Number(String((await once(holder.stdout, 'data'))[0]));
    holder.kill('SIGKILL');
    await once(holder, 'exit');
    expect(processStart(child)).not.to.equal('');
    takeOver();
    process.kill(child, 'SIGKILL');
  });

  const earlier: [what: string, content: () => string][] = [
    ['of a process that has ended', () => JSON.stringify({ pid: 2 ** 22 + 1, started: 'once' })],
    ['whose pid another process has got', () => JSON.stringify({ pid: process.ppid, started: 'earlier' })],
    ['that nobody can read', () => 'x'],
  ];
  for (const [what, content] of earlier)
    it(`takes over a file of an earlier version ${what}, and leaves it as it is until it is signed`, () => {
      writeFileSync(lock(), content());
      const opened = openDataDirectory(dir);
      opened.release();
      expect(opened.is_of_earlier_version).to.equal(true);
      expect(readFileSync(lock(), 'utf8')).to.equal(content());
      takeOver();
    });

  it('takes over an empty file, and one of a copy whose owner lives on another machine', () => {
    writeFileSync(lock(), '');
    expect(takeOver().is_of_earlier_version).to.equal(false);
    writeFileSync(lock(), JSON.stringify({ pid: 1, started: 'there', host: 'there' }));
    expect(takeOver().is_of_earlier_version).to.equal(false);
  });

  it('respects a process of an earlier version, which has written its pid and locked nothing', () => {
    const content = JSON.stringify({ pid: process.ppid, started: processStart(process.ppid) });
    writeFileSync(lock(), content);
    expect(() => openDataDirectory(dir)).to.throw(`is in use by process ${process.ppid}: stop it`);
    expect(readFileSync(lock(), 'utf8')).to.equal(content);
    rmSync(lock());
    takeOver();
  });

  it('is the same one through a symbolic link', () => {
    const link = join(dir, 'link');
    const inner = join(dir, 'inner');
    const opened = openDataDirectory(inner);
    symlinkSync(inner, link);
    expect(() => openDataDirectory(link)).to.throw(`The data directory ${link} is in use by another process`);
    opened.release();
    openDataDirectory(link).release();
  });

  if (process.platform === 'linux' && process.getuid?.() === 0)
    it('is the same one through a bind mount', () => {
      const [inner, mount] = [join(dir, 'inner'), join(dir, 'mount')];
      const opened = openDataDirectory(inner);
      mkdirSync(mount);
      execFileSync('mount', ['--bind', inner, mount]);
      try {
        expect(() => openDataDirectory(mount)).to.throw(`The data directory ${mount} is in use by another process`);
      } finally {
        execFileSync('umount', [mount]);
      }
      opened.release();
    });

  it('lets one of eight win', async () => {
    writeFileSync(lock(), JSON.stringify({ pid: 2 ** 22 + 1, started: 'once' }));
    const script = `${opening}.sign(); console.log('won'); setTimeout(() => {}, 60000);`;
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
