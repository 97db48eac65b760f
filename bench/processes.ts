/** Starts the child processes of a benchmark and communicates with them. */
import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DAY_MS } from '../core/foundation/time/durations.ts';
import { endWithBenchmark } from './children.ts';
import { cpuOfTree } from './cpu.ts';
import type { Load, Loaded } from './load.ts';
import type { RawInsert } from './raw-inserter.ts';
import type { Part } from './serve.ts';
import { meterDefinitions } from './workload.ts';

export type Service = {
  readonly url: string;
  readonly api_key: string;
  /** CPU seconds so far: in total, and of the two stores in it. */
  cpu(): { total: number; clickhouse: number; postgres: number };
  call<T>(asked: object): Promise<T>;
  post<T>(path: string, body: unknown): Promise<T>;
  /** Resolves when all accepted events are in the stores and the resulting merges have ended. */
  waitUntilMerged(): Promise<void>;
  /** Deletes the stored data, unless another start will use it. */
  stop(what?: { keep: boolean }): Promise<void>;
};

/** A service on embedded stores in a directory; the pids are those of the service, ClickHouse and Postgres. */
export type EmbeddedService = Service & { readonly dir: string; readonly pids: readonly number[] };

/** Starts node as `npm start` does, with the flags for the TypeScript sources. */
export const NODE = 'sh';
export const NODE_FLAGS = [
  fileURLToPath(new URL('../process/node.sh', import.meta.url)),
  '--import',
  './process/typescript.mjs',
];

export async function startService(
  part: Part = 'whole',
  settings: Record<string, string> = {},
  dir = mkdtempSync(join(tmpdir(), 'farthing-bench-')),
): Promise<EmbeddedService> {
  const child = endWithBenchmark(
    fork(fileURLToPath(new URL('./serve.ts', import.meta.url)), [JSON.stringify({ part, dir, settings })], {
      execPath: NODE,
      execArgv: [...NODE_FLAGS, '--expose-gc', ...profiling()],
      serialization: 'advanced',
    }),
  );
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  child.on('message', ({ id, value, error }: { id?: number; value?: unknown; error?: string }) => {
    const question = id === undefined ? undefined : waiting.get(id);
    if (error === undefined) question?.resolve(value);
    else question?.reject(new Error(error));
  });
  child.once('exit', (code) => {
    for (const { reject } of waiting.values()) reject(new Error(`the service ended with ${code}`));
  });
  const { ready } = (await told(child)) as { ready: { url: string; api_key: string; pids: number[] } };
  let asked_count = 0;
  const ask = <T>(asked: object) =>
    new Promise<T>((resolve, reject) => {
      waiting.set(++asked_count, { resolve: resolve as (value: unknown) => void, reject });
      child.send({ id: asked_count, asked });
    });
  const postgres = ready.pids.find(isPostgres) ?? 0;
  const clickhouse = ready.pids.find((pid) => pid !== postgres) ?? 0;
  return {
    url: ready.url,
    api_key: ready.api_key,
    call: ask,
    cpu: () => ({
      total: cpuOfTree([child.pid!]),
      clickhouse: cpuOfTree([clickhouse]),
      postgres: cpuOfTree([postgres]),
    }),
    post: (path, body) => post(ready, path, body),
    waitUntilMerged: () => waitUntilMerged(ask),
    dir,
    pids: [child.pid!, clickhouse, postgres],
    stop: async ({ keep } = { keep: false }) => {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      await ask({ what: 'stop', keep });
      await ended;
    },
  };
}

/** `--profile=directory` writes a CPU profile of the service into the directory. */
function profiling(): string[] {
  const asked = process.argv.find((argument) => argument.startsWith('--profile='));
  return asked === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${asked.slice('--profile='.length)}`];
}

/** Only the variables that a process needs; any other one could be an unintended setting. */
export function bareEnvironment(): Record<string, string | undefined> {
  const { PATH, HOME } = process.env;
  // process/node.sh starts the node binary of this process, even if PATH has another one first.
  return { PATH, HOME, npm_node_execpath: process.execPath };
}

/** Whether the process is Postgres. The stores start concurrently, so the order of their pids varies. */
export function isPostgres(pid: number): boolean {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[0]!.includes('postgres');
}

export async function post<T>(
  { url, api_key }: { url: string; api_key: string },
  path: string,
  body: unknown,
): Promise<T> {
  const headers = { 'x-api-key': api_key, 'content-type': 'application/json' };
  const response = await fetch(`${url}/v1${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`POST ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

const PAUSE_MS = 100;

export async function waitUntilMerged(call: Service['call']): Promise<void> {
  while ((await call<number>({ what: 'lag' })) > 0) await pause(PAUSE_MS);
  const merging = { what: 'sql', sql: 'select count() as n from system.merges' };
  for (let quiet = 0; quiet < 5; ) {
    const [row] = await call<{ n: string }[]>(merging);
    quiet = row!.n === '0' ? quiet + 1 : 0;
    await pause(200);
  }
}

/** Requests daily rollups of all days until tomorrow; resolves when they exist. */
export async function makeDailyRollups(service: Service): Promise<void> {
  const days_before = Math.floor(Date.now() / DAY_MS) + 2;
  const open = `select count(*)::int as n from slices where days_before < ${days_before}`;
  while ((await service.call<{ n: number }[]>({ what: 'postgres', sql: open }))[0]!.n > 0) {
    await service.call({ what: 'daily_rollups', days_before });
    while ((await service.call<number>({ what: 'lag' })) > 0) await pause(PAUSE_MS);
    await pause(PAUSE_MS);
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Creates the 50 meters of the workload and waits until they are live; returns their ids in the order of their definitions. */
export async function makeMeters(service: Service): Promise<string[]> {
  const ids: string[] = [];
  for (const definition of meterDefinitions()) {
    const { id } = await service.post<{ id: string }>('/meters', { name: 'bench', ...definition });
    ids.push(id);
  }
  const open = `select count(*)::int as n from meter_versions where state <> 'live'`;
  while ((await service.call<{ n: number }[]>({ what: 'postgres', sql: open }))[0]!.n > 0) await pause(PAUSE_MS);
  return ids;
}

/** A child process that prepares its work, and starts it on request. */
export type Worker<Work, Done> = {
  prepare(work: Work): Promise<() => Promise<Done>>;
  cpu(): number;
  stop(): void;
};
export type Generator = Worker<Load, Loaded>;
export type RawInserter = Worker<RawInsert, null>;

export const startGenerator = (): Promise<Generator> => startWorker('./load.ts');
export const startRawInserter = (): Promise<RawInserter> => startWorker('./raw-inserter.ts');

export async function startWorker<Work extends object, Done>(file: string): Promise<Worker<Work, Done>> {
  const child = endWithBenchmark(
    fork(fileURLToPath(new URL(file, import.meta.url)), {
      execPath: NODE,
      execArgv: NODE_FLAGS,
      serialization: 'advanced',
    }),
  );
  await told(child);
  return {
    prepare: async (work) => {
      child.send(work);
      await told(child);
      return async () => {
        child.send({ go: true });
        const { value, error } = (await told(child)) as { value?: Done; error?: string };
        if (error !== undefined) throw new Error(error);
        return value!;
      };
    },
    cpu: () => cpuOfTree([child.pid!]),
    stop: () => child.disconnect(),
  };
}

/** Resolves with the next message of a child; rejects if the child ends. */
function told(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null) => reject(new Error(`a process of the benchmark ended with ${code}`));
    child.once('exit', onExit);
    child.once('message', (message) => {
      child.off('exit', onExit);
      resolve(message);
    });
  });
}
