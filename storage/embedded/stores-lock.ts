/**
 * The lock of the store servers of a data directory. The servers and their children inherit it: when it is free, none of them runs
 * any more, in any container. The lock of the directory shows that their owner has ended; this lock shows that the servers have ended.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { platform } from 'node:os';
import { join } from 'node:path';
import type { Log } from './clickhouse/part.ts';
import { DataDirectoryInUse } from './data-dir.ts';
import { type FileLock, isAliveHere, readHolder, tryLockFile } from './file-lock.ts';

const LOCK = 'stores.lock';

/**
 * Signals to leftover servers, with the time after which each is sent. The first is Postgres' fast shutdown, the second its immediate one.
 */
const SIGNALS: readonly (readonly [after_ms: number, signal: NodeJS.Signals])[] = [
  [0, 'SIGINT'],
  [8_000, 'SIGQUIT'],
  [15_000, 'SIGKILL'],
];
const POLL_MS = 50;
const REPORT_MS = 10_000;
/** Time after which waiting for a leftover process is given up. A slow disk may delay its end. */
const GIVE_UP_MS = 60_000;

/**
 * Ends the servers of an earlier run, and takes the lock after all of them have ended. Only the owner of the directory calls it. Servers in
 * another container end by themselves after their owner; they are waited for.
 */
export async function lockStores(dir: string, log: Log): Promise<FileLock> {
  const path = join(dir, LOCK);
  const began = performance.now();
  const pending = [...SIGNALS];
  let next_report_ms = 0;
  for (;;) {
    const lock = tryLockFile(path);
    if (lock) return lock;
    const { holder } = readHolder(path);
    // The lock of the directory was removed while its owner runs.
    if (holder && isAliveHere(holder)) throw new DataDirectoryInUse(dir, holder);
    const waited_ms = performance.now() - began;
    const pids = findProcessesWith(path);
    if (waited_ms > GIVE_UP_MS) throw new Error(describeLeftOver(dir, pids));
    if (waited_ms >= next_report_ms) log(`waiting for the stores of an earlier run to end (${nameProcesses(pids)})`);
    if (waited_ms >= next_report_ms) next_report_ms += REPORT_MS;
    if (waited_ms >= (pending[0]?.[0] ?? Number.POSITIVE_INFINITY)) sendSignal(pids, pending.shift()![1]);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

function describeLeftOver(dir: string, pids: readonly number[]): string {
  return `The stores of an earlier run still work in ${dir} (${nameProcesses(pids)}): end them, then start again.`;
}

function nameProcesses(pids: readonly number[]): string {
  return pids.length === 0 ? 'processes of another container or user' : `processes ${pids.join(', ')}`;
}

function sendSignal(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      // The process has ended, or belongs to another user. `lockStores` waits for the lock in both cases.
    }
  }
}

/** Finds processes that have the file open, as far as they are visible: those of our user, or all for root. */
function findProcessesWith(path: string): number[] {
  if (platform() !== 'linux') return listOpeners(path);
  const { dev, ino } = statSync(path);
  const isIt = (descriptor: string) => {
    const found = statOrNothing(descriptor);
    return found?.ino === ino && found.dev === dev;
  };
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  return pids.filter((pid) => namesIn(`/proc/${pid}/fd`).some((fd) => isIt(`/proc/${pid}/fd/${fd}`))).map(Number);
}

function listOpeners(path: string): number[] {
  try {
    const listed = execFileSync('lsof', ['-t', '--', path], { encoding: 'utf8' });
    return listed.split('\n').filter(Boolean).map(Number);
  } catch {
    return []; // lsof exits with 1 if no process has the file open.
  }
}

function statOrNothing(path: string) {
  try {
    return statSync(path);
  } catch {
    return undefined; // The process, or its descriptor, has gone since it was listed.
  }
}

function namesIn(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return []; // The process has ended, or belongs to a user whose processes are not visible.
  }
}
