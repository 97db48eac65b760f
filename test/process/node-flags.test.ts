// process/node.sh: the one place of the flags with which node takes in events. What it starts has them, and is node itself.
import { fork, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { NODE_FLAGS, type NodeStart, nodeStart } from '../support/node-start.ts';
import { ROOT } from '../support/service.ts';

const LAUNCHER = 'process/node.sh';
const MIB = 1024 * 1024;

describe('node with the flags of process/node.sh', () => {
  let launched: NodeStart;
  let small: NodeStart;
  before(async () => {
    launched = await nodeStart({ execPath: 'sh', execArgv: [join(ROOT, LAUNCHER)] });
    small = await nodeStart({ execArgv: ['--max-semi-space-size=1'] });
  });

  it('has them, and a heap with the larger young generation, which is three semi-spaces', () => {
    expect(launched.execArgv).to.deep.equal(NODE_FLAGS);
    expect((launched.heap_size_limit - small.heap_size_limit) / MIB).to.equal(3 * (64 - 1));
  });

  it('is the process that was started: none stands between, for signals and for what is told to it', () => {
    expect(launched.pid).to.equal(launched.started);
  });

  it('ends with the exit code of what it runs, and by the signal that it gets', async () => {
    const { status } = spawnSync('sh', [LAUNCHER, '-e', 'process.exit(7)'], { cwd: ROOT });
    expect(status).to.equal(7);
    const child = fork(join(ROOT, 'test/support/node-start-child.mjs'), ['stay'], {
      execPath: 'sh',
      execArgv: [join(ROOT, LAUNCHER)],
    });
    await new Promise((resolve) => child.once('message', resolve));
    const ended = new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
    child.kill('SIGTERM');
    expect(await ended).to.deep.equal({ code: null, signal: 'SIGTERM' });
  });
});

describe('whatever takes in events', () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  for (const name of ['start', 'demo', 'bench', 'api', 'pipeline'])
    it(`npm run ${name} goes through process/node.sh`, () =>
      expect(scripts[name]).to.equal(`exec sh ${LAUNCHER} run.mjs ${name}`));

  const commands = (file: string) =>
    [...readFileSync(join(ROOT, file), 'utf8').matchAll(/^(?:CMD|\s*command:) (\[.*\])$/gm)].map(
      ([, list]) => JSON.parse(list!) as string[],
    );
  for (const [file, entrance] of [
    ['Dockerfile', 'api/main.ts'],
    ['docker-compose.yml', 'api/main.ts'],
    ['docker-compose.yml', 'pipeline/main.ts'],
  ] as const)
    it(`${entrance} in ${file} goes through process/node.sh`, () =>
      expect(commands(file)).to.deep.include(['sh', LAUNCHER, '--import', './process/typescript.mjs', entrance]));
});
