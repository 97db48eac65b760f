/**
 * Directory of the stores of a test run. It is in memory if there is enough memory, because the stores write each commit to disk as in
 * production, and thousands of tests wait for that. Tests that kill processes or break disks have their own directories.
 */
import { accessSync, constants, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { processStart } from '../../storage/embedded/process-start.ts';

const MEMORY = '/dev/shm';
/** Free memory that a directory in memory requires. Several runs may be active at the same time, each with two stores. */
const ROOM_BYTES = 8 * 1024 ** 3;
const PREFIX = 'farthing-test-';

/** Creates a directory, and deletes those of killed runs. */
export function storeDirectory(): string {
  const place = process.env.TMPDIR === undefined && hasRoom() ? MEMORY : tmpdir();
  for (const name of readdirSync(place)) {
    const pid = Number(new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1] ?? Number.NaN);
    if (pid > 0 && processStart(pid) === '') rmSync(join(place, name), { recursive: true, force: true });
  }
  return mkdtempSync(join(place, `${PREFIX}${process.pid}-`));
}

export function isInMemory(dir: string): boolean {
  return dir.startsWith(`${MEMORY}/`);
}

function hasRoom(): boolean {
  try {
    accessSync(MEMORY, constants.W_OK);
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= ROOM_BYTES;
  } catch {
    return false;
  }
}
