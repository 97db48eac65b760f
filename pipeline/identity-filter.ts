/**
 * Ids of a closed stretch of the log as an immutable file: the hashes themselves, from which larger files are made, and a
 * filter over them that tells an id which is not among them without a look at the store. The file is cut into parts by the
 * lowest bits of the hash's upper half, so that making a filter never takes more memory than one part.
 *
 *   header · filter of part 0 … n · hashes of part 0 … n · CRC-32 of the header's own text
 */
import { closeSync, fsyncSync, openSync, readSync, renameSync, rmSync, writeSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { type FuseFilter, fuseHas, fuseHasInMemory, makeFuseFilter } from './fuse-filter.ts';

type Part = Omit<FuseFilter, 'fingerprints'> & {
  readonly keys: number;
  /** Where its fingerprints and its hashes stand in the file. */
  readonly filter_at: number;
  readonly filter_bytes: number;
  readonly keys_at: number;
};

const MAGIC = 'farthing identities 1\n';
const HEADER_AT_MOST = 1024 * 1024;

export class IdentityFilter {
  readonly path: string;
  readonly size: number;
  readonly #file: number;
  readonly #parts: readonly Part[];
  readonly #shift: number;
  /** The fingerprints, where there is memory for them; they are read from the file otherwise. */
  #resident: FuseFilter[] | null = null;
  readonly #byte = new Uint8Array(1);

  static open(path: string): IdentityFilter {
    const file = openSync(path, 'r');
    try {
      return new IdentityFilter(path, file, readHeader(file));
    } catch (error) {
      closeSync(file);
      throw error;
    }
  }

  private constructor(path: string, file: number, parts: readonly Part[]) {
    this.path = path;
    this.#file = file;
    this.#parts = parts;
    this.size = parts.reduce((sum, part) => sum + part.keys, 0);
    this.#shift = Math.clz32(parts.length - 1);
  }

  get filter_bytes(): number {
    return this.#parts.reduce((sum, part) => sum + part.filter_bytes, 0);
  }

  get is_resident(): boolean {
    return this.#resident !== null;
  }

  /** Keeps the fingerprints in memory, or lets them go. */
  reside(inMemory: boolean): void {
    if (inMemory === this.is_resident) return;
    this.#resident = inMemory ? this.#parts.map((part) => this.#filterOf(part)) : null;
  }

  has(high: number, low: number): boolean {
    const index = (high << this.#shift) >>> this.#shift;
    const part = this.#parts[index]!;
    if (part.keys === 0) return false;
    if (this.#resident) return fuseHasInMemory(this.#resident[index]!, high, low);
    return fuseHas(part, [high, low], (place) => this.#byteAt(part.filter_at + place));
  }

  pairsOf(index: number): Uint32Array {
    const part = this.#parts[index]!;
    const bytes = this.#read(part.keys_at, part.keys * 8);
    return new Uint32Array(bytes.buffer, bytes.byteOffset, part.keys * 2);
  }

  close(): void {
    closeSync(this.#file);
  }

  remove(): void {
    this.close();
    rmSync(this.path, { force: true });
  }

  #filterOf({ seed, segment_length, segment_count, filter_at, filter_bytes }: Part): FuseFilter {
    return { seed, segment_length, segment_count, fingerprints: this.#read(filter_at, filter_bytes) };
  }

  #byteAt(position: number): number {
    if (readSync(this.#file, this.#byte, 0, 1, position) !== 1) throw new Error(`${this.path} is shorter than it says`);
    return this.#byte[0]!;
  }

  #read(position: number, length: number): Uint8Array {
    const bytes = new Uint8Array(length);
    for (let done = 0; done < length; ) {
      const read = readSync(this.#file, bytes, done, length - done, position + done);
      if (read === 0) throw new Error(`${this.path} is shorter than it says`);
      done += read;
    }
    return bytes;
  }
}

/** Where the ids of a new file come from: one part after the other. `parts` is a power of two. */
export type IdentitySource = { readonly parts: number; pairsOf(part: number): Uint32Array };

/** Writes the file whole or not at all; lets others have their turn between the parts. */
export async function writeIdentityFile(path: string, source: IdentitySource): Promise<void> {
  const draft = `${path}.draft`;
  const file = openSync(draft, 'w', 0o600);
  try {
    const written: Part[] = [];
    let at = HEADER_AT_MOST;
    for (let index = 0; index < source.parts; index++) {
      const pairs = distinct(source.pairsOf(index));
      const { fingerprints, ...filter } = makeFuseFilter(pairs);
      const keys_at = at + fingerprints.length;
      writeSync(file, fingerprints, 0, fingerprints.length, at);
      writeSync(file, new Uint8Array(pairs.buffer, pairs.byteOffset, pairs.byteLength), 0, pairs.byteLength, keys_at);
      written.push({ ...filter, keys: pairs.length / 2, filter_at: at, filter_bytes: fingerprints.length, keys_at });
      at = keys_at + pairs.byteLength;
      await new Promise((resolve) => setImmediate(resolve));
    }
    writeHeader(file, written);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(draft, path);
}

/** Sorted and each once: a filter cannot be made of keys that repeat. */
function distinct(pairs: Uint32Array): Uint32Array {
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

function writeHeader(file: number, parts: readonly Part[]): void {
  const text = Buffer.from(JSON.stringify(parts));
  const header = Buffer.alloc(MAGIC.length + 8);
  header.write(MAGIC);
  header.writeUInt32LE(text.length, MAGIC.length);
  header.writeUInt32LE(crc32(text), MAGIC.length + 4);
  if (header.length + text.length > HEADER_AT_MOST) throw new Error('an identity file has too many parts');
  writeSync(file, header, 0, header.length, 0);
  writeSync(file, text, 0, text.length, header.length);
}

function readHeader(file: number): Part[] {
  const header = Buffer.alloc(MAGIC.length + 8);
  readSync(file, header, 0, header.length, 0);
  if (header.toString('latin1', 0, MAGIC.length) !== MAGIC) throw new Error('this is no identity file');
  const text = Buffer.alloc(Math.min(header.readUInt32LE(MAGIC.length), HEADER_AT_MOST));
  readSync(file, text, 0, text.length, header.length);
  if (crc32(text) !== header.readUInt32LE(MAGIC.length + 4))
    throw new Error('the header of an identity file is damaged');
  return JSON.parse(text.toString('utf8')) as Part[];
}
