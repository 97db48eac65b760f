/**
 * Locks that the kernel holds on a file. It frees one when the last process that has the locked descriptor has ended, however
 * that ended; it knows the file by its inode, so every path, mount and namespace of the machine meets the same lock.
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

/** The process that wrote its name into the lock file. The name is for people: the kernel alone knows whether the lock is taken. */
export type LockHolder = { readonly pid: number; readonly started: string; readonly host?: string };

export type FileLock = {
  /** Every process that inherits the descriptor holds the lock as well. */
  readonly fd: number;
  /** Writes into the file who has the lock; it is as it was found until then. */
  sign(): void;
  /** Clears what was signed. Without that the file stays as it was found. */
  release(): void;
};

/** Takes the lock for this process; `undefined` when another one has it. The file is made where it is missing, and never removed. */
export function tryLockFile(path: string): FileLock | undefined {
  for (;;) {
    const fd = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
    let is_taken = false;
    try {
      if (!tryLock(fd, path)) return undefined;
      // Between opening and locking somebody may have put another file in its place, as versions without this lock did.
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
    // In place: a new file would have another inode, and so another lock.
    writeSync(fd, describeOurselves(), 0);
  };
  const release = () => {
    try {
      if (is_signed) ftruncateSync(fd);
    } catch {
      // A disk that takes no writes any more must not keep the lock from being freed.
    }
    closeSync(fd);
  };
  return { fd, sign, release };
}

function describeOurselves(): string {
  const holder: LockHolder = { pid: process.pid, started: processStart(process.pid), host: hostname() };
  return JSON.stringify(holder);
}

/** `text` is empty when nobody has signed, and `holder` absent when it is nobody's signature. */
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

/** Whether the process that signed is another one that we can see. One that we cannot see may live all the same. */
export function isAliveHere({ pid, started }: LockHolder): boolean {
  return pid !== process.pid && processStart(pid) === started;
}

type Extensions = { tryLock(fd: number): boolean };
let extensions: Extensions | undefined;

/** Loaded by those alone who run stores of their own. */
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

/** Some file systems grant every lock. Then a second descriptor gets it, too. */
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

/** By the numbers of Linux (statfs(2)). */
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

/** The name of a file system that other machines may have mounted as well: of their locks we may not hear. */
export function findSharedFileSystem(path: string): string | undefined {
  return SHARED_FILE_SYSTEMS.get(statfsSync(path).type >>> 0);
}
