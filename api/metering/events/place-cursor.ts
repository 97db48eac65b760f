/** Cursors of lists in the order of receipt: an opaque text of the last place of a page. */
import { z } from 'zod';
import { invalid } from '../../../core/foundation/error.ts';
import type { UncountedPlace } from '../../../storage/events/uncounted-events.ts';

const whole = z.int().min(0);
const Place = z.tuple([z.int(), whole.max(65_535), whole, whole.max(4_294_967_295), z.string()]);

export const cursorField = z
  .string()
  .optional()
  .transform((text) => text || undefined)
  .meta({
    description: '`next_cursor` of an answer, for the page after it, which neither repeats nor skips an event.',
  });

export function formatPlaceCursor(place: UncountedPlace): string {
  const { received_at_us, partition, offset, position, meter_id } = place;
  return Buffer.from(JSON.stringify([received_at_us, partition, offset, position, meter_id])).toString('base64url');
}

export function parsePlaceCursor(cursor: string | undefined): UncountedPlace | null {
  if (cursor === undefined) return null;
  try {
    const parts = Place.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString()));
    const [received_at_us, partition, offset, position, meter_id] = parts;
    return { received_at_us, partition, offset, position, meter_id };
  } catch {
    throw invalid('cursor', 'must be the next_cursor of an answer');
  }
}
