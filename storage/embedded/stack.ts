import { join } from 'node:path';
import { removeAddresses, writeAddresses } from './addresses.ts';
import { startClickHouse } from './clickhouse/clickhouse.ts';
import type { Log, Part } from './clickhouse/part.ts';
import { openDataDirectory } from './data-dir.ts';
import { startPostgres } from './postgres/postgres.ts';

export type PartName = 'postgres' | 'clickhouse';

export interface EmbeddedOptions {
  dir: string;
  log: (part: PartName, line: string) => void;
  /** A part whose URL is given is not started. */
  postgres_url?: string | undefined;
  clickhouse_url?: string | undefined;
  clickhouse_memory_bytes?: number;
  /** A part has ended although nobody asked for it. Nothing is restarted: what it held in flight is unknown. */
  onDeath?: (part: PartName, detail: string) => void;
}

export interface Embedded {
  postgres_url: string;
  clickhouse_url: string;
  stop(): Promise<void>;
  /** The processes that run for us. */
  pids(): number[];
  /** Lets our process end without `stop`; the parts notice and stop by themselves. */
  unref(): void;
}

/** Starts the stores that no URL is given for, side by side, in one data directory that this process holds alone. */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const { postgres_url, clickhouse_url } = options;
  if (postgres_url !== undefined && clickhouse_url !== undefined) {
    return { postgres_url, clickhouse_url, stop: async () => {}, pids: () => [], unref: () => {} };
  }
  const directory = openDataDirectory(options.dir);
  const started: Part[] = [];
  const stop = async () => {
    removeAddresses(directory.path);
    await Promise.all(started.map((part) => part.stop()));
    directory.release();
  };
  const start = async (name: PartName, begin: (of: { dir: string; log: Log }) => Promise<Part>) => {
    const part = await begin({ dir: join(directory.path, name), log: (line) => options.log(name, line) });
    started.push(part);
    part.onExit(({ expected, detail }) => expected || options.onDeath?.(name, detail));
    return part.url;
  };
  const memory_bytes = options.clickhouse_memory_bytes;
  const starting = [
    clickhouse_url
      ? Promise.resolve(clickhouse_url)
      : start('clickhouse', (of) => startClickHouse(memory_bytes ? { ...of, memory_bytes } : of)),
    postgres_url ? Promise.resolve(postgres_url) : start('postgres', startPostgres),
  ];
  const [clickhouse, postgres] = await Promise.allSettled(starting);
  if (clickhouse?.status === 'fulfilled' && postgres?.status === 'fulfilled') {
    writeAddresses(directory.path, { postgres_url: postgres.value, clickhouse_url: clickhouse.value });
    const unref = () => {
      for (const part of started) part.unref();
    };
    return {
      clickhouse_url: clickhouse.value,
      postgres_url: postgres.value,
      stop,
      pids: () => started.map(({ pid }) => pid),
      unref,
    };
  }
  await stop();
  throw [clickhouse, postgres].find((result) => result?.status === 'rejected')?.reason;
}
