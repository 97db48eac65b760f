/** A benchmark ends the processes that it started, also if it throws or is interrupted. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { environmentWith, isAlive, ROOT, temporaryDirectory } from '../support/service.ts';
import { until } from '../support/until.ts';

const toUrl = (file: string) => JSON.stringify(pathToFileURL(join(ROOT, 'bench', file)).href);

/** Starts a service, prints the process ids of it and its stores, and throws after a line of input. */
const BENCHMARK = `
  import { once } from 'node:events';
  import { startOutside } from ${toUrl('outside-service.ts')};
  export async function run() {
    const { pids } = await startOutside(${JSON.stringify(ROOT)});
    console.log(pids.join(' '));
    await once(process.stdin, 'data');
    throw new Error('a wrong result');
  }`;

type Benchmark = ChildProcessByStdio<Writable, Readable, null>;

describe('a benchmark that ends early', function () {
  this.timeout(180_000);
  const directory = temporaryDirectory();
  const file = join(directory.path, 'benchmark.mjs');
  before(() => writeFileSync(file, BENCHMARK));
  after(() => directory.remove());

  for (const [way, end, code] of [
    ['throws', (benchmark: Benchmark) => benchmark.stdin.write('\n'), 1],
    ['gets SIGINT', (benchmark: Benchmark) => benchmark.kill('SIGINT'), 130],
    ['gets SIGTERM', (benchmark: Benchmark) => benchmark.kill('SIGTERM'), 143],
  ] as const)
    it(`leaves no process if it ${way}`, async () => {
      const args = ['--import', './process/typescript.mjs', 'bench/one.ts', pathToFileURL(file).href];
      const env = environmentWith({ TMPDIR: directory.path });
      const benchmark = spawn(process.execPath, args, { cwd: ROOT, env, stdio: ['pipe', 'pipe', 'ignore'] });
      const exit = once(benchmark, 'exit');
      const [line] = (await once(createInterface({ input: benchmark.stdout }), 'line')) as [string];
      const pids = line.split(' ').map(Number);
      expect(pids).to.have.length(3);
      expect(pids.filter(isAlive)).to.deep.equal(pids);
      end(benchmark);
      expect(await exit).to.deep.equal([code, null]);
      try {
        await until('its processes have ended', async () => !pids.some(isAlive));
      } finally {
        for (const pid of pids.filter(isAlive)) process.kill(pid, 'SIGKILL');
      }
    });
});
