/**
 * Farthing as several processes on real stores: API, pipeline and scheduler as child processes, Kafka of one broker or
 * three (the log in Postgres without one), and new databases in Postgres and ClickHouse. Each database is behind a proxy
 * that can cut the connections; a second proxy can disturb single statements to ClickHouse.
 *
 *   const cluster = await startCluster({ kafka, apis: 2, pipelines: 3 });
 *   await cluster.request('POST', '/events', { … });
 *   await cluster.process('pipeline', 0).kill('SIGKILL');
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openEmbeddedLog } from '../../storage/log/embedded/embedded.ts';
import { openKafkaLog } from '../../storage/log/kafka/kafka.ts';
import type { EventLog } from '../../storage/log/log.ts';
import { type StatementWay, statementsTo } from '../faults/statements.ts';
import type { BodyFrom, SomeAnswer } from './answers.ts';
import { type Cut, cutTo } from './cut.ts';
import type { TestKafka } from './kafka/broker.ts';
import { type Leash, newLeash } from './kafka/leash.ts';
import { isLogProcessed, isSettled } from './settled.ts';
import { type FreshDatabase, freshDatabase } from './stores.ts';
import { until } from './until.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const KEY = 'farthing-test-key';
const READY_WITHIN_MS = 60_000;
const ENTRANCES = { api: 'api/main.ts', pipeline: 'pipeline/main.ts', scheduler: 'scheduler/main.ts' } as const;

export type Role = keyof typeof ENTRANCES;
type ClusterOptions = {
  kafka?: TestKafka;
  replication?: number;
  partitions?: number;
  apis?: number;
  pipelines?: number;
  schedulers?: number;
  settings?: Record<string, string>;
  /** Database to use; by default a new one. It is closed at the end. */
  database?: FreshDatabase;
  /** Topic prefix of an earlier cluster, to continue its log. */
  topic_prefix?: string;
};
export type Answer<Body = SomeAnswer> = { status: number; headers: Headers; body: Body };
export type ClusterProcess = {
  readonly role: Role;
  readonly pid: number;
  readonly url: string;
  /** Everything that the process has printed. */
  output(): string;
  signal(name: NodeJS.Signals): void;
  /** Resolves to its exit code when it ends; null if a signal ended it. */
  readonly ended: Promise<number | null>;
  /** Sends the signal and waits for the end. Returns the exit code, or null if a signal ended it. */
  kill(name?: NodeJS.Signals): Promise<number | null>;
  /** Gets a path that is not below /v1. */
  get(path: string): Promise<Answer>;
};
export type Running = {
  kill(): void;
  /** The printed output and the exit code; null if it was killed. */
  readonly ended: Promise<{ code: number | null; output: string }>;
};
export type Cluster = {
  readonly database: FreshDatabase;
  /** The log handle of the test. */
  readonly log: EventLog;
  readonly postgresWay: Cut;
  readonly clickhouseWay: Cut;
  /** Proxy in front of ClickHouse that can disturb single statements. It is behind `clickhouseWay`. */
  readonly statements: StatementWay;
  process(role: Role, index: number): ClusterProcess;
  processes(role: Role): ClusterProcess[];
  /** Starts one more process; resolves when it is ready. */
  add(role: Role, settings?: Record<string, string>): Promise<ClusterProcess>;
  /** Starts a new process in place of one that has ended. */
  restart(ended: ClusterProcess): Promise<ClusterProcess>;
  /** Sends a request to the first API, or to the one with this number; paths are relative to /v1. */
  request<const Method extends string, const Path extends string>(
    method: Method,
    path: Path,
    options?: { body?: unknown; api?: number; timeout_ms?: number },
  ): Promise<Answer<BodyFrom<Method, Path>>>;
  /** Runs a command of the project with the settings of the processes. */
  run(file: string, ...args: string[]): Running;
  /** Opens the log again, after partitions were added. */
  reopenLog(): Promise<void>;
  /** Waits until all accepted events have had their effect. */
  waitForPipeline(timeout_ms?: number): Promise<void>;
  stop(): Promise<void>;
};

