// What is typed wrongly behind a command is one line and exit code 2, and nothing has been opened.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { runScript, temporaryDirectory } from '../support/service.ts';

describe('a command that is typed wrongly', function () {
  this.timeout(60_000);
  const directory = temporaryDirectory();
  const DATA_DIR = join(directory.path, 'data');
  after(() => directory.remove());

  const cases: [command: string, args: string[], said: RegExp][] = [
    ['partitions', ['--to'], /--to <value>' argument missing/],
    ['partitions', ['--frob'], /Unknown option '--frob'/],
    ['partitions', [], /--to wants a whole number up to 4096/],
    ['partitions', ['--to', '0'], /--to wants a whole number up to 4096/],
    ['chaos', ['--sedes', '3'], /Unknown option '--sedes'/],
    ['chaos', ['--seeds', 'many'], /whole numbers/],
    ['audit', ['--frob'], /Unknown option '--frob'/],
    ['audit', ['--from', 'yesterday'], /--from: yesterday is not a date/],
    ['audit', ['--from', '2026-03-10', '--to', '2026-03-10'], /--from 2026-03-10 is not before --to 2026-03-10/],
  ];
  for (const [command, args, said] of cases) {
    it([command, ...args].join(' '), async () => {
      const { ended, stdout, stderr } = runScript(command, args, { DATA_DIR });
      expect(await ended).to.deep.equal({ code: 2, signal: null });
      expect(stdout()).to.equal('');
      expect(stderr()).to.match(said);
      expect(stderr().trimEnd().split('\n')).to.have.length(1);
      expect(existsSync(DATA_DIR)).to.equal(false);
    });
  }
});
