import { join } from 'node:path';
import { removeAddresses, writeAddresses } from './addresses.ts';
import { startClickHouse } from './clickhouse/clickhouse.ts';
import type { ChildServer, PartOptions } from './clickhouse/part.ts';
import { type DataDirectory, explainUnwritable, openDataDirectory } from './data-dir.ts';
import { findSharedFileSystem } from './file-lock.ts';
import { startPostgres } from './postgres/postgres.ts';
import { lockStores } from './stores-lock.ts';

export type PartName = 'postgres' | 'clickhouse';

export interface EmbeddedOptions {
  dir: string;
  /** Logs a line of a part of the stack; `directory` stands for the data directory. */
  log: (part: PartName | 'directory', line: string) => void;
  /** A part with a URL is not started. */
  postgres_url?: string | undefined;
  clickhouse_url?: string | undefined;
  clickhouse_memory_bytes?: number;
  /**
   * Called when a part has ended unexpectedly. The part is not restarted, because the state of its statements in flight
   * is unknown.
   */
  onDeath?: (part: PartName, detail: string) => void;
}

export interface EmbeddedStack {
  postgres_url: string;
  clickhouse_url: string;
  stop(): Promise<void>;
  pids(): number[];
  /** Lets our process end without `stop`; the parts notice and stop by themselves. */
  unref(): void;
}

/** Starts the stores without a URL in one data directory, which this process owns for its lifetime. */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedStack> {
  const { postgres_url, clickhouse_url } = options;
  if (postgres_url !== undefined && clickhouse_url !== undefined) {
    return { postgres_url, clickhouse_url, stop: async () => {}, pids: () => [], unref: () => {} };
  }
  const directory = openDataDirectory(options.dir);
  const stops: EmbeddedStackStops = [directory.release];
  const stop = () => runStops(stops);
  try {
    return { ...(await startIn(directory, options, stops)), stop };
  } catch (error) {
    await stop().catch(() => {}); // The failure of the start matters more than that of the stop.
    throw error;
  }
}

/** Steps that undo the start, in the order of the start. */
type EmbeddedStackStops = (() => unknown)[];

/** Runs the steps in reverse order; the failure of one does not prevent the others. */
async function runStops(stops: EmbeddedStackStops): Promise<void> {
  const failures: unknown[] = [];
  for (const stop of stops.splice(0).reverse()) {
    try {
      await stop();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

async function startIn(
  directory: DataDirectory,
  options: EmbeddedOptions,
  stops: EmbeddedStackStops,
): Promise<Omit<EmbeddedStack, 'stop'>> {
  const dir = directory.path;
  const warn = (line: string) => options.log('directory', line);
  const shared = findSharedFileSystem(dir);
  if (shared)
    warn(`${dir} is on ${shared}: the lock on it may not be seen by other machines, so let this one alone use it`);
  // An earlier version without this lock may run in another container. Only the lock of its ClickHouse engine shows that, so after an
  // upgrade our ClickHouse is started first, and the directory is signed afterwards.
  const is_upgrade = directory.is_of_earlier_version;
  if (!is_upgrade) directory.sign();
  const lock = await lockStores(dir, warn);
  stops.push(lock.release);
  lock.sign();
  const parts = createParts({ dir, options, lock_fd: lock.fd, stops });
  const tried_url = is_upgrade ? await parts.startClickHouse() : undefined;
  directory.sign();
  removeAddresses(dir);
  const [clickhouse, postgres] = await Promise.allSettled([
    tried_url ?? parts.startClickHouse(),
    parts.startPostgres(),
  ]);
  if (clickhouse.status === 'rejected') throw clickhouse.reason;
  if (postgres.status === 'rejected') throw postgres.reason;
  const addresses = { postgres_url: postgres.value, clickhouse_url: clickhouse.value };
  stops.push(() => removeAddresses(dir));
  explainUnwritable(dir, () => writeAddresses(dir, addresses));
  return { ...addresses, pids: parts.pids, unref: parts.unref };
}

type PartsOptions = { dir: string; options: EmbeddedOptions; lock_fd: number; stops: EmbeddedStackStops };

function createParts({ dir, options, lock_fd, stops }: PartsOptions) {
  const { postgres_url, clickhouse_url, clickhouse_memory_bytes: memory_bytes } = options;
  const started: ChildServer[] = [];
  stops.push(() => Promise.all(started.map((part) => part.stop())));
  const start = async (name: PartName, begin: (given: PartOptions) => Promise<ChildServer>) => {
    const part = await begin({ dir: join(dir, name), log: (line) => options.log(name, line), lock_fd });
    started.push(part);
    part.onExit(({ expected, detail }) => expected || options.onDeath?.(name, detail));
    return part.url;
  };
  return {
    startClickHouse: async () =>
      clickhouse_url ??
      start('clickhouse', (given) => startClickHouse(memory_bytes ? { ...given, memory_bytes } : given)),
    startPostgres: async () => postgres_url ?? start('postgres', startPostgres),
    pids: () => started.map(({ pid }) => pid),
    unref: () => {
      for (const part of started) part.unref();
    },
  };
}
