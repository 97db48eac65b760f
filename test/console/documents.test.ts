/** The pages that docs/console.md names are those of the console, and the README's pictures and links exist. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { KEY_EFFECTS, KEY_NAMES, KEY_ROWS } from '../../console/shell/keys.ts';

const ROOT = join(import.meta.dirname, '../..');
const PICTURE_BYTES_MAX = 250 * 1024;
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');

describe('documents of the console', () => {
  it('docs/console.md lists the address of each page', () => {
    const table = /^## Pages$(.*?)^## /ms.exec(read('docs/console.md'))![1]!;
    const listed = [...table.matchAll(/`(\/(?!env\/)[^`]*)`/g)].map(([, path]) => path!);
    const pages = readdirSync(join(ROOT, 'console/pages'))
      .map((name) => `console/pages/${name}/routes.ts`)
      .filter((file) => existsSync(join(ROOT, file)) && !file.includes('/sign-in/'));
    const paths = pages.flatMap((file) => [...read(file).matchAll(/^ {2}path: '([^']+)'/gm)].map(([, path]) => path!));
    expect(paths).to.have.length.greaterThan(20);
    expect(listed.sort()).to.deep.equal(paths.sort());
  });

  it('docs/console.md lists the keys of the list that `?` opens', () => {
    const table = /^## Keys$(.*?)^## /ms.exec(read('docs/console.md'))![1]!;
    const [, , ...rows] = table.split('\n').filter((line) => line.startsWith('|'));
    const expected = KEY_ROWS.map(({ keys, effect }) => {
      const names = keys.map((key) => `\`${KEY_NAMES.en[key]}\``).join(', ');
      return `| ${names} | ${KEY_EFFECTS.en[effect]} |`;
    });
    expect(rows).to.deep.equal(expected);
  });

  it('each link to a file in the README and in docs/console.md exists', () => {
    for (const [file, folder] of [
      ['README.md', ''],
      ['docs/console.md', 'docs'],
    ] as const) {
      const links = [...read(file).matchAll(/(?:\]\(|src="|href=")([^)"#]+)/g)].map(([, link]) => link!);
      const own = links.filter((link) => !/^https?:/.test(link));
      expect(own).to.have.length.greaterThan(5);
      expect(own.filter((link) => !existsSync(join(ROOT, folder, link)))).to.deep.equal([]);
    }
  });

  it('the README shows each picture, of 1440 × 900 and of a size for a clone', () => {
    const readme = read('README.md');
    const names = readdirSync(join(ROOT, 'docs/pictures'));
    expect(names.sort()).to.deep.equal(['events', 'home', 'invoice', 'price', 'usage'].map((name) => `${name}.png`));
    for (const name of names) {
      expect(readme).to.include(`docs/pictures/${name}`);
      const png = readFileSync(join(ROOT, 'docs/pictures', name));
      expect([png.readUInt32BE(16), png.readUInt32BE(20)], name).to.deep.equal([1440, 900]);
      expect(png.length, name).to.be.below(PICTURE_BYTES_MAX);
    }
  });
});
