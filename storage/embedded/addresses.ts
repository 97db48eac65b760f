/** Addresses of the stores of a data directory while a process owns it: for commands that run next to the service. */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export type Addresses = { readonly postgres_url: string; readonly clickhouse_url: string };

const FILE = 'stores.json';

/**
 * Writes the addresses to a file. Only its owner can read it, because the addresses contain passwords. It is renamed into place, so it is
 * never incomplete.
 */
export function writeAddresses(dir: string, addresses: Addresses): void {
  const draft = join(dir, `${FILE}.new`);
  writeFileSync(draft, JSON.stringify(addresses), { mode: 0o600 });
  renameSync(draft, join(dir, FILE));
}

export function removeAddresses(dir: string): void {
  for (const name of [FILE, `${FILE}.new`]) rmSync(join(dir, name), { force: true });
}

/**
 * Reads the addresses that the owner of the directory wrote when its stores were ready. After a kill the file stays until the next
 * start, so the reader must check whether the stores answer.
 */
export function readAddresses(dir: string): Addresses | undefined {
  let text: string;
  try {
    text = readFileSync(join(dir, FILE), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  const { postgres_url, clickhouse_url } = JSON.parse(text) as Addresses;
  return { postgres_url, clickhouse_url };
}
