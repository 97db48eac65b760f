// Types are stripped from a file once. A later start reads the result for the current source, whatever has happened to the cache.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { load, resolve } from '../../process/strip-types.mjs';
import { ROOT } from '../support/service.ts';

describe('stripped files', () => {
  let directory: string;
  let file: string;
  let cached: string;

  beforeEach(() => {
    // Only files of the repository are cached. Git and the linters ignore this folder.
    mkdirSync(join(ROOT, 'coverage'), { recursive: true });
    directory = mkdtempSync(join(ROOT, 'coverage', 'strip-'));
    file = join(directory, 'a.ts');
    cached = join(ROOT, 'node_modules/.cache/farthing', relative(ROOT, file));
    writeFileSync(file, 'export const one: number = 1;\n');
  });
  afterEach(() => {
    rmSync(directory, { recursive: true, force: true });
    rmSync(join(cached, '..'), { recursive: true, force: true });
  });

  const loaded = (): string => load(pathToFileURL(file).href, {}, unexpected).source;

  it('are the source with blanks for its types, also when they are read from the cache', () => {
    const stripped = 'export const one         = 1;\n';
    expect([loaded(), loaded()]).to.deep.equal([stripped, stripped]);
    expect(readFileSync(cached, 'utf8')).to.match(/^[0-9a-f]{64}export const one {9}= 1;\n$/);
  });

  it('are made again after a change of the source', () => {
    loaded();
    writeFileSync(file, 'export const two: number = 2;\n');
    expect(loaded()).to.equal('export const two         = 2;\n');
  });

  for (const [what, spoil] of [
    ['torn', (text: string) => text.slice(0, -5)],
    ['empty', () => ''],
    ['another code', (text: string) => text.replace('= 1', '= 2')],
  ] as const)
    it(`are made again where the cached file is ${what}`, () => {
      const whole = loaded();
      writeFileSync(cached, spoil(readFileSync(cached, 'utf8')));
      expect(loaded()).to.equal(whole);
    });

  it('are found beside the file that imports them; other names are Node’s to find', () => {
    const parentURL = pathToFileURL(file).href;
    const there = pathToFileURL(join(directory, 'b.ts')).href;
    expect(resolve('./b.ts', { parentURL }, unexpected)).to.deep.equal({
      url: there,
      format: 'module',
      shortCircuit: true,
    });
    const asked: string[] = [];
    const next = (specifier: string) => void asked.push(specifier);
    for (const specifier of ['zod', './b.mjs', there, 'node:fs']) resolve(specifier, { parentURL }, next);
    resolve('./main.ts', { parentURL: undefined }, next);
    expect(asked).to.deep.equal(['zod', './b.mjs', there, 'node:fs', './main.ts']);
  });
});

function unexpected(): never {
  throw new Error('Node is asked');
}
