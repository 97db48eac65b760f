/** Writes a screenshot with a palette of 256 colours, which a page of text and few hues hardly shows, in a third of the bytes. */
import { crc32, deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const COLOURS_MAX = 256;
const LENGTH_BYTES = 4;
const TYPE_BYTES = 4;

/** The picture has 8 bits a channel, red, green and blue, with or without alpha, as Chromium writes it. */
export function shrinkPng(png: Buffer): Buffer {
  const chunks = readChunks(png);
  const header = chunks.find(({ type }) => type === 'IHDR')!.data;
  const [width, height, depth, colour] = [header.readUInt32BE(0), header.readUInt32BE(4), header[8], header[9]];
  if (depth !== 8 || (colour !== 2 && colour !== 6))
    throw new Error(`a PNG of depth ${depth} and colour type ${colour}`);
  const channels = colour === 2 ? 3 : 4;
  const packed = Buffer.concat(chunks.filter(({ type }) => type === 'IDAT').map(({ data }) => data));
  const pixels = removeFilters(inflateSync(packed), { width, height, channels });
  const colours = new Uint32Array(width * height);
  for (let at = 0; at < colours.length; at++) {
    const from = at * channels;
    colours[at] = (pixels[from]! << 16) | (pixels[from + 1]! << 8) | pixels[from + 2]!;
  }
  const { palette, indexes } = choosePalette(colours);
  const rows = Buffer.alloc((width + 1) * height);
  for (let row = 0; row < height; row++)
    rows.set(indexes.subarray(row * width, (row + 1) * width), row * (width + 1) + 1);
  const newHeader = Buffer.from(header);
  newHeader[9] = 3;
  const data = deflateSync(rows, { level: 9, memLevel: 9 });
  return Buffer.concat([
    SIGNATURE,
    ...[['IHDR', newHeader] as const, ['PLTE', palette] as const, ['IDAT', data] as const].map(writeChunk),
    writeChunk(['IEND', Buffer.alloc(0)]),
  ]);
}

type PngChunk = { readonly type: string; readonly data: Buffer };

function readChunks(png: Buffer): PngChunk[] {
  const chunks: PngChunk[] = [];
  for (let at = SIGNATURE.length; at < png.length; ) {
    const length = png.readUInt32BE(at);
    const begin = at + LENGTH_BYTES + TYPE_BYTES;
    chunks.push({ type: png.toString('latin1', at + LENGTH_BYTES, begin), data: png.subarray(begin, begin + length) });
    // A checksum follows the data.
    at = begin + length + 4;
  }
  return chunks;
}

function writeChunk([type, data]: readonly [string, Buffer]): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const [length, checksum] = [Buffer.alloc(LENGTH_BYTES), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  checksum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, checksum]);
}

type Shape = { readonly width: number; readonly height: number; readonly channels: number };

/** Each row begins with the number of its filter, which stores a byte as a difference to its neighbours. */
function removeFilters(rows: Buffer, { width, height, channels }: Shape): Uint8Array {
  const size = width * channels;
  const pixels = new Uint8Array(size * height);
  for (let row = 0; row < height; row++) {
    const filter = rows[row * (size + 1)]!;
    const [from, to] = [row * (size + 1) + 1, row * size];
    for (let at = 0; at < size; at++) {
      const left = at >= channels ? pixels[to + at - channels]! : 0;
      const above = row > 0 ? pixels[to + at - size]! : 0;
      const corner = row > 0 && at >= channels ? pixels[to + at - size - channels]! : 0;
      pixels[to + at] = rows[from + at]! + predict(filter, { left, above, corner });
    }
  }
  return pixels;
}

function predict(filter: number, { left, above, corner }: { left: number; above: number; corner: number }): number {
  if (filter === 0) return 0;
  if (filter === 1) return left;
  if (filter === 2) return above;
  if (filter === 3) return (left + above) >> 1;
  const base = left + above - corner;
  const [toLeft, toAbove, toCorner] = [Math.abs(base - left), Math.abs(base - above), Math.abs(base - corner)];
  if (toLeft <= toAbove && toLeft <= toCorner) return left;
  return toAbove <= toCorner ? above : corner;
}

/** The most frequent colours; each other colour becomes the nearest of them. */
function choosePalette(colours: Uint32Array): { palette: Buffer; indexes: Uint8Array } {
  const counts = new Map<number, number>();
  for (const colour of colours) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  const chosen = [...counts]
    .sort(([, a], [, b]) => b - a)
    .slice(0, COLOURS_MAX)
    .map(([colour]) => colour);
  const indexOf = new Map(chosen.map((colour, index) => [colour, index]));
  for (const colour of counts.keys()) if (!indexOf.has(colour)) indexOf.set(colour, findNearest(colour, chosen));
  const palette = Buffer.from(chosen.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  return { palette, indexes: Uint8Array.from(colours, (colour) => indexOf.get(colour)!) };
}

function findNearest(colour: number, chosen: readonly number[]): number {
  let [nearest, least] = [0, Infinity];
  for (const [index, other] of chosen.entries()) {
    const distance = [16, 8, 0].reduce(
      (sum, shift) => sum + (((colour >> shift) & 255) - ((other >> shift) & 255)) ** 2,
      0,
    );
    if (distance < least) [nearest, least] = [index, distance];
  }
  return nearest;
}
