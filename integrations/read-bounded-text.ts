/** Reads the body of an answer; throws if it is longer, so that a faulty server cannot fill the memory. */
export async function readBoundedText(response: Response, bytes_max: number): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of response.body ?? []) {
    bytes += part.byteLength;
    if (bytes > bytes_max) throw new Error('its answer is too long');
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}
