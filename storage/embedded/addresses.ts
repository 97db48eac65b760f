/** Where the stores of a data directory are reached while a process holds it: for commands beside the running service. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { processStart } from './data-dir.ts';

export type Addresses = { readonly postgres_url: string; readonly clickhouse_url: string };

const FILE = 'stores.json';

/** Readable by the owner alone: the addresses hold the passwords. */
export function writeAddresses(dir: string, addresses: Addresses): void {
  const holder = { pid: process.pid, started: processStart(process.pid) };
  writeFileSync(join(dir, FILE), JSON.stringify({ ...addresses, ...holder }), { mode: 0o600 });
}

export function removeAddresses(dir: string): void {
  rmSync(join(dir, FILE), { force: true });
}

/** The addresses of the stores that a living process runs in this directory; nothing when none does. */
export function readAddresses(dir: string): Addresses | undefined {
  let text: string;
  try {
    text = readFileSync(join(dir, FILE), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  const { pid, started, postgres_url, clickhouse_url } = JSON.parse(text) as Addresses & {
    pid: number;
    started: string;
  };
  return started !== '' && processStart(pid) === started ? { postgres_url, clickhouse_url } : undefined;
}
