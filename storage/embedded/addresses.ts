/** Where the stores of a data directory are reached while a process holds it: for commands beside the running service. */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export type Addresses = { readonly postgres_url: string; readonly clickhouse_url: string };

const FILE = 'stores.json';

/** Readable by the owner alone: the addresses hold the passwords. It appears with its content or not at all. */
export function writeAddresses(dir: string, addresses: Addresses): void {
  const draft = join(dir, `${FILE}.new`);
  writeFileSync(draft, JSON.stringify(addresses), { mode: 0o600 });
  renameSync(draft, join(dir, FILE));
}

export function removeAddresses(dir: string): void {
  for (const name of [FILE, `${FILE}.new`]) rmSync(join(dir, name), { force: true });
}

/**
 * Reads the addresses that the process which holds the directory wrote when its stores were ready. After a kill they stay until the next
 * start, so the stores must be asked whether they are there.
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
