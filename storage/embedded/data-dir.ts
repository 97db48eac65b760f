import { existsSync } from 'node:fs';
import { arch, platform } from 'node:os';
import { join, resolve } from 'node:path';
import { makeDirectory } from '../foundation/make-directory.ts';
import { isAliveHere, type LockHolder, readHolder, tryLockFile } from './file-lock.ts';

export interface DataDirectory {
  path: string;
  /**
   * True if a version without the kernel's lock signed the file last: its process may run in a container that is
   * invisible here.
   */
  is_of_earlier_version: boolean;
  /** Writes the owner into the lock file. */
  sign(): void;
  release(): void;
}

const LOCK = 'farthing.lock';

/**
 * Opens the directory of a single-machine installation: creates it, and locks it for the lifetime of this process. A process
 * without this lock reads, changes or removes nothing in the directory.
 */
export function openDataDirectory(path: string): DataDirectory {
  checkPlatform();
  const dir = resolve(path);
  const file = join(dir, LOCK);
  const lock = explainUnwritable(dir, () => {
    makeDirectory(dir, 0o711); // Others may pass, so that Postgres can have a user of its own; the parts below are closed.
    return tryLockFile(file);
  });
  const { text, holder } = readHolder(file);
  if (!lock) throw new DataDirectoryInUse(dir, holder);
  // A version without the kernel's lock runs here: its file stays unchanged.
  if (holder && isAliveHere(holder)) {
    lock.release();
    throw new DataDirectoryInUse(dir, holder);
  }
  return {
    path: dir,
    is_of_earlier_version: text !== '' && holder?.host === undefined,
    sign: () => explainUnwritable(dir, lock.sign),
    release: lock.release,
  };
}

export class DataDirectoryInUse extends Error {
  constructor(dir: string, holder: LockHolder | undefined) {
    super(`The data directory ${dir} is in use by ${describe(holder)}: stop it, or choose another directory.`);
  }
}

/** Describes the holder of the lock with its container, because a pid alone means nothing in another container. */
function describe(holder: LockHolder | undefined): string {
  if (!holder) return 'another process';
  return holder.host === undefined ? `process ${holder.pid}` : `process ${holder.pid} on ${holder.host}`;
}

/** Whether the directory contains an installation. Commands that only read check this, because opening the stores would create one. */
export function hasInstallation(path: string): boolean {
  return existsSync(join(path, 'postgres', 'data'));
}

/** Throws if the native engines do not exist for this platform; the stores must then be given by URL. */
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

/**
 * Explains an error of writing to the data directory. It names the setting, because another DATA_DIR solves a full disk, a read-only mount
 * and a directory of another user.
 */
export function explainUnwritable<Result>(dir: string, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
    const why = `The data directory ${dir} is not writable (DATA_DIR names another): ${(error as Error).message}`;
    throw new Error(why, { cause: error });
  }
}
