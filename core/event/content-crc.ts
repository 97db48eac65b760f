/**
 * What an event says, as one number: the CRC-32 of its own fields and its properties. It tells a re-send from a conflict
 * (decisions §11). The same number as zlib's over the whole text, but taken where the parts stand in the text of a batch,
 * without making a string or a buffer per event.
 */

/** Four tables of 256: four bytes are taken at a time. */
const TABLES = tables();

export class ContentCrc {
  #state = 0;

  begin(): void {
    this.#state = -1;
  }

  /** Text of single bytes: ASCII, or a body that was decoded as latin1. */
  range(text: string, start: number, end: number): void {
    let crc = this.#state;
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
    }
    for (; at < end; at++) crc = (crc >>> 8) ^ TABLES[(crc ^ text.charCodeAt(at)) & 255]!;
    this.#state = crc;
  }

  /** A whole text of single bytes, and a zero byte behind it. */
  field(text: string): void {
    this.range(text, 0, text.length);
    this.#state = (this.#state >>> 8) ^ TABLES[this.#state & 255]!;
  }

  get value(): number {
    return ~this.#state >>> 0;
  }
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
