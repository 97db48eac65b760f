/**
 * Decodes a file that arrives in chunks. All text before the first byte that is not UTF-8 is yielded, so that its rows are imported; the
 * error names the line (docs/rules/imports.md, "Files").
 */
import { isUtf8 } from 'node:buffer';
import { type FarthingError, invalid } from '../../../core/foundation/error.ts';

/** Removes a byte order mark. */
export async function* decodeUtf8(pieces: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8');
  let rest: Buffer = Buffer.alloc(0);
  let line = 1;
  for await (const piece of pieces) {
    if (line === 1) checkForm(piece);
    const bytes = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
    const end = computeValidLength(bytes);
    const text = decoder.decode(bytes.subarray(0, end), { stream: true });
    if (text !== '') yield text;
    line += countLines(text);
    if (end < computeWholeLength(bytes, bytes.length)) throw buildEncodingError(line);
    rest = bytes.subarray(end);
  }
  if (rest.length > 0) throw buildEncodingError(line);
}

const FORMS: readonly [begins: readonly number[], why: string][] = [
  [[0x1f, 0x8b], 'is packed with gzip: send it unpacked'],
  [[0x50, 0x4b, 0x03, 0x04], 'is a ZIP archive, as spreadsheets are: save it as CSV (UTF-8)'],
];

/** Finds the fault of a packed file by its first bytes. */
export function findPackedFault(bytes: Buffer): string | undefined {
  return FORMS.find(([begins]) => begins.every((byte, at) => bytes[at] === byte))?.[1];
}

function checkForm(bytes: Buffer): void {
  const why = findPackedFault(bytes);
  if (why) throw invalid('file', why);
}

function buildEncodingError(line: number): FarthingError {
  return invalid(
    `line ${line}`,
    'is not UTF-8: save the file as UTF-8 (a spreadsheet as "CSV UTF-8"), or name its encoding in a mapping',
  );
}

/** Number of leading bytes that are complete, valid characters. */
function computeValidLength(bytes: Buffer): number {
  let good = 0;
  let bad = bytes.length + 1;
  let at = bytes.length;
  // Binary search is possible, because bytes after an invalid byte cannot make the text valid again.
  while (good < bad - 1) {
    if (isUtf8(bytes.subarray(0, computeWholeLength(bytes, at)))) good = at;
    else bad = at;
    at = Math.floor((good + bad) / 2);
  }
  return computeWholeLength(bytes, good);
}

/** Computes the length without a character at the end that is incomplete. */
function computeWholeLength(bytes: Buffer, length: number): number {
  for (let back = 1; back <= 3 && back <= length; back++) {
    const byte = bytes[length - back]!;
    if (byte < 0x80) return length;
    if (byte >= 0xc0) return computeCharacterLength(byte) > back ? length - back : length;
  }
  return length;
}

function computeCharacterLength(first: number): number {
  return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
}

function countLines(text: string): number {
  let lines = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines++;
  return lines;
}
