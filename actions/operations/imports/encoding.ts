/**
 * Recognizes and decodes the encoding of a file (docs/rules/imports.md, "Files"). Each text decodes in one way, so a resumed import reads
 * the same rows.
 */
import { isAscii, isUtf8 } from 'node:buffer';
import { type FarthingError, invalid } from '../../../core/foundation/error.ts';
import type { FileEncoding } from '../../../core/platform/import/mapping/record.ts';
import { decodeUtf8, findPackedFault } from './utf8.ts';

/** Recognizes the encoding as the bytes arrive. */
export class EncodingDetector {
  readonly #file_type: 'CSV' | 'JSON';
  #first: Buffer = Buffer.alloc(0);
  /** Bytes of the last piece after its last ASCII character: a character may continue in the next piece. */
  #rest: Buffer = Buffer.alloc(0);
  #hasUtf8 = false;
  #hasOther = false;
  #hasUnassigned = false;
  #highBytes = 0;
  #highBytesInRuns = 0;

  constructor(file_type: 'CSV' | 'JSON') {
    this.#file_type = file_type;
  }

  add(piece: Buffer): void {
    if (this.#first.length < 4) this.#first = Buffer.concat([this.#first, piece.subarray(0, 4)]);
    for (let from = 0; from < piece.length; from += PART_BYTES) this.#addPart(piece.subarray(from, from + PART_BYTES));
  }

  #addPart(part: Buffer): void {
    if (this.#hasUtf8 && this.#hasOther) return;
    if (this.#rest.length === 0 && isAscii(part)) return;
    // A long run, such as Chinese text, is decided by its beginning.
    if (this.#rest.length > PART_BYTES) this.#decideRest();
    const bytes = this.#rest.length === 0 ? part : Buffer.concat([this.#rest, part]);
    let end = bytes.length;
    while (end > 0 && bytes[end - 1]! >= 0x80) end--;
    this.#scan(bytes.subarray(0, end));
    this.#rest = bytes.subarray(end);
  }

  /** Examines each run of bytes that are not ASCII by itself: an encoding with one byte per character has none that are UTF-8. */
  #scan(bytes: Buffer): void {
    for (let from = 0; from < bytes.length; from++) {
      if (bytes[from]! < 0x80) continue;
      let to = from;
      while (to < bytes.length && bytes[to]! >= 0x80) to++;
      this.#take(bytes.subarray(from, to));
      from = to;
    }
  }

  #take(run: Buffer): void {
    this.#hasUnassigned ||= UNASSIGNED.some((byte) => run.includes(byte));
    this.#highBytes += run.length;
    if (run.length >= 3) this.#highBytesInRuns += run.length;
    if (run.length > 0 && isUtf8(run)) this.#hasUtf8 = true;
    else this.#hasOther = true;
  }

  #decideRest(): void {
    // The last character may be incomplete.
    const run = this.#rest;
    const lengths = [0, 1, 2, 3].map((cut) => run.subarray(0, run.length - cut));
    if (run.length > 0) this.#take(lengths.find((bytes) => bytes.length > 0 && isUtf8(bytes)) ?? run);
    this.#rest = Buffer.alloc(0);
  }

