/**
 * Locks that the kernel holds on a file. It releases a lock when the last process with the locked descriptor has ended, in whatever
 * way. It identifies the file by its inode, so all paths, mounts and namespaces of the machine share the lock.
 */
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  statfsSync,
  statSync,
  writeSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { processStart } from './process-start.ts';

/** The process that wrote its name into the lock file. The name is for people: only the kernel knows whether the lock is taken. */
export type LockHolder = { readonly pid: number; readonly started: string; readonly host?: string };

export type FileLock = {
  /** Every process that inherits the descriptor holds the lock as well. */
  readonly fd: number;
  /** Writes the owner into the file, which is unchanged until then. */
  sign(): void;
  /** Clears the signature. A file that was never signed stays unchanged. */
  release(): void;
};

/** Locks the file for this process; `undefined` if another process has the lock. The file is created if missing, and never removed. */
export function tryLockFile(path: string): FileLock | undefined {
  for (;;) {
    const fd = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
    let is_taken = false;
    try {
      if (!tryLock(fd, path)) return undefined;
      // Between opening and locking, another process may have replaced the file, as versions without this lock did.
      if (statSync(path, { throwIfNoEntry: false })?.ino !== fstatSync(fd).ino) continue;
      checkLockHolds(path);
      is_taken = true;
      return lockOn(fd);
    } finally {
      if (!is_taken) closeSync(fd);
    }
  }
}

function lockOn(fd: number): FileLock {
  let is_signed = false;
  const sign = () => {
    is_signed = true;
    ftruncateSync(fd);
    // The file is written in place: a new file would have another inode, and so another lock.
    writeSync(fd, describeOurselves(), 0);
  };
  const release = () => {
    try {
      if (is_signed) ftruncateSync(fd);
    } catch {
      // A disk that accepts no writes must not prevent the release of the lock.
    }
    closeSync(fd);
  };
  return { fd, sign, release };
}

function describeOurselves(): string {
  const holder: LockHolder = { pid: process.pid, started: processStart(process.pid), host: hostname() };
  return JSON.stringify(holder);
}

/**
 * Reads the signature of a lock file. `text` is empty if there is none; `holder` is absent if the text is no valid
 * signature.
 */
export function readHolder(path: string): { text: string; holder?: LockHolder } {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return { text: '' };
  }
  const holder = parseHolder(text);
  return holder ? { text, holder } : { text };
}

function parseHolder(text: string): LockHolder | undefined {
  try {
    const { pid, started, host } = JSON.parse(text) as Partial<LockHolder>;
    if (!Number.isInteger(pid) || typeof started !== 'string' || started === '') return undefined;
    return { pid: pid!, started, ...(typeof host === 'string' ? { host } : {}) };
  } catch {
    return undefined;
  }
}

/**
 * Whether the process that signed the file runs and is visible here. A process in another container is invisible and
 * may run as well.
 */
export function isAliveHere({ pid, started }: LockHolder): boolean {
  return pid !== process.pid && processStart(pid) === started;
}

type Extensions = { tryLock(fd: number): boolean };
let extensions: Extensions | undefined;

/** Loads the native library, which only processes with embedded stores need. */
function loadExtensions(): Extensions {
  try {
    extensions ??= createRequire(import.meta.url)('fs-native-extensions') as Extensions;
    return extensions;
  } catch (error) {
    throw new Error(
      `The package fs-native-extensions cannot be loaded (${(error as Error).message.split('\n')[0]}), and without it nothing ` +
        'keeps a second process out of the data directory: run npm ci again, or set DATABASE_URL and CLICKHOUSE_URL.',
      { cause: error },
    );
  }
}

function tryLock(fd: number, path: string): boolean {
  const { tryLock: take } = loadExtensions();
  try {
    return take(fd);
  } catch (error) {
    throw lacksLocks(path, (error as NodeJS.ErrnoException).code ?? (error as Error).message);
  }
}

/** Throws if the file system grants every lock: a second descriptor then gets the lock, too. */
function checkLockHolds(path: string): void {
  const second = openSync(path, constants.O_RDWR);
  try {
    if (tryLock(second, path)) throw lacksLocks(path, 'it grants the same lock twice');
  } finally {
    closeSync(second);
  }
}

function lacksLocks(path: string, why: string): Error {
  return new Error(
    `The file system of ${dirname(path)} keeps no locks (${why}), so a second start would destroy what the first one writes: ` +
      'put DATA_DIR on a disk of this machine.',
  );
}

/** Names of file systems by their type on Linux (statfs(2)). */
const SHARED_FILE_SYSTEMS = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB2'],
  [0x01021997, '9p'],
  [0x65735546, 'FUSE'],
  [0x00c36400, 'Ceph'],
  [0x0bd00bd0, 'Lustre'],
  [0x786f4256, 'VirtualBox'],
]);

/** Returns the name of the file system if other machines may have mounted it, too: their locks may be invisible here. */
export function findSharedFileSystem(path: string): string | undefined {
  return SHARED_FILE_SYSTEMS.get(statfsSync(path).type >>> 0);
}
