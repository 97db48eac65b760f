/**
 * Runs the service of a checkout as `npm start` does, on stores of its own, and uses it from outside: over HTTP, and by the addresses of its
 * stores. So any commit can be measured, whatever its benchmarks are. The launcher is left out, because it may install dependencies.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { connectClickHouse } from '../storage/clickhouse/clickhouse.ts';
import { endWithBenchmark } from './children.ts';
import { cpuOfTree } from './cpu.ts';
import { bareEnvironment, type EmbeddedService, pause, post, waitUntilMerged } from './processes.ts';

const API_KEY = 'farthing-bench-key';
const START_WITHIN_MS = 180_000;

export type OutsideService = EmbeddedService & { readonly database_url: string };

export async function startOutside(root: string): Promise<OutsideService> {
  const dir = mkdtempSync(join(tmpdir(), 'farthing-bench-'));
  const port = await findFreePort();
  const settings = { PORT: String(port), DATA_DIR: dir, BOOTSTRAP_API_KEY: API_KEY, RATE_LIMIT_REQUESTS: '0' };
  const child = endWithBenchmark(
    spawn('sh', ['process/node.sh', '--import', './process/typescript.mjs', 'main.ts'], {
      cwd: root,
      env: { ...bareEnvironment(), ...settings, LOG_LEVEL: 'warn' },
      stdio: ['ignore', 'ignore', 'inherit'],
    }),
  );
  const url = `http://127.0.0.1:${port}`;
  const stop = async () => {
    child.kill('SIGTERM');
    if (child.exitCode === null) await once(child, 'exit');
    rmSync(dir, { recursive: true, force: true });
  };
  await waitUntilReady(url, () => child.exitCode).catch(async (error: Error) => {
    await stop();
    throw error;
  });
  const { postgres_url, clickhouse_url } = JSON.parse(readFileSync(join(dir, 'stores.json'), 'utf8')) as {
    postgres_url: string;
    clickhouse_url: string;
  };
  const postgres = new pg.Pool({ connectionString: postgres_url, max: 1 });
  const target = { url, api_key: API_KEY };
  const pids = findStores(child.pid!);
  const clickhouse = connectClickHouse(clickhouse_url);
  const call: EmbeddedService['call'] = (asked) => answer(asked as Asked, { postgres, clickhouse, target }) as never;
  return {
    ...target,
    dir,
    pids: [child.pid!, pids.clickhouse, pids.postgres],
    database_url: postgres_url,
    cpu: () => ({
      total: cpuOfTree([child.pid!]),
      clickhouse: cpuOfTree([pids.clickhouse]),
      postgres: cpuOfTree([pids.postgres]),
    }),
    call,
    post: (path, body) => post(target, path, body),
    waitUntilMerged: () => waitUntilMerged(call),
    stop: async () => {
      await Promise.all([postgres.end(), clickhouse.close()]);
      await stop();
    },
  };
}

type Asked = { readonly what: string; readonly sql?: string };
type Stores = {
  readonly postgres: pg.Pool;
  readonly clickhouse: ReturnType<typeof connectClickHouse>;
  readonly target: { readonly url: string; readonly api_key: string };
};

/** The questions of a benchmark that serve.ts answers within the process. */
async function answer({ what, sql }: Asked, stores: Stores): Promise<unknown> {
  if (what === 'postgres') return (await stores.postgres.query(sql!)).rows;
  if (what === 'command') return void (await stores.clickhouse.command({ query: sql! }));
  if (what === 'sql') return (await stores.clickhouse.query({ query: sql!, format: 'JSONEachRow' })).json();
  if (what !== 'lag') throw new Error(`a service from outside does not answer ${what}`);
  const { url, api_key } = stores.target;
  const response = await fetch(`${url}/v1/events/monitoring`, { headers: { 'x-api-key': api_key } });
  return ((await response.json()) as { consumption_lag: number }).consumption_lag;
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

async function waitUntilReady(url: string, readExit: () => number | null): Promise<void> {
  const deadline = performance.now() + START_WITHIN_MS;
  for (;;) {
    const isReady = await fetch(`${url}/ready?for=queries`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isReady) return;
    if (readExit() !== null) throw new Error(`the service ended with ${readExit()}`);
    if (performance.now() > deadline) throw new Error('the service did not become ready');
    await pause(200);
  }
}

/** The stores are children of the service. */
function findStores(parent: number): { clickhouse: number; postgres: number } {
  const children = readdirSync('/proc').flatMap((name) => {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      const isChild = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1] === String(parent);
      return isChild ? [{ pid: Number(name), command: readFileSync(`/proc/${name}/cmdline`, 'utf8') }] : [];
    } catch {
      return [];
    }
  });
  const find = (pattern: RegExp) => children.find(({ command }) => pattern.test(command))?.pid ?? 0;
  return { postgres: find(/bin\/postgres\0/), clickhouse: find(/clickhouse/) };
}
