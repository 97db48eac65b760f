/** That the faults at system calls really happen: to a process of its own, and to the engine (engine-killed.test.ts). */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { temporaryDirectory } from '../support/service.ts';
import { ENOSPC, type SystemCallFaults, systemCallFaults } from './system-calls.ts';

describe('a fault at a system call', () => {
  const directory = temporaryDirectory();
  const [from, to] = [join(directory.path, 'from'), join(directory.path, 'to')];
  let faults: SystemCallFaults;

  beforeEach(async () => {
    faults = await systemCallFaults();
    writeFileSync(from, 'x');
  });
  afterEach(() => faults.close());
  after(() => directory.remove());

  /** What a program said, and how it ended. */
  const run = async (program: string) => {
    const child = spawn(process.execPath, ['-e', program], { env: faults.environment() });
    let said = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
    const began = performance.now();
    const [code, signal] = await once(child, 'close');
    return { said: said.trim(), code, signal, ms: performance.now() - began };
  };
  const RENAME = `require('fs').renameSync(${JSON.stringify(from)}, ${JSON.stringify(to)}); console.log('done')`;
  const SYNC = `const fs = require('fs'), f = fs.openSync(${JSON.stringify(from)}, 'a');
    for (let i = 0; i < 3; i++) try { fs.fsyncSync(f); console.log('synced') } catch (e) { console.log(e.code) }`;

  it('kills before it', async () => {
    const id = faults.set({ call: 'rename', action: 'kill-before', path: '/from -> ' });
    expect(await run(RENAME)).to.include({ said: '', signal: 'SIGKILL' });
    expect(existsSync(from)).to.equal(true);
    expect(faults.met(id)).to.deep.equal([`${from} -> ${to}`]);
  });

  it('kills after it', async () => {
    faults.set({ call: 'rename', action: 'kill-after', path: '/from -> ' });
    expect(await run(RENAME)).to.include({ said: '', signal: 'SIGKILL' });
    expect(existsSync(from)).to.equal(false);
  });

  it('fails the second of three', async () => {
    faults.set({ call: 'sync', action: 'fail', argument: ENOSPC, path: from, skip: 1 });
    expect((await run(SYNC)).said).to.equal('synced\nENOSPC\nsynced');
  });

  it('holds it, until it is taken away', async () => {
    const held = faults.set({ call: 'sync', action: 'hold', argument: 60_000, path: from });
    const running = run(SYNC);
    await faults.untilMet(held);
    faults.remove(held);
    expect((await running).said).to.equal('synced\nsynced\nsynced');
  });

  it('holds it for so long', async () => {
    faults.set({ call: 'sync', action: 'hold', argument: 700, path: from });
    expect((await run(SYNC)).ms).to.be.above(700);
  });

  it('is not met by another path', async () => {
    const id = faults.set({ call: 'rename', action: 'kill-before', path: '/elsewhere' });
    expect((await run(RENAME)).said).to.equal('done');
    expect(faults.met(id)).to.deep.equal([]);
    expect(readFileSync(to, 'utf8')).to.equal('x');
  });

  it('steps the clock of the process, and of nobody else', async () => {
    faults.stepClock(-86_400_000);
    const { said } = await run('console.log(Date.now())');
    expect(Date.now() - Number(said)).to.be.within(86_400_000, 86_460_000);
  });
});
