/** Encodes an id as one segment of a path. Null for an id that would name another path, and with it another operation. */
export function encodeSegment(id: string): string | null {
  return id === '' || id === '.' || id === '..' ? null : encodeURIComponent(id);
}
