/**
 * Encodes a parameter of type `text[]` in Postgres' binary form. In the text form each quote and backslash of a JSON
 * value would be escaped and parsed twice.
 */

const [HEADER_BYTES, LENGTH_BYTES, TEXT_OID, NULL_LENGTH] = [20, 4, 25, -1];

export function encodeTextArray(texts: readonly (string | null)[]): Buffer {
  const lengths = texts.map((text) => (text === null ? NULL_LENGTH : Buffer.byteLength(text)));
  const size = lengths.reduce((sum, length) => sum + LENGTH_BYTES + Math.max(0, length), HEADER_BYTES);
  const array = Buffer.allocUnsafe(size);
  let at = 0;
  const hasNulls = lengths.includes(NULL_LENGTH) ? 1 : 0;
  // The array has one dimension, whose indexes begin with 1.
  for (const head of [1, hasNulls, TEXT_OID, texts.length, 1]) at = array.writeInt32BE(head, at);
  for (const [index, text] of texts.entries()) {
    at = array.writeInt32BE(lengths[index]!, at);
    if (text !== null) at += array.write(text, at);
  }
  return array;
}
