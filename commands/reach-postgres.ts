/** Finds Postgres for a command: the configured one, that of the service running in the data directory, or one started for it. */
import type { Config } from '../config.ts';
import { FarthingError } from '../core/foundation/error.ts';
import { type Addresses, readAddresses } from '../storage/embedded/addresses.ts';
import { DataDirectoryInUse, hasInstallation } from '../storage/embedded/data-dir.ts';
import { type EmbeddedOptions, type EmbeddedStack, type PartName, startEmbedded } from '../storage/embedded/stack.ts';
import { connectPostgres, pingPostgres } from '../storage/postgres/pool/postgres.ts';

type ReachedPostgres = { readonly postgres_url: string; stop(): Promise<void> };

/**
 * Connects a command to Postgres. `beside` is true for a command that may run next to a running service. Any other
 * command is rejected by the lock on the directory.
 */
export async function reachPostgres(
  { DATA_DIR, DATABASE_URL, CLICKHOUSE_URL }: Config,
  { beside = false } = {},
): Promise<ReachedPostgres> {
  if (DATABASE_URL !== undefined) return { postgres_url: DATABASE_URL, stop: async () => {} };
  const running = beside ? await findRunning(DATA_DIR) : undefined;
  if (running) return { postgres_url: running.postgres_url, stop: async () => {} };
  // A mistyped directory would otherwise get a new, empty installation.
  if (!hasInstallation(DATA_DIR))
    throw new FarthingError('not_found', `there is no installation in DATA_DIR=${DATA_DIR}`);
  const options = { dir: DATA_DIR, log: reportDirectory, clickhouse_url: CLICKHOUSE_URL };
  return beside ? startBeside(options) : startEmbedded(options);
}

/** Starts the stores for a command that found no reachable service. An unreachable service may still hold the lock on the directory. */
export async function startBeside(options: EmbeddedOptions): Promise<EmbeddedStack> {
  try {
    return await startEmbedded(options);
  } catch (error) {
    if (!(error instanceof DataDirectoryInUse)) throw error;
    const hint = 'Its stores cannot be reached from here; where it runs, this command works beside it.';
    throw new FarthingError('invalid_operation', `${error.message} ${hint}`);
  }
}

/**
 * Addresses of the service that runs in the directory, if they are reachable from here. They are not reachable from
 * another container.
 */
export async function findRunning(dir: string): Promise<Addresses | undefined> {
  const addresses = readAddresses(dir);
  if (!addresses) return undefined;
  const postgres = connectPostgres(addresses.postgres_url, { pool_max: 1 });
  try {
    await pingPostgres(postgres);
    return addresses;
  } catch {
    return undefined; // The service was killed, or runs elsewhere: the lock on the directory decides.
  } finally {
    await postgres.destroy();
  }
}

/** Lines about the directory are for the operator, so they go to stderr. */
export function reportDirectory(part: PartName | 'directory', line: string): void {
  if (part === 'directory') process.stderr.write(`${line}\n`);
}
