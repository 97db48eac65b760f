/** Ctrl-C, wherever it is pressed: no hidden cursor, no directory, no half of the dependencies stays behind. */
import { type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { platform } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { environmentWith, ROOT, temporaryDirectory, unshareCommand } from '../support/service.ts';
import { until } from '../support/until.ts';

describe('Ctrl-C', function () {
  this.timeout(120_000);
  const directory = temporaryDirectory();
  after(() => directory.remove());

  for (const [what, listens] of [
    ['', ''],
    [', also where npm does not listen', `process.on('SIGINT', () => {});`],
  ] as const)
    it(`in the installation: what is half there goes, and so does the lock${what}`, async () => {
      const clone = join(directory.path, `clone${listens.length}`);
      const files = ['package.json', 'package-lock.json', 'process', 'run.mjs'];
      mkdirSync(clone);
      for (const file of files) cpSync(join(ROOT, file), join(clone, file), { recursive: true });
      // As npm is while it installs: it has written something, and is told to end by the signal.
      const npm = join(directory.path, 'npm-cli.js');
      const begins = `require('node:fs').mkdirSync('node_modules/half', { recursive: true });`;
      writeFileSync(npm, `${begins} ${listens} console.log('installs'); setInterval(() => {}, 1000);`);
      const env = environmentWith({ npm_execpath: npm });
      const launcher = spawn(process.execPath, ['run.mjs', 'check'], {
        cwd: clone,
        env,
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let said = '';
      for await (const text of launcher.stdout) {
        said += String(text);
        if (said.includes('installs\n')) launcher.kill('SIGINT');
      }
      const code = launcher.exitCode ?? (await once(launcher, 'exit'))[0];
      expect(code).to.equal(130);
      expect(said).to.contain('Stopped in the installation');
      expect(readdirSync(clone).sort()).to.deep.equal(files.sort());
    });

  /** As npm is: it takes its time, and writes its record last. */
  const installSlowly = `
    const { appendFileSync, existsSync, mkdirSync, writeFileSync } = require('node:fs');
    appendFileSync('log', 'begins\\n');
    setInterval(() => {
      if (!existsSync('go')) return;
      mkdirSync('node_modules', { recursive: true });
      writeFileSync('node_modules/.package-lock.json', '{"packages":{}}');
      appendFileSync('log', 'ends\\n');
      process.exit(0);
    }, 50);`;

  it('in one of two installations, also from containers that share the sources: one waits for the other, and takes over what has stopped', async () => {
    const clone = join(directory.path, 'shared');
    mkdirSync(clone);
    for (const file of ['process', 'run.mjs']) cpSync(join(ROOT, file), join(clone, file), { recursive: true });
    writeFileSync(join(clone, 'package.json'), '{"type":"module"}');
    writeFileSync(join(clone, 'package-lock.json'), '{"packages":{"":{}}}');
    const npm = join(directory.path, 'slow', 'npm-cli.js');
    mkdirSync(join(directory.path, 'slow'));
    writeFileSync(npm, installSlowly);
    // A launcher that was killed left this directory.
    mkdirSync(join(clone, '.installing'));
    writeFileSync(join(clone, '.installing', '1'), '');
    const launch = (apart?: 'processes') => {
      const [command, ...args] = [...unshareCommand(apart), process.execPath, 'run.mjs', 'migrate'];
      const stdio: StdioOptions = ['ignore', 'pipe', 'pipe'];
      const child = spawn(command!, args, { cwd: clone, env: environmentWith({ npm_execpath: npm }), stdio });
      let said = '';
      for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (text) => (said += String(text)));
      return { said: () => said, ended: once(child, 'close') };
    };
    const log = () => (existsSync(join(clone, 'log')) ? readFileSync(join(clone, 'log'), 'utf8') : '');
    const beats = () => {
      const [name] = readdirSync(join(clone, '.installing'));
      return Number(readFileSync(join(clone, '.installing', name!), 'utf8'));
    };
    const first = launch('processes');
    await until('the first one installs', async () => log() === 'begins\n');
    const second = launch();
    await until('the second one waits', async () => second.said().includes('waiting for it'));
    const waited_from = beats();
    await until(
      'it has waited for longer than it would for one that has stopped',
      async () => beats() > waited_from + 12,
    );
    expect(log()).to.equal('begins\n');
    writeFileSync(join(clone, 'go'), '');
    await Promise.all([first.ended, second.ended]);
    expect(log()).to.equal('begins\nends\n');
    for (const { said } of [first, second]) expect(said()).to.contain('sql/migrate.ts is not there');
    expect(readdirSync(clone).filter((name) => name.startsWith('.installing'))).to.deep.equal([]);
  });

  // The command `script` of Linux gives a terminal of its own.
  if (platform() === 'linux') {
    it('in the demo, on a terminal: the cursor is shown again, and the temporary service is gone', async () => {
      const temporary = join(directory.path, 'tmp');
      mkdirSync(temporary);
      const command = `'${process.execPath}' run.mjs demo --rows 60000`;
      const env = environmentWith({ TMPDIR: temporary, TERM: 'xterm' });
      const terminal = spawn('script', ['-qec', command, '/dev/null'], { cwd: ROOT, env });
      let said = '';
      let isPressed = false;
      for await (const text of terminal.stdout) {
        said += String(text);
        if (!isPressed && said.includes(HIDE_CURSOR)) isPressed = terminal.stdin.write('\x03');
      }
      const code = terminal.exitCode ?? (await once(terminal, 'exit'))[0];
      expect(code, said).to.equal(130);
      expect(said.lastIndexOf(SHOW_CURSOR), said).to.be.above(said.lastIndexOf(HIDE_CURSOR));
      expect(said).to.contain('stopping the temporary service');
      expect(readdirSync(temporary).filter((name) => name.startsWith('farthing-'))).to.deep.equal([]);
    });
  }
});

const HIDE_CURSOR = '\x1b[?25l';
const SHOW_CURSOR = '\x1b[?25h';