let prefixes = 0;

export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const { kafka, partitions = 12, replication = 1 } = options;
  const database = options.database ?? (await freshDatabase());
  const postgresWay = await cutTo(addressOf(database.postgres_url));
  const statements = await statementsTo(database.clickhouse_url);
  const clickhouseWay = await cutTo(addressOf(statements.url));
  const topic_prefix = options.topic_prefix ?? `cluster${process.pid}x${++prefixes}`;
  const settings = {
    HOST: '127.0.0.1',
    PORT: '0',
    LOG_LEVEL: 'warn',
    DATABASE_URL: through(database.postgres_url, postgresWay.port),
    CLICKHOUSE_URL: through(database.clickhouse_url, clickhouseWay.port),
    ...(kafka ? kafkaSettings(kafka, { topic_prefix, replication }) : {}),
    LOG_PARTITIONS: String(partitions),
    BOOTSTRAP_API_KEY: KEY,
    ...options.settings,
  };
  const leash = newLeash();
  const running: ClusterProcess[] = [];
  const hold = () => leash.hold(running.filter(lives).map(({ pid }) => pid));
  // Each process has its own disk. A process that replaces it finds the disk empty.
  const disks = mkdtempSync(join(tmpdir(), 'farthing-cluster-'));
  const start = (role: Role, more: Record<string, string> = {}) =>
    startProcess(role, { ...settings, DATA_DIR: mkdtempSync(join(disks, `${role}-`)), ...more });
  const add = async (role: Role, more?: Record<string, string>) => {
    const started = await start(role, more);
    running.push(started);
    hold();
    return started;
  };
  // Opens the log for the test, which creates the topic and reads the progress of the workers.
  const openLog = () => {
    const common = { partition_count: partitions, append_timeout_ms: 5_000, linger_ms: 20 };
    if (!kafka) return openEmbeddedLog(database.postgres, common);
    return openKafkaLog({
      ...common,
      brokers: kafka.brokers.split(','),
      topic_prefix,
      replication,
      retention_hours: 24,
    });
  };
  let log = await openLog();
  const roles: [Role, number][] = [
    ['api', options.apis ?? 1],
    ['pipeline', options.pipelines ?? 1],
    ['scheduler', options.schedulers ?? 0],
  ];
  const cluster: Cluster = {
    database,
    get log() {
      return log;
    },
    postgresWay,
    clickhouseWay,
    statements,
    processes: (role) => running.filter((each) => each.role === role),
    process: (role, index) => running.filter((each) => each.role === role)[index]!,
    add,
    restart: async (ended) => {
      const started = await start(ended.role);
      running.splice(running.indexOf(ended), 1, started);
      hold();
      return started;
    },
    request: async (method, path, { body, api = 0, timeout_ms = 30_000 } = {}) =>
      ask(`${cluster.process('api', api).url}/v1${path}`, { method, body, timeout_ms }),
    run: (file, ...args) =>
      runCommand([file, ...args], { ...settings, DATA_DIR: mkdtempSync(join(disks, 'command-')) }),
    reopenLog: async () => {
      await log.close();
      log = await openLog();
    },
    waitForPipeline: async (timeout_ms = 60_000) => {
      const isProcessed = () => isLogProcessed(log).catch(() => false);
      const isDone = () => isSettled(database.postgres, isProcessed);
      await until('everything is in the stores', isDone, timeout_ms).catch(async (error: Error) => {
        throw new Error(`${error.message}: ${await whatWaits(cluster)}`);
      });
    },
    stop: async () => {
      await stopAll(cluster, running, leash);
      rmSync(disks, { recursive: true, force: true });
    },
  };
  try {
    for (const [role, count] of roles) await Promise.all(Array.from({ length: count }, () => add(role)));
  } catch (error) {
    await cluster.stop();
    throw error;
  }
  return cluster;
}

