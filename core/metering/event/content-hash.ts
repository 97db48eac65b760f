/**
 * Represents the content of an event as two 32-bit numbers: the CRC-32 of its fields and properties, and an independent
 * second hash. Together they distinguish a duplicate from a conflict (docs/rules/identity.md, "The same id with other
 * content"). Two different contents have equal pairs once in 2^64. A sender who searches for such a pair gains nothing of
 * value (docs/decisions/0003).
 *
 * Both are computed in the text of a batch in one pass, without a string or a buffer per event. The CRC is zlib's over
 * all parts with a zero byte between them. The second hash takes four characters at a time and the length of each part
 * after it. It is never 0, because 0 marks events that were stored before this hash existed.
 */

/** Four tables of 256 entries, because four bytes are taken at a time. */
const TABLES = tables();

export class ContentHash {
  #crc = 0;
  #hash = 0;

  begin(): void {
    this.#crc = -1;
    this.#hash = 0x243f6a88;
  }

  /** Adds a part of the content and its terminator. The text has one character per byte: ASCII, or a body that was decoded as latin1. */
  field(text: string, start = 0, end = text.length): void {
    this.last(text, start, end);
    this.#crc = (this.#crc >>> 8) ^ TABLES[this.#crc & 255]!;
  }

  /** Adds the last part, without a terminator. */
  last(text: string, start = 0, end = text.length): void {
    let crc = this.#crc;
    let hash = this.#hash;
    let at = start;
    for (const last = end - 3; at < last; at += 4) {
      const word =
        text.charCodeAt(at) |
        (text.charCodeAt(at + 1) << 8) |
        (text.charCodeAt(at + 2) << 16) |
        (text.charCodeAt(at + 3) << 24);
      crc ^= word;
      crc =
        TABLES[768 + (crc & 255)]! ^
        TABLES[512 + ((crc >>> 8) & 255)]! ^
        TABLES[256 + ((crc >>> 16) & 255)]! ^
        TABLES[crc >>> 24]!;
      hash = Math.imul(hash ^ word, 0x9e3779b1);
      hash ^= hash >>> 15;
    }
    for (; at < end; at++) {
      const byte = text.charCodeAt(at);
      crc = (crc >>> 8) ^ TABLES[(crc ^ byte) & 255]!;
      hash = Math.imul(hash ^ byte, 0x85ebca6b);
      hash ^= hash >>> 13;
    }
    this.#crc = crc;
    this.#hash = Math.imul(hash ^ (end - start), 0xc2b2ae35);
  }

  get crc(): number {
    return ~this.#crc >>> 0;
  }

  get hash(): number {
    let hash = Math.imul(this.#hash ^ (this.#hash >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    return (hash ^ (hash >>> 16)) >>> 0 || 1;
  }
}

/** The parts of an event's content, in this order; `time` in microseconds, '' if the sender sent none. */
type ContentParts = {
  readonly name: string;
  readonly customer: string;
  readonly customer_id: string;
  readonly source: string;
  readonly time: string;
  /** JSON text of the `properties` object. */
  readonly properties: string;
};

export function hashContent(hash: ContentHash, parts: ContentParts): ContentHash {
  const { name, customer, customer_id, source, time, properties } = parts;
  hash.begin();
  for (const part of [name, customer, customer_id, source, time]) hash.field(toLatin1(part));
  hash.last(toLatin1(properties));
  return hash;
}

function toLatin1(text: string): string {
  return Buffer.from(text).toString('latin1');
}

function tables(): Int32Array {
  const found = new Int32Array(1024);
  for (let index = 0; index < 256; index++) {
    let crc = index;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
    found[index] = crc;
  }
  for (let index = 0; index < 256; index++) {
    for (let table = 256; table < 1024; table += 256) {
      const before = found[index + table - 256]!;
      found[index + table] = (before >>> 8) ^ found[before & 255]!;
    }
  }
  return found;
}
