import { randomUUID } from 'node:crypto';
import { createWriteStream, mkdirSync, mkdtempSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

const MEMORY_FILES = '/dev/shm';
const MEMORY_FILES_AT_LEAST = 256 * 1024 * 1024;

export interface Spool {
  /** Writes the pieces to a new file and passes its path to `work`; the file is removed in any case. */
  withData<Result>(
    pieces: Iterable<Buffer> | AsyncIterable<Buffer>,
    work: (path: string) => Promise<Result>,
  ): Promise<Result>;
  resultPath(): string;
  /** Removes the directories. */
  close(): void;
}

/**
 * Files between the HTTP interface and the engine. Data of inserts are short-lived and go to memory if the system has enough of it
 * for files. Results may be long and go to the disk. Files of a killed predecessor are removed.
 */
export function openSpool(dir: string): Spool {
  const results = join(dir, 'spool');
  rmSync(results, { recursive: true, force: true });
  mkdirSync(results, { recursive: true, mode: 0o700 });
  const data = memoryDirectory(dir) ?? results;
  return {
    withData: async (pieces, work) => {
      const path = join(data, randomUUID());
      try {
        await pipeline(
          Readable.from(pieces, { objectMode: false }),
          createWriteStream(path, { flags: 'wx', mode: 0o600 }),
        );
        return await work(path);
      } finally {
        rmSync(path, { force: true });
      }
    },
    resultPath: () => join(results, randomUUID()),
    close: () => {
      for (const directory of [data, results]) rmSync(directory, { recursive: true, force: true });
    },
  };
}

/**
 * The name identifies the data directory by device and inode. This process has locked the data directory, so other memory directories with
 * this prefix are leftovers of dead processes. A path would not identify it: containers that share this memory each have a /data of their
 * own.
 */
function memoryDirectory(dir: string): string | undefined {
  const { dev, ino } = statSync(dir);
  const name = `farthing-${dev}-${ino}-`;
  try {
    const { bavail, bsize } = statfsSync(MEMORY_FILES);
    for (const left of readdirSync(MEMORY_FILES)) {
      if (left.startsWith(name)) rmSync(join(MEMORY_FILES, left), { recursive: true, force: true });
    }
    return bavail * bsize < MEMORY_FILES_AT_LEAST ? undefined : mkdtempSync(join(MEMORY_FILES, name));
  } catch {
    return undefined; // No such place on this system, or no permission: the disk serves as well.
  }
}