function kafkaSettings(
  { brokers }: TestKafka,
  { topic_prefix, replication }: { topic_prefix: string; replication: number },
): Record<string, string> {
  return { KAFKA_BROKERS: brokers, KAFKA_TOPIC_PREFIX: topic_prefix, KAFKA_REPLICATION: String(replication) };
}

async function stopAll(cluster: Cluster, running: ClusterProcess[], leash: Leash): Promise<void> {
  await Promise.all(
    running.filter(lives).map(async (each) => {
      each.signal('SIGCONT');
      const impatient = setTimeout(() => each.signal('SIGKILL'), 15_000);
      await each.kill('SIGTERM');
      clearTimeout(impatient);
    }),
  );
  leash.hold([]);
  await leash.release();
  await cluster.log.close();
  await Promise.all([cluster.postgresWay.close(), cluster.clickhouseWay.close()]);
  await cluster.statements.close();
  await cluster.database.close();
}

function runCommand(command: string[], settings: Record<string, string>): Running {
  const { PATH, HOME } = process.env;
  const child = spawn(process.execPath, ['--import', './process/typescript.mjs', ...command], {
    cwd: ROOT,
    env: { PATH, HOME, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  return {
    kill: () => void child.kill('SIGKILL'),
    ended: once(child, 'close').then(([code]) => ({ code: code as number | null, output })),
  };
}

async function whatWaits({ log, database, processes }: Cluster): Promise<string> {
  const lag = await log.lag().catch((error: Error) => error.message);
  const slices = await database.postgres.raw(
    `select partition, owner, next_offset, phase from slices order by partition`,
  );
  const outputs = processes('pipeline').map((each) => `worker ${each.pid}: ${each.output().slice(-2_000)}`);
  const told = JSON.stringify({ lag, slices: slices.rows }, (_name, value) =>
    typeof value === 'bigint' ? String(value) : value,
  );
  return [told, ...outputs].join('\n');
}

type Started = ClusterProcess & { readonly child: ChildProcess };

async function startProcess(role: Role, settings: Record<string, string>): Promise<Started> {
  const { PATH, HOME } = process.env;
  const child = spawn(process.execPath, ['--import', './process/typescript.mjs', ENTRANCES[role]], {
    cwd: ROOT,
    env: { PATH, HOME, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (said += text));
  const ended = once(child, 'exit').then(([code]) => code as number | null);
  const url = await until(
    `${role} is ready`,
    async () => {
      const ready = /is ready at (http:[^\s"]+)/.exec(said)?.[1];
      if (!ready && child.exitCode !== null) throw new Error(`${role} ended with ${child.exitCode}: ${said}`);
      return ready;
    },
    READY_WITHIN_MS,
  ).catch((error: Error) => {
    child.kill('SIGKILL');
    throw new Error(`${error.message}\n${said}`);
  });
  return {
    role,
    child,
    pid: child.pid!,
    url,
    output: () => said,
    ended,
    signal: (name) => void child.kill(name),
    kill: async (name = 'SIGKILL') => {
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
      child.kill(name);
      return ended;
    },
    get: (path) => ask(`${url}${path}`, { method: 'GET', body: undefined, timeout_ms: 10_000 }),
  };
}

function lives(each: ClusterProcess): boolean {
  const { child } = each as Started;
  return child.exitCode === null && child.signalCode === null;
}

async function ask(url: string, given: { method: string; body: unknown; timeout_ms: number }): Promise<Answer<never>> {
  const response = await fetch(url, {
    method: given.method,
    headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
    signal: AbortSignal.timeout(given.timeout_ms),
    ...(given.body === undefined ? {} : { body: JSON.stringify(given.body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json');
  return {
    status: response.status,
    headers: response.headers,
    body: (isJson && text ? JSON.parse(text) : text) as never,
  };
}

function addressOf(url: string): { host: string; port: number } {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}

function through(url: string, port: number): string {
  const changed = new URL(url);
  changed.host = `127.0.0.1:${port}`;
  changed.searchParams.delete('host');
  return changed.href;
}
