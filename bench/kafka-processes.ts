/**
 * Starts API and workers as separate processes on a real Kafka: `npm run api` and `npm run pipeline`, with a Postgres and a ClickHouse that
 * a benchmark process owns. test/support/kafka starts the broker.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { migrate } from '../sql/migrate.ts';
import { connectClickHouse } from '../storage/clickhouse/clickhouse.ts';
import { startEmbedded } from '../storage/embedded/stack.ts';
import { openKafkaLog } from '../storage/log/kafka/kafka.ts';
import { connectPostgres } from '../storage/postgres/pool/postgres.ts';
import { requestDailyRollups } from '../storage/progress/daily-rollups-message.ts';
import { startKafka } from '../test/support/kafka/broker.ts';
import { endWithBenchmark } from './children.ts';
import { cpuOfTree } from './cpu.ts';
import {
  bareEnvironment,
  isPostgres,
  NODE,
  NODE_FLAGS,
  pause,
  post,
  type Service,
  waitUntilMerged,
} from './processes.ts';

const ROOT = join(import.meta.dirname, '..');
const KEY = 'farthing-bench-key';

type KafkaService = Service & {
  /** Starts or stops workers until this number runs; resolves when each new worker has its share of the partitions. */
  workers(count: number): Promise<void>;
};

export async function startKafkaService(partitions: number): Promise<KafkaService> {
  const dir = mkdtempSync(join(tmpdir(), 'farthing-bench-'));
  const stops: (() => Promise<unknown>)[] = [async () => rmSync(dir, { recursive: true, force: true })];
  const stop = async () => {
    for (const each of stops.reverse()) await each();
  };
  try {
    return await startParts(dir, { partitions, stops, stop });
  } catch (error) {
    await stop();
    throw error;
  }
}

type Wanted = { partitions: number; stops: (() => Promise<unknown>)[]; stop(): Promise<void> };

async function startParts(dir: string, { partitions: partition_count, stops, stop }: Wanted): Promise<KafkaService> {
  const kafka = await startKafka({ brokers: 1 });
  stops.push(() => kafka.wipe());
  const embedded = await startEmbedded({ dir, log: () => {} });
  stops.push(() => embedded.stop());
  const { postgres_url, clickhouse_url } = embedded;
  const [postgres, clickhouse] = [connectPostgres(postgres_url), connectClickHouse(clickhouse_url)];
  stops.push(async () => Promise.all([postgres.destroy(), clickhouse.close()]));
  await migrate({ postgres, clickhouse });
  const log = await openKafkaLog({
    brokers: kafka.brokers.split(','),
    topic_prefix: 'farthing',
    partition_count,
    replication: 1,
    retention_hours: 24,
    append_timeout_ms: 5_000,
  });
  stops.push(() => log.close());
  const start = (entrance: string) => {
    const settings = {
      PORT: '0',
      DATA_DIR: mkdtempSync(join(dir, 'process-')),
      DATABASE_URL: postgres_url,
      CLICKHOUSE_URL: clickhouse_url,
      KAFKA_BROKERS: kafka.brokers,
      LOG_PARTITIONS: String(partition_count),
      BOOTSTRAP_API_KEY: KEY,
    };
    return startProcess(entrance, settings);
  };
  const api = await start('api/main.ts');
  stops.push(() => api.stop());
  const running: Process[] = [];
  stops.push(async () => Promise.all(running.map((worker) => worker.stop())));
  const postgresPid = embedded.pids().find(isPostgres)!;
  const clickhousePid = embedded.pids().find((pid) => pid !== postgresPid)!;
  /** CPU time of workers that have ended. */
  let spent = 0;
  const query = async (sql: string) => (await clickhouse.query({ query: sql, format: 'JSONEachRow' })).json<unknown>();
  const lag = async () => (await log.lag()).reduce((sum, { unprocessed_records }) => sum + unprocessed_records, 0);
  const ask = async <T>(asked: object) => {
    const { what, sql = '', days_before = 0 } = asked as { what: string; sql?: string; days_before?: number };
    if (what === 'lag') return (await lag()) as T;
    if (what === 'sql') return (await query(sql)) as T;
    if (what === 'daily_rollups') return (await requestDailyRollups(postgres, days_before)) as T;
    if (what === 'postgres') return (await postgres.raw(sql)).rows as T;
    throw new Error(`the processes on Kafka are not asked for ${what}`);
  };
  const service: KafkaService = {
    url: api.url,
    api_key: KEY,
    call: ask,
    post: (path, body) => post({ url: api.url, api_key: KEY }, path, body),
    cpu: () => {
      const pids = [api, ...running].map(({ pid }) => pid);
      const stores = { clickhouse: cpuOfTree([clickhousePid]), postgres: cpuOfTree([postgresPid]) };
      return { total: spent + cpuOfTree(pids) + stores.clickhouse + stores.postgres, ...stores };
    },
    waitUntilMerged: () => waitUntilMerged(ask),
    workers: async (count) => {
      while (running.length < count) running.push(await start('pipeline/main.ts'));
      while (running.length > count) {
        const worker = running.pop()!;
        spent += cpuOfTree([worker.pid]);
        await worker.stop();
      }
      await untilShared(running.length);
    },
    stop,
  };
  const untilShared = async (workers: number) => {
    for (let owners = -1; owners !== workers; await pause(100)) {
      const { rows } = await postgres.raw(
        `select count(distinct owner)::int as owners, count(*)::int as partitions from slices`,
      );
      owners = rows[0].partitions === partition_count ? rows[0].owners : -1;
    }
  };
  return service;
}

type Process = { readonly pid: number; readonly url: string; stop(): Promise<void> };

async function startProcess(entrance: string, settings: Record<string, string>): Promise<Process> {
  const child = endWithBenchmark(
    spawn(NODE, [...NODE_FLAGS, entrance], {
      cwd: ROOT,
      env: { ...bareEnvironment(), ...settings },
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  );
  const url = await untilReady(child);
  return {
    pid: child.pid!,
    url,
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    },
  };
}

function untilReady(child: ChildProcess): Promise<string> {
  let said = '';
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`a process ended with ${code}: ${said}`)));
    child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      const url = /is ready at (http:[^\s"]+)/.exec(said)?.[1];
      if (url) resolve(url);
    });
  });
}
