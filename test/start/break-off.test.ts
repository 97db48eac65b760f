/** Ctrl-C, wherever it is pressed: no hidden cursor, no directory, no half of the dependencies stays behind. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { platform } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { environmentWith, ROOT, temporaryDirectory } from '../support/service.ts';

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
