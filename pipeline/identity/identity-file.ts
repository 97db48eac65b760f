/**
 * The file of a closed interval of the log (`identity-filter.ts` reads it). It has the hashes themselves, from which larger files are
 * built, and a filter over them. The lowest bits of the hash's upper half divide it into parts, so building a file never takes more memory
 * than one part needs.
 *
 *   header · filter and hashes of part 0 … n · directory
 *
 * A checksum covers every byte. The directory has two checksums per part, one for its filter and one for its hashes. The header has the
 * checksum of the directory and its own. The manifest repeats the header's checksum and the length of the file. No data is used before its
 * checksum was compared.
 */
import { closeSync, fsyncSync, openSync, renameSync, writeSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { type FuseFilter, makeFuseFilter } from './fuse-filter.ts';

type IdentityPart = Omit<FuseFilter, 'fingerprints'> & {
  readonly keys: number;
  /** Offset of the part's fingerprints in the file; the hashes of the part follow directly after them. */
  readonly at: number;
  readonly filter_bytes: number;
  readonly filter_crc: number;
  readonly keys_crc: number;
};

/** Length and checksum by which the manifest identifies a file, so that an older or foreign file is detected. */
export type FileSeal = { readonly bytes: number; readonly header_crc: number };

/** The file differs from the bytes written. Every cause has one remedy: the files are rebuilt. */
export class DamagedFile extends Error {}

/** Source of the ids of a new file, one part after the other. `parts` is a power of two. */
export type IdentitySource = { readonly parts: number; readPairs(part: number): Uint32Array | Promise<Uint32Array> };

const MAGIC = 'farthing identities 2\n';
const HEADER_BYTES = MAGIC.length + 16;
const DIRECTORY_AT_MOST = 16 * 1024 * 1024;

/** Writes the file whole or not at all; yields to the event loop between the parts. */
export async function writeIdentityFile(path: string, source: IdentitySource): Promise<FileSeal> {
  const draft = `${path}.draft`;
  const file = openSync(draft, 'w', 0o600);
  try {
    const parts: IdentityPart[] = [];
    let at = HEADER_BYTES;
    for (let index = 0; index < source.parts; index++) {
      const { part, bytes } = buildPart(sortDistinct(await source.readPairs(index)), at);
      for (const some of bytes) at += writeAll(file, some, at);
      parts.push(part);
      await new Promise((resolve) => setImmediate(resolve));
    }
    const seal = writeDirectory(file, at, parts);
    fsyncSync(file);
    renameSync(draft, path);
    return seal;
  } finally {
    closeSync(file);
  }
}

function buildPart(pairs: Uint32Array, at: number): { part: IdentityPart; bytes: Uint8Array[] } {
  const { fingerprints, ...filter } = makeFuseFilter(pairs);
  const hashes = new Uint8Array(pairs.buffer, pairs.byteOffset, pairs.byteLength);
  const checks = { filter_crc: crc32(fingerprints), keys_crc: crc32(hashes) };
  const part = { ...filter, keys: pairs.length / 2, at, filter_bytes: fingerprints.length, ...checks };
  return { part, bytes: [fingerprints, hashes] };
}

function writeDirectory(file: number, at: number, parts: readonly IdentityPart[]): FileSeal {
  const directory = Buffer.from(JSON.stringify(parts));
  if (directory.length > DIRECTORY_AT_MOST) throw new Error('an identity file has too many parts');
  const header = Buffer.alloc(HEADER_BYTES);
  header.write(MAGIC);
  header.writeDoubleLE(at, MAGIC.length);
  header.writeUInt32LE(crc32(directory), MAGIC.length + 8);
  const header_crc = crc32(header.subarray(0, HEADER_BYTES - 4));
  header.writeUInt32LE(header_crc, HEADER_BYTES - 4);
  writeAll(file, directory, at);
  writeAll(file, header, 0);
  return { bytes: at + directory.length, header_crc };
}

function writeAll(file: number, bytes: Uint8Array, at: number): number {
  for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done, bytes.length - done, at + done);
  return bytes.length;
}

/** Sorts the keys and removes duplicates, because a filter cannot be built from repeated keys. */
export function sortDistinct(pairs: Uint32Array): Uint32Array {
  const keys = new BigUint64Array(pairs.length / 2);
  for (let key = 0; key < keys.length; key++)
    keys[key] = (BigInt(pairs[key * 2]!) << 32n) | BigInt(pairs[key * 2 + 1]!);
  keys.sort();
  const result = new Uint32Array(pairs.length);
  let next = 0;
  for (let key = 0; key < keys.length; key++) {
    if (key > 0 && keys[key] === keys[key - 1]) continue;
    result[next++] = Number(keys[key]! >> 32n);
    result[next++] = Number(keys[key]! & 0xffffffffn);
  }
  return result.slice(0, next);
}

