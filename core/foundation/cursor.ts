/** Opaque cursors of lists: the place after which a list continues, as JSON in base64url. */
import { invalid } from './error.ts';

export function formatCursor(place: readonly unknown[]): string {
  return Buffer.from(JSON.stringify(place)).toString('base64url');
}

/** Parses a cursor of a request. `parse` throws if the value is no place of the list. */
export function parseCursor<Place>(cursor: string, parse: (value: unknown) => Place): Place {
  try {
    return parse(JSON.parse(Buffer.from(cursor, 'base64url').toString()));
  } catch {
    throw invalid('cursor', 'must be the next_cursor of an answer');
  }
}
