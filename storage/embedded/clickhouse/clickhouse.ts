import { randomBytes } from 'node:crypto';
import { mkdirSync, realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { EmbeddedClickHouseOptions } from './clickhouse-server.ts';
import { type Child, type ChildServer, type PartOptions, startChild } from './part.ts';

interface ClickHouseServerOptions extends PartOptions {
  /** Number of concurrent statements. */
  connections?: number;
  /** How long a statement waits for a slot before it is rejected. */
  queue_ms?: number;
  /** Memory of the engine before statements fail. */
  memory_bytes?: number;
}

const READY_MS = 60_000;
const STOP_MS = 15_000;
/**
 * Longest wait for the lock of the engine on its directory. A server of an earlier version, whose owner left no lock, ends within this
 * time.
 */
const TAKEOVER_MS = 8_000;

/**
 * Starts the real ClickHouse engine as a separate process, because only one process may own the directory. It serves ClickHouse's
 * HTTP interface on loopback, so product code uses the standard client as with a server.
 */
export async function startClickHouse(options: ClickHouseServerOptions): Promise<ChildServer> {
  mkdirSync(options.dir, { recursive: true, mode: 0o700 });
  const credentials = { username: 'farthing', password: randomBytes(24).toString('hex') };
  const { child, port } = await startServer(
    {
      dir: realpathSync(options.dir),
      connections: options.connections ?? 4,
      queue_ms: options.queue_ms ?? 30_000,
      memory_bytes: options.memory_bytes ?? 2_000_000_000,
      ...credentials,
    },
    options,
  );
  return {
    url: `http://${credentials.username}:${credentials.password}@127.0.0.1:${port}/default`,
    pid: child.pid,
    stop: () => endProcess(child),
    onExit: child.onExit,
    unref: child.unref,
  };
}

async function startServer(
  options: EmbeddedClickHouseOptions,
  { log, lock_fd }: PartOptions,
): Promise<{ child: Child; port: number }> {
  const until = performance.now() + TAKEOVER_MS;
  const server = { name: 'ClickHouse', command: process.execPath, args: SERVER, env: SERVER_ENV };
  for (;;) {
    const child = startChild({ ...server, log, lock_fd });
    child.process.stdin?.write(`${JSON.stringify(options)}\n`);
    const line = await child.waitForLine(/^(ready|failed) /, READY_MS).catch(async (error: Error) => {
      await endProcess(child);
      throw error;
    });
    if (line.startsWith('ready ')) return { child, port: Number(line.slice('ready '.length)) };
    await endProcess(child);
    const locked = child.lastLines().some((logged) => logged.includes('Cannot lock file'));
    if (locked && performance.now() < until) continue;
    if (locked) throw inUse(options.dir);
    throw new Error(`ClickHouse could not be started in ${options.dir}: ${child.lastLines().join('; ')}`);
  }
}

function inUse(dir: string): Error {
  return new Error(
    `The ClickHouse directory ${dir} is in use by another process: stop it, or choose another data directory.`,
  );
}

const SERVER = [
  '--import',
  new URL('../../../process/typescript.mjs', import.meta.url).href,
  fileURLToPath(new URL('./clickhouse-server.ts', import.meta.url)),
];

/**
 * Environment of the server. Statements occupy threads of Node's pool, and with the default of 4 the server could not read files meanwhile.
 */
const SERVER_ENV = { PATH: '/usr/bin:/bin', TZ: 'UTC', LANG: 'C.UTF-8', UV_THREADPOOL_SIZE: '16' };

/** Ends the server by ending its input: it then finishes its statements and closes the directory. */
async function endProcess(child: Child): Promise<void> {
  child.expectExit();
  child.process.stdin?.end();
  const ended = await child.waitForExit(STOP_MS).then(
    () => true,
    () => false,
  );
  if (ended) return;
  child.process.kill('SIGKILL');
  await child.waitForExit(STOP_MS);
}