export function joinPairs(some: readonly Uint32Array[]): Uint32Array {
  const all = new Uint32Array(some.reduce((length, pairs) => length + pairs.length, 0));
  let at = 0;
  for (const pairs of some) {
    all.set(pairs, at);
    at += pairs.length;
  }
  return all;
}

type Handle = Awaited<ReturnType<typeof open>>;

/** An open file whose header and directory are valid. Other data is compared with its checksum when it is read. */
export class IdentityFile {
  readonly path: string;
  readonly parts: readonly IdentityPart[];
  readonly seal: FileSeal;
  readonly #handle: Handle;

  static async open(path: string, seal: FileSeal): Promise<IdentityFile> {
    const handle = await open(path, 'r');
    try {
      return new IdentityFile(path, { handle, seal, parts: await readDirectory(path, handle, seal) });
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  private constructor(path: string, of: { handle: Handle; seal: FileSeal; parts: IdentityPart[] }) {
    this.path = path;
    this.parts = of.parts;
    this.seal = of.seal;
    this.#handle = of.handle;
  }

  /** File descriptor for synchronous reads. */
  get descriptor(): number {
    return this.#handle.fd;
  }

  async readFilter(index: number): Promise<FuseFilter> {
    const { seed, segment_length, segment_count, at, filter_bytes, filter_crc } = this.parts[index]!;
    const fingerprints = await this.#checked({ at, length: filter_bytes, crc: filter_crc });
    return { seed, segment_length, segment_count, fingerprints };
  }

  async readPairs(index: number): Promise<Uint32Array> {
    const { at, filter_bytes, keys, keys_crc } = this.parts[index]!;
    const bytes = await this.#checked({ at: at + filter_bytes, length: keys * 8, crc: keys_crc });
    return new Uint32Array(bytes.buffer, bytes.byteOffset, keys * 2);
  }

  /** Compares the hashes of a part with their checksum, one chunk at a time. */
  async checkPairs(index: number): Promise<void> {
    const { at, filter_bytes, keys, keys_crc } = this.parts[index]!;
    const end = at + filter_bytes + keys * 8;
    const some = new Uint8Array(Math.min(CHUNK_BYTES, keys * 8));
    let crc = 0;
    for (let from = at + filter_bytes; from < end; from += some.length) {
      const bytes = some.subarray(0, Math.min(some.length, end - from));
      await readAll(this.path, this.#handle, { bytes, at: from });
      crc = crc32(bytes, crc);
    }
    if (crc !== keys_crc) throw new DamagedFile(`${this.path} is damaged: hashes of part ${index}`);
  }

  /** Closes the file without waiting; a read in progress completes first. */
  close(): void {
    this.#handle.close().catch(() => {}); // The file was only read, so no data can be lost.
  }

  async #checked({ at, length, crc }: { at: number; length: number; crc: number }): Promise<Uint8Array> {
    const bytes = new Uint8Array(length);
    await readAll(this.path, this.#handle, { bytes, at });
    if (crc32(bytes) !== crc) throw new DamagedFile(`${this.path} is damaged between ${at} and ${at + length}`);
    return bytes;
  }
}

/** Size of a chunk. It is large enough for the speed of the disk, and small enough that its checksum does not delay other work. */
const CHUNK_BYTES = 1024 * 1024;

async function readDirectory(path: string, handle: Handle, seal: FileSeal): Promise<IdentityPart[]> {
  const { size } = await handle.stat();
  if (size !== seal.bytes) throw new DamagedFile(`${path} has ${size} bytes and not ${seal.bytes}`);
  const header = Buffer.alloc(HEADER_BYTES);
  await readAll(path, handle, { bytes: header, at: 0 });
  const crc = header.readUInt32LE(HEADER_BYTES - 4);
  if (crc !== seal.header_crc) throw new DamagedFile(`${path} is another file than the manifest names`);
  if (crc !== crc32(header.subarray(0, HEADER_BYTES - 4))) throw new DamagedFile(`${path}: its header is damaged`);
  const at = header.readDoubleLE(MAGIC.length);
  const directory = Buffer.alloc(size - at);
  await readAll(path, handle, { bytes: directory, at });
  if (crc32(directory) !== header.readUInt32LE(MAGIC.length + 8))
    throw new DamagedFile(`${path}: its directory is damaged`);
  return JSON.parse(directory.toString('utf8')) as IdentityPart[];
}

async function readAll(path: string, handle: Handle, { bytes, at }: { bytes: Uint8Array; at: number }): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesRead } = await handle.read(bytes, done, bytes.length - done, at + done);
    if (bytesRead === 0) throw new DamagedFile(`${path} is shorter than it says`);
    done += bytesRead;
  }
}
