/** A data directory on a file system that keeps no locks: nothing is started there, and why is said in one line. */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { runScript, temporaryDirectory } from '../support/service.ts';
import { compileLibrary } from './system-calls.ts';

describe('a file system without locks', () => {
  const directory = temporaryDirectory();
  let LD_PRELOAD: string;
  before(async () => {
    LD_PRELOAD = await compileLibrary(join(import.meta.dirname, 'no-locks.c'));
  });
  after(() => directory.remove());

  for (const [LOCKS, why] of [
    ['refuse', 'Unknown system error -37'], // ENOLCK, which Node has no name for.
    ['grant', 'it grants the same lock twice'],
  ] as const)
    it(`that would ${LOCKS} them all is refused`, async () => {
      const DATA_DIR = join(directory.path, LOCKS);
      const start = runScript('start', [], { DATA_DIR, LD_PRELOAD, LOCKS });
      expect((await start.ended).code).to.equal(1);
      expect(start.stderr()).to.equal(
        `farthing: The file system of ${DATA_DIR} keeps no locks (${why}), so a second start would destroy what the first one ` +
          'writes: put DATA_DIR on a disk of this machine.\n',
      );
      expect(readdirSync(DATA_DIR)).to.deep.equal(['farthing.lock']);
      expect(readFileSync(join(DATA_DIR, 'farthing.lock'), 'utf8')).to.equal('');
      rmSync(DATA_DIR, { recursive: true });
    });
});
