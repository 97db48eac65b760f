/**
 * Bytes of the embedded log, in files below one directory. Postgres has their order: the row of a record has the position of its bytes, and
 * is written after they are on the disk. So a crash leaves at most unreferenced bytes at the end of a file. Only the process that created a
 * file appends to it. After a failure the state of the file on the disk is unknown: it gets no more appends, and a new file is begun. The
 * table `log_segments` lists the files. A file is created after its row and removed after its row. Postgres deletes the row only if no
 * record refers to it.
 */

import { constants, type FileHandle, mkdir, open, readdir, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Knex } from 'knex';
import { syncDirectory } from '../../foundation/sync-directory.ts';

export type SegmentPosition = {
  readonly segment: string;
  readonly position: number;
  readonly length: number;
  readonly crc32: number;
};

type SegmentOptions = {
  directory: string;
  /** True if no other process uses the directory, so that unreferenced files can be removed. */
  sole_owner?: boolean;
  segment_bytes_max?: number;
};

const SEGMENT_BYTES_MAX = 64 * 1024 * 1024;
const REMOVED_EVERY_MS = 5_000;
const SUFFIX = '.segment';

/** Bytes of the log are missing or damaged; only an operator can restore them. */
export class SegmentDamaged extends Error {}

type Current = { segment: string; file: FileHandle; position: number };

export async function openSegmentFiles(postgres: Knex, options: SegmentOptions): Promise<SegmentFiles> {
  await mkdir(options.directory, { recursive: true, mode: 0o700 });
  syncDirectory(dirname(options.directory));
  const files = new SegmentFiles(postgres, options);
  if (options.sole_owner) await files.takeOver();
  return files;
}

export class SegmentFiles {
  readonly #postgres: Knex;
  readonly #directory: string;
  readonly #bytesMax: number;
  #current: Current | null = null;
  /** Closed segments, which get no more appends. */
  readonly #closed = new Set<string>();
  #removedAt = Number.NEGATIVE_INFINITY;

  constructor(postgres: Knex, { directory, segment_bytes_max }: SegmentOptions) {
    this.#postgres = postgres;
    this.#directory = directory;
    this.#bytesMax = segment_bytes_max ?? SEGMENT_BYTES_MAX;
  }

  /** Takes over the files of earlier processes: they get no more appends, and files without a row are removed. */
  async takeOver(): Promise<void> {
    const { rows } = await this.#postgres.raw('select segment from log_segments');
    for (const { segment } of rows as { segment: string }[]) this.#closed.add(segment);
    for (const name of await readdir(this.#directory)) {
      const segment = name.endsWith(SUFFIX) ? name.slice(0, -SUFFIX.length) : undefined;
      if (segment !== undefined && !this.#closed.has(segment)) await unlink(join(this.#directory, name));
    }
    await this.removeUnreferenced();
  }

  /** Resolves when the bytes are on the disk. Calls must not overlap. */
  async write(bodies: readonly Buffer[]): Promise<SegmentPosition[]> {
    const bytes = bodies.reduce((total, body) => total + body.length, 0);
    const current = await this.#withRoomFor(bytes);
    const positions = computePlaces(bodies, current);
    try {
      await writeAll(current, bodies);
      await current.file.datasync();
    } catch (error) {
      await this.#leave(current);
      throw error;
    }
    current.position += bytes;
    return positions;
  }

  /** Bytes at these positions, in order; throws if any of them are damaged. */
  async read(positions: readonly SegmentPosition[]): Promise<Buffer[]> {
    const open_files = new Map<string, FileHandle>();
    const bodies: Buffer[] = [];
    try {
      for (const position of positions) {
        let file = open_files.get(position.segment);
        if (!file) open_files.set(position.segment, (file = await this.#openToRead(position.segment)));
        bodies.push(await readAt(file, position));
      }
      return bodies;
    } finally {
      for (const file of open_files.values()) await file.close();
    }
  }

  /** Removes the files without remaining records, at most once per interval. */
  async removeSometimes(): Promise<void> {
    if (this.#closed.size === 0 || performance.now() - this.#removedAt < REMOVED_EVERY_MS) return;
    await this.removeUnreferenced();
  }

  async removeUnreferenced(): Promise<void> {
    this.#removedAt = performance.now();
    const { rows } = await this.#postgres.raw(
      `delete from log_segments s where s.segment = any(?::bigint[])
          and not exists (select from log_records r where r.segment = s.segment) returning s.segment`,
      [[...this.#closed]],
    );
    for (const { segment } of rows as { segment: string }[]) {
      this.#closed.delete(segment);
      await unlink(this.#buildPath(segment)).catch(ignoreMissing);
    }
  }

  async close(): Promise<void> {
    if (this.#current) await this.#leave(this.#current);
  }

  async #withRoomFor(bytes: number): Promise<Current> {
    const current = this.#current;
    if (current && (current.position === 0 || current.position + bytes <= this.#bytesMax)) return current;
    if (current) await this.#leave(current);
    const { rows } = await this.#postgres.raw('insert into log_segments default values returning segment');
    const segment: string = rows[0].segment;
    try {
      const file = await open(this.#buildPath(segment), 'wx', 0o600);
      this.#current = { segment, file, position: 0 };
      syncDirectory(this.#directory);
      return this.#current;
    } catch (error) {
      this.#closed.add(segment);
      if (this.#current) await this.#leave(this.#current);
      throw error;
    }
  }

  async #leave(current: Current): Promise<void> {
    this.#current = null;
    this.#closed.add(current.segment);
    // Acknowledged bytes are on the disk, so a failed close loses nothing.
    await current.file.close().catch(() => undefined);
  }

  #openToRead(segment: string): Promise<FileHandle> {
    return open(this.#buildPath(segment), constants.O_RDONLY).catch((cause) => {
      throw new SegmentDamaged(`segment ${segment} of the event log cannot be read: ${cause.message}`, { cause });
    });
  }

  #buildPath(segment: string): string {
    return join(this.#directory, `${segment}${SUFFIX}`);
  }
}

function computePlaces(bodies: readonly Buffer[], { segment, position }: Current): SegmentPosition[] {
  let at = position;
  return bodies.map((body) => {
    const position = { segment, position: at, length: body.length, crc32: crc32(body) };
    at += body.length;
    return position;
  });
}

/** Maximum number of buffers that the system accepts in one call. */
const BUFFERS_PER_CALL = 1024;

async function writeAll({ file, position }: Current, bodies: readonly Buffer[]): Promise<void> {
  let at = position;
  for (let from = 0; from < bodies.length; from += BUFFERS_PER_CALL) {
    const some = bodies.slice(from, from + BUFFERS_PER_CALL);
    const wanted = some.reduce((total, body) => total + body.length, 0);
    const { bytesWritten } = await file.writev(some, at);
    // A full disk accepts a part without an error.
    if (bytesWritten !== wanted) throw new Error(`only ${bytesWritten} of ${wanted} bytes could be written`);
    at += wanted;
  }
}

async function readAt(
  file: FileHandle,
  { segment, position, length, crc32: expected }: SegmentPosition,
): Promise<Buffer> {
  const body = Buffer.allocUnsafe(length);
  const { bytesRead } = length === 0 ? { bytesRead: 0 } : await file.read(body, 0, length, position);
  if (bytesRead !== length || crc32(body) !== expected) {
    throw new SegmentDamaged(
      `segment ${segment} of the event log is damaged: ${length} bytes at ${position} are not as written`,
    );
  }
  return body;
}

function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error;
}
