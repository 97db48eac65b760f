import { randomBytes } from 'node:crypto';
import { mkdirSync, realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { endLeftOver, hasEnded, markOf, ownArguments, serversOf } from '../left-over.ts';
import type { ServerOptions } from './clickhouse-server.ts';
import { type Child, type Log, type Part, startChild } from './part.ts';

export interface ClickHouseServerOptions {
  dir: string;
  log: Log;
  /** Statements that run at the same time. */
  connections?: number;
  /** How long a statement waits for its turn before it is told to come back. */
  queue_ms?: number;
  /** What the engine may hold in memory before statements fail. */
  memory_bytes?: number;
}

const READY_MS = 60_000;
const STOP_MS = 15_000;
/** Who holds the directory without our seeing the process, as from another container, may be about to give it free. */
const TAKEOVER_MS = 8_000;

/**
 * Starts the real ClickHouse engine as a process of its own, because one process alone may own the directory. It speaks
 * ClickHouse's HTTP interface on loopback, so product code uses the standard client and cannot tell it from a server.
 */
export async function startClickHouse(options: ClickHouseServerOptions): Promise<Part> {
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
    options.log,
  );
  return {
    url: `http://${credentials.username}:${credentials.password}@127.0.0.1:${port}/default`,
    pid: child.pid,
    stop: () => endProcess(child),
    onExit: child.onExit,
    unref: child.unref,
  };
}

async function startServer(options: ServerOptions, log: Log): Promise<{ child: Child; port: number }> {
  const until = Date.now() + TAKEOVER_MS;
  const args = [...SERVER, ...ownArguments(options.dir, markOf(process.pid))];
  for (;;) {
    await endPredecessors(options.dir, log);
    const child = startChild({ name: 'ClickHouse', command: process.execPath, args, env: SERVER_ENV, log });
    child.process.stdin?.write(`${JSON.stringify(options)}\n`);
    const line = await child.waitForLine(/^(ready|failed) /, READY_MS).catch(async (error: Error) => {
      await endProcess(child);
      throw error;
    });
    if (line.startsWith('ready ')) return { child, port: Number(line.slice('ready '.length)) };
    await endProcess(child);
    const locked = child.lastLines().some((said) => said.includes('Cannot lock file'));
    if (locked && Date.now() < until) continue;
    if (locked) throw inUse(options.dir);
    throw new Error(`ClickHouse could not be started in ${options.dir}: ${child.lastLines().join('; ')}`);
  }
}

function inUse(dir: string): Error {
  return new Error(
    `The ClickHouse directory ${dir} is in use by another process: stop it, or choose another data directory.`,
  );
}

/**
 * A server whose parent was killed goes by itself when its last statements have ended, and under load it takes its time. What
 * it still does nobody waits for: it is told once more, killed when that is not enough, and waited for as long as it is there.
 */
async function endPredecessors(dir: string, log: Log): Promise<void> {
  for (const { server, owner } of serversOf(SERVER_FILE, dir)) {
    // Who was killed a moment ago is still there until the system has taken its memory back.
    if (!(await hasEnded(owner, OWNER_ENDS_MS))) throw inUse(dir);
    await endLeftOver(server, { name: 'ClickHouse', signals: ENDING, log });
  }
}

const OWNER_ENDS_MS = 3_000;
const ENDING = [
  ['SIGTERM', 5_000],
  ['SIGKILL', 5_000],
] as const;

const SERVER_FILE = fileURLToPath(new URL('./clickhouse-server.ts', import.meta.url));
const SERVER = ['--import', new URL('../../../process/typescript.mjs', import.meta.url).href, SERVER_FILE];

/** Statements occupy threads of Node's pool: with the default of 4 the server could not read a file meanwhile. */
const SERVER_ENV = { PATH: '/usr/bin:/bin', TZ: 'UTC', LANG: 'C.UTF-8', UV_THREADPOOL_SIZE: '16' };

/** The end of its input asks the server to finish its statements and to close the directory. */
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
