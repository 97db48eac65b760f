/**
 * A disk of its own for a data directory: a small file system in a file, mounted by the loop device. It can be full, and it can
 * lose its power: what was not brought to it then is gone, while what was synced is there, by the rules of a real ext4.
 *
 *   const disk = await mountDisk({ megabytes: 400 });
 *   const after = await disk.losePower();        // processes on it must have been killed, at this instant
 *   const service = await startServiceProcess({ DATA_DIR: after.path });
 *
 * The file holds what the file system has written to its device. What is in the page cache alone is not in it, so a copy of
 * the file is the disk after a power loss; mounting the copy plays the journal, as a boot would. Needs root.
 */
import { execFile, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, statfsSync, writeFileSync } from 'node:fs';
import { rm, truncate } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryDirectory } from '../support/service.ts';

const run = promisify(execFile);

export type Disk = {
  readonly path: string;
  /** A disk with what this one would hold after a power loss; this one is gone. */
  losePower(): Promise<Disk>;
  /** Takes all the space that is left, until what it answers is called. */
  fill(): Promise<() => Promise<void>>;
  unmount(): Promise<void>;
};

export async function mountDisk({ megabytes }: { megabytes: number }): Promise<Disk> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    throw new Error('a disk of its own is mounted by root on Linux alone');
  const place = temporaryDirectory();
  chmodSync(place.path, 0o755);
  const image = join(place.path, 'disk-0.ext4');
  writeFileSync(image, '');
  await truncate(image, megabytes * 1024 * 1024);
  await run('mkfs.ext4', ['-q', '-F', '-E', 'lazy_itable_init=0,nodiscard', image]);
  return mounted({ place, image, number: 0 });
}

type Image = { place: { path: string; remove(): void }; image: string; number: number };

async function mounted({ place, image, number }: Image): Promise<Disk> {
  const path = join(place.path, `mount-${number}`);
  mkdirSync(path);
  // The journal is written when somebody syncs, and hardly ever by the clock.
  await run('mount', ['-o', 'loop,commit=300', image, path]);
  chmodSync(path, 0o755);
  // Before the directory is removed, however a test ends.
  const atExit = () => void spawnSync('umount', ['--lazy', path]);
  process.prependOnceListener('exit', atExit);
  const unmount = async () => {
    await unmounted(path);
    process.off('exit', atExit);
  };
  return {
    path,
    losePower: async () => {
      const next = join(place.path, `disk-${number + 1}.ext4`);
      await copyOfOneInstant(image, next);
      await unmount();
      return mounted({ place, image: next, number: number + 1 });
    },
    fill: () => filled(path),
    unmount: async () => {
      await unmount();
      place.remove();
    },
  };
}

/** Nothing was written to the device from the beginning of the copy to its end. */
async function copyOfOneInstant(image: string, copy: string): Promise<void> {
  const { stdout } = await run('losetup', ['--noheadings', '--output', 'NAME', '--associated', image]);
  const stat = `/sys/block/${basename(stdout.trim())}/stat`;
  for (;;) {
    const [before, inFlight] = writesOf(stat);
    await run('cp', ['--sparse=always', image, copy]);
    if (inFlight === '0' && writesOf(stat)[0] === before) return;
  }
}

/** How many writes are done, and how many requests are on their way. */
function writesOf(stat: string): [done: string, inFlight: string] {
  const fields = readFileSync(stat, 'utf8').trim().split(/\s+/);
  return [fields[4]!, fields[8]!];
}

/** Most of it at once, and the rest bit by bit: others may write meanwhile. */
async function filled(path: string): Promise<() => Promise<void>> {
  const ballast = join(path, 'ballast');
  const { bavail, bsize } = statfsSync(path);
  const most = Math.floor(bavail * bsize * 0.98);
  await run('fallocate', ['-l', String(most), ballast]);
  const rest = join(path, 'rest');
  for (let isFull = false; !isFull; ) {
    try {
      writeFileSync(rest, Buffer.alloc(1_048_576, 1), { flag: 'a' });
    } catch (error) {
      isFull = (error as NodeJS.ErrnoException).code === 'ENOSPC';
      if (!isFull) throw error;
    }
  }
  return async () => {
    await Promise.all([rm(ballast, { force: true }), rm(rest, { force: true })]);
  };
}

/** Processes that were killed may still be on it for a moment. */
async function unmounted(path: string): Promise<void> {
  for (let tries = 0; ; tries++) {
    const busy = await run('umount', [path]).then(
      () => undefined,
      (error: Error) => error,
    );
    if (!busy) return;
    if (tries === 100) throw busy;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
