/** TypeScript is compiled once for all processes, and again when it has changed. */
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { load } from '../../process/strip-types.mjs';
import { ROOT } from '../support/service.ts';

describe('the types of a source', () => {
  let dir: string;
  let file: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'farthing-types-'));
    file = join(dir, 'module.ts');
  });
  afterEach(() => rmSync(dir, { recursive: true }));

  const next = () => expect.fail('it is ours');
  const sourceOf = (text: string): string => {
    writeFileSync(file, text);
    return load(pathToFileURL(file).href, {}, next).source;
  };
  const cached = (text: string) =>
    join(ROOT, 'node_modules/.cache/stripped-types', createHash('sha256').update(text).digest('hex'));

  it('are replaced by blanks, once for each content', () => {
    const text = `export const a${dir.slice(-6)}: number = 1;\n`;
    expect(sourceOf(text)).to.equal(`export const a${dir.slice(-6)}         = 1;\n`);
    writeFileSync(cached(text), 'from the cache');
    expect(sourceOf(text)).to.equal('from the cache');
    rmSync(cached(text));
    expect(sourceOf(`${text}export const b: 2 = 2;\n`)).to.include('b    = 2');
    rmSync(cached(`${text}export const b: 2 = 2;\n`));
  });

  it('that cannot be read are named with file and line, and nothing is kept', () => {
    const text = 'export const a = 1;\nexport const = ;\n';
    expect(() => sourceOf(text)).to.throw(SyntaxError, `${file}:2:`);
    expect(existsSync(cached(text))).to.equal(false);
    expect(readFileSync(file, 'utf8')).to.equal(text);
  });
});
