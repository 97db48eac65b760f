/** Postgres as a command finds it: that of the settings, that of the service that runs in the data directory, or started for it. */
import type { Config } from '../config.ts';
import { FarthingError } from '../core/error.ts';
import { readAddresses } from '../storage/embedded/addresses.ts';
import { holdsInstallation } from '../storage/embedded/data-dir.ts';
import { startEmbedded } from '../storage/embedded/stack.ts';

export type Reached = { readonly postgres_url: string; stop(): Promise<void> };

/** `beside`: a command that a running service does not mind. */
export async function reachPostgres(
  { DATA_DIR, DATABASE_URL, CLICKHOUSE_URL }: Config,
  { beside = false } = {},
): Promise<Reached> {
  if (DATABASE_URL !== undefined) return { postgres_url: DATABASE_URL, stop: async () => {} };
  const running = readAddresses(DATA_DIR);
  if (running && beside) return { postgres_url: running.postgres_url, stop: async () => {} };
  if (running) throw new FarthingError('invalid_operation', `stop the service in ${DATA_DIR} first`);
  // Whoever has named another directory than was meant would be given an empty one.
  if (!holdsInstallation(DATA_DIR))
    throw new FarthingError('not_found', `there is no installation in DATA_DIR=${DATA_DIR}`);
  return startEmbedded({ dir: DATA_DIR, log: () => {}, clickhouse_url: CLICKHOUSE_URL });
}
