/**
 * Export destination in a directory. Each file is written under a temporary name beside its final name, synced, and
 * renamed when it is complete.
 */
import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { FarthingError, unavailable } from '../../core/foundation/error.ts';
import type { ExportDestination, LocalFile, NewFile, WrittenFile } from '../export-destination.ts';

export function createDirectoryDestination(root: string): ExportDestination {
  return {
    write: (file) => writeBelow(root, file),
    takeAway: async (key, { begun, is_named }) => {
      const path = join(root, key);
      await withDiskErrors(rm(toPartialPath(path, begun), { force: true }));
      if (is_named) await withDiskErrors(rm(path, { force: true }));
    },
    read: async (key) => (await readBelow(root, key)).bytes as AsyncIterable<Buffer>,
    linkTo: async () => null,
  };
}

async function writeBelow(root: string, { key, bytes, signal, begun, onBegin }: NewFile): Promise<WrittenFile> {
  const path = join(root, key);
  if (begun !== null) await withDiskErrors(rm(toPartialPath(path, begun), { force: true }));
  const mark = randomBytes(8).toString('hex');
  await onBegin(mark);
  await withDiskErrors(mkdir(dirname(path), { recursive: true, mode: 0o750 }));
  const unfinished = toPartialPath(path, mark);
  const file = await withDiskErrors(open(unfinished, 'wx', 0o640));
  try {
    for await (const piece of bytes) {
      signal.throwIfAborted();
      await withDiskErrors(file.writeFile(piece));
    }
    await withDiskErrors(file.sync());
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  } finally {
    await file.close();
  }
  return {
    url: `file:${key}`,
    commit: async () => {
      await withDiskErrors(rename(unfinished, path));
      await withDiskErrors(syncDirectory(dirname(path)));
    },
    discard: () => rm(unfinished, { force: true }),
  };
}

/** Turns a disk error into a `service_unavailable` error with its code (such as ENOSPC), so that an operator sees what to fix. */
async function withDiskErrors<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    throw unavailable(`the directory for exports (${(error as NodeJS.ErrnoException).code})`, error);
  }
}

function toPartialPath(path: string, mark: string): string {
  return `${path}.${mark}.partial`;
}

/** Syncs the directory: without this, a power loss may lose the name of a file whose bytes are on the disk. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/** Opens the file below the root that has this key. */
export async function readBelow(root: string, key: string): Promise<LocalFile> {
  const path = join(root, key);
  try {
    const { size } = await stat(path);
    return { bytes: createReadStream(path), size };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new FarthingError('not_found', 'the file is not there any more');
  }
}
