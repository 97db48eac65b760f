/**
 * Golden files: recorded results whose changes are reviewed as a diff. `GOLDEN=write` before the test command rewrites
 * them.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';

const DIRECTORY = join(import.meta.dirname, '..', 'golden');

/** `name` is the file's path under test/golden. */
export function expectGolden(name: string, value: unknown): void {
  const text = typeof value === 'string' ? value : `${JSON.stringify(value, null, 2)}\n`;
  expect(text).to.equal(golden(join(DIRECTORY, name), text));
}

/** Compares a golden file that other code reads, too. Values are compared key by key, because a formatter may have changed the text. */
export function expectGoldenJson(file: string, values: Readonly<Record<string, unknown>>): void {
  const kept = JSON.parse(golden(file, `${JSON.stringify(values, null, 2)}\n`));
  expect(values).to.have.all.keys(kept);
  for (const [key, value] of Object.entries(values)) expect(value, key).to.deep.equal(kept[key]);
}

/** Compares a file of the product, part of which a test generates. */
export function expectGoldenFile(file: string, text: string): void {
  expect(golden(file, text)).to.equal(text);
}

function golden(file: string, text: string): string {
  if (process.env.GOLDEN === 'write') {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  expect(existsSync(file), `${file} does not exist: write it with GOLDEN=write`).to.equal(true);
  return readFileSync(file, 'utf8');
}

/** Replaces every id by its kind and the order of its first appearance: `inv_1`. */
export function withoutIds(value: unknown): unknown {
  const names = new Map<string, string>();
  const counts = new Map<string, number>();
  const text = JSON.stringify(value).replace(/\b([a-z_]+)_[0-9A-HJKMNP-TV-Z]{26}\b/g, (id, kind: string) => {
    if (!names.has(id)) {
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
      names.set(id, `${kind}_${counts.get(kind)}`);
    }
    return names.get(id)!;
  });
  return JSON.parse(text);
}
