/** docs/rules/exports.md, "Whole or not there": a directory on a full disk, and a path that is no directory. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';

const CHILD = join(import.meta.dirname, '../../support/write-export.ts');

describe('a directory for exports', () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'exports-'));
  });
  afterEach(() => rmSync(root, { recursive: true }));

  /** Writes under a limit of the file size, which fails like a full disk: the file grows to the limit. */
  const written = (kilobytes: number | 'unlimited') =>
    execFileSync(
      'bash',
      [
        '-c',
        `trap '' XFSZ; ulimit -f ${kilobytes}; exec node --import ./process/typescript.mjs "$0" "$1"`,
        CHILD,
        root,
      ],
      {
        encoding: 'utf8',
      },
    );
  const files = () =>
    readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((one) => one.isFile())
      .map(({ name }) => name);

  it('with room has the file, whole', () => {
    expect(written('unlimited')).to.equal('written');
    expect(readFileSync(join(root, 'a/b.csv')).length).to.equal(300_000);
    expect(files()).to.deep.equal(['b.csv']);
  });

  it('without room says so, to be tried again, and has nothing: not under the name, and not beside it', () => {
    expect(written(100)).to.equal('the directory for exports (EFBIG) is not available, try again');
    expect(files()).to.deep.equal([]);
  });

  it('in which no folder can be made says so, and has nothing', () => {
    writeFileSync(join(root, 'a'), 'no folder');
    expect(written('unlimited')).to.match(
      /^the directory for exports \((EEXIST|ENOTDIR)\) is not available, try again$/,
    );
    expect(files()).to.deep.equal(['a']);
  });
});