  /** A byte order mark decides before the encoding that a mapping states. */
  choose(required: FileEncoding | null): FileEncoding {
    return findByForm(this.#first, required) ?? this.#recognize();
  }

  /**
   * Recognizes the encoding of all bytes. A CSV file whose bytes are not UTF-8 is WINDOWS-1252 if no part of it is UTF-8; otherwise it is a broken UTF-8
   * file, which its decoder reports.
   */
  #recognize(): FileEncoding {
    this.#decideRest();
    const isBroken = this.#hasUtf8 || this.#file_type === 'JSON' || findPackedFault(this.#first) !== undefined;
    if (!this.#hasOther || isBroken) return 'UTF-8';
    // Languages of Windows-1252 have few letters beyond ASCII in a row; Cyrillic or Chinese text has many.
    if (this.#hasUnassigned || this.#highBytesInRuns * 2 > this.#highBytes)
      throw invalid(
        'file',
        'is neither UTF-8 nor Windows-1252: save the file as UTF-8, or name its encoding in a mapping',
      );
    return 'WINDOWS-1252';
  }
}

/** Finds the encoding that needs only the first bytes. */
function findByForm(first: Buffer, required: FileEncoding | null): FileEncoding | undefined {
  return findMark(first) ?? required ?? findUtf16(first);
}

/** Reads the byte order mark. */
function findMark([one, two, three]: Buffer): FileEncoding | undefined {
  if (one === 0xef && two === 0xbb && three === 0xbf) return 'UTF-8';
  if (one === 0xff && two === 0xfe) return 'UTF-16LE';
  return one === 0xfe && two === 0xff ? 'UTF-16BE' : undefined;
}

/** UTF-16 has one zero byte in each Latin letter, first or second. */
function findUtf16([one, two]: Buffer): FileEncoding | undefined {
  if (one === undefined || two === undefined || (one === 0) === (two === 0)) return undefined;
  return one === 0 ? 'UTF-16BE' : 'UTF-16LE';
}

/** Bytes without a character in Windows-1252. */
const UNASSIGNED = [0x81, 0x8d, 0x8f, 0x90, 0x9d];
const PART_BYTES = 16_384;

type EncodingTerms = { readonly file_type: 'CSV' | 'JSON'; readonly required: FileEncoding | null };

export function chooseEncoding(bytes: Buffer, { file_type, required }: EncodingTerms): FileEncoding {
  const known = findByForm(bytes.subarray(0, 4), required);
  if (known !== undefined) return known;
  // Most files are UTF-8, and this check is much faster than the detector.
  if (isUtf8(bytes)) return 'UTF-8';
  const detector = new EncodingDetector(file_type);
  detector.add(bytes);
  return detector.choose(required);
}

/** Decodes a file in this encoding, without its byte order mark. */
export function decodeText(pieces: AsyncIterable<Buffer>, encoding: FileEncoding): AsyncGenerator<string> {
  if (encoding === 'UTF-8') return decodeUtf8(pieces);
  return encoding === 'WINDOWS-1252' ? decodeWindows1252(pieces) : decodeUtf16(pieces, encoding);
}

async function* decodeUtf16(pieces: AsyncIterable<Buffer>, encoding: FileEncoding): AsyncGenerator<string> {
  const decoder = new TextDecoder(encoding.toLowerCase(), { fatal: true });
  const decode = (bytes?: Buffer) => {
    try {
      return decoder.decode(bytes, { stream: bytes !== undefined });
    } catch {
      throw invalid('file', `is not ${encoding}: save the file as UTF-8, or name its encoding in a mapping`);
    }
  };
  for await (const piece of pieces) {
    const text = decode(piece);
    if (text !== '') yield text;
  }
  const last = decode();
  if (last !== '') yield last;
}

/** Characters 0x80 to 0x9F of Windows-1252; a blank has no character. */
const HIGH = '€ ‚ƒ„…†‡ˆ‰Š‹Œ Ž  ‘’“”•–—˜™š›œ žŸ';

async function* decodeWindows1252(pieces: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let line = 1;
  for await (const piece of pieces) {
    const text = piece.toString('latin1').replace(/[\n\u0080-\u009f]/g, (character) => {
      if (character === '\n') {
        line++;
        return character;
      }
      const real = HIGH[character.charCodeAt(0) - 0x80]!;
      if (real === ' ') throw buildByteError(line);
      return real;
    });
    yield text;
  }
}

function buildByteError(line: number): FarthingError {
  return invalid(`line ${line}`, 'is neither UTF-8 nor Windows-1252: save the file as UTF-8');
}
