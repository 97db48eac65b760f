import { execFileSync } from 'node:child_process';
import { existsSync, linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { arch, platform } from 'node:os';
import { join, resolve } from 'node:path';
import { makeDirectory } from '../make-directory.ts';

export interface DataDirectory {
  path: string;
  /** Gives the directory free for another process. */
  release(): void;
}

const LOCK = 'farthing.lock';

/**
 * Opens the directory that holds everything of a single-machine installation: creates it, checks that it can be written
 * and takes it for this process alone. A lock left by a process that no longer lives is taken over.
 */
export function openDataDirectory(path: string): DataDirectory {
  checkPlatform();
  const dir = resolve(path);
  const lock = join(dir, LOCK);
  const mine = JSON.stringify({ pid: process.pid, started: processStart(process.pid) });
  const draft = `${lock}.${process.pid}`;
  writing(dir, () => {
    makeDirectory(dir, 0o711); // Others may pass, so that Postgres can have a user of its own; the parts below are closed.
    writeFileSync(draft, mine, { mode: 0o600 });
  });
  try {
    while (!linked(draft, lock)) takeStaleLockAway(dir, lock);
  } finally {
    rmSync(draft, { force: true });
  }
  return {
    path: dir,
    release: () => {
      if (read(lock) === mine) rmSync(lock, { force: true });
    },
  };
}

/** Whether a service has ever run in the directory, as whoever only looks wants to know before it makes one. */
export function holdsInstallation(path: string): boolean {
  return existsSync(join(path, 'postgres', 'data'));
}

/** The native engines exist for these platforms only; everywhere else the stores are given by URL. */
export function checkPlatform(
  system: string = platform(),
  machine: string = arch(),
  glibc: boolean = hasGlibc(),
): void {
  const known_machine = machine === 'x64' || machine === 'arm64';
  if (known_machine && (system === 'darwin' || (system === 'linux' && glibc))) return;
  const here = `${system}${system === 'linux' && !glibc ? ' without glibc' : ''} ${machine}`;
  throw new Error(
    `The built-in Postgres and ClickHouse need Linux with glibc or macOS on x64 or arm64, and this is ${here}: ` +
      'use docker compose, or set DATABASE_URL and CLICKHOUSE_URL to servers of your own.',
  );
}

function hasGlibc(): boolean {
  const report = process.report?.getReport() as { header?: { glibcVersionRuntime?: string } } | undefined;
  return report?.header?.glibcVersionRuntime !== undefined;
}

/** A hard link appears with its content or not at all, so nobody ever reads half a lock. */
function linked(draft: string, lock: string): boolean {
  try {
    linkSync(draft, lock);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

function takeStaleLockAway(dir: string, lock: string): void {
  const content = read(lock);
  if (content === undefined) return; // Its holder has just released it.
  const holder = parseLock(content);
  if (holder && processStart(holder.pid) === holder.started) {
    throw new Error(
      `The data directory ${dir} is in use by process ${holder.pid}: stop it, or choose another directory.`,
    );
  }
  const aside = `${lock}.stale.${process.pid}`;
  try {
    renameSync(lock, aside);
  } catch {
    return; // Somebody else took it away first; the next attempt to link decides.
  }
  // Between the reading and the renaming another process may have taken the stale lock over: then this one is alive.
  if (read(aside) !== content) linked(aside, lock);
  rmSync(aside, { force: true });
}

function parseLock(content: string): { pid: number; started: string } | undefined {
  try {
    const { pid, started } = JSON.parse(content);
    return Number.isInteger(pid) && typeof started === 'string' && started !== '' ? { pid, started } : undefined;
  } catch {
    return undefined;
  }
}

/** When the process started, in the system's own words; empty when there is no such process. Tells a reused pid apart. */
export function processStart(pid: number): string {
  if (platform() === 'linux') {
    const stat = read(`/proc/${pid}/stat`) ?? '';
    const boot = read('/proc/sys/kernel/random/boot_id')?.trim() ?? '';
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // Field 3 is the state: a zombie holds nothing any more. Field 22 is the start time in ticks since boot.
    return stat === '' || fields[0] === 'Z' ? '' : `${boot}:${fields[19]}`;
  }
  try {
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim();
  } catch {
    return '';
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

function writing(dir: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    const why = `The data directory ${dir} is not writable (DATA_DIR names another): ${(error as Error).message}`;
    throw new Error(why, { cause: error });
  }
}
