/** Cursors of lists in the order of receipt: an opaque text of the last place of a page. */
import { z } from 'zod';
import { formatCursor, parseCursor } from '../../../core/foundation/cursor.ts';
import type { ReceiptPlace } from '../../../storage/events/uncounted-events.ts';

const whole = z.int().min(0);
const Place = z.tuple([z.int(), whole.max(65_535), whole, whole.max(4_294_967_295), z.string()]);

export const cursorField = z
  .string()
  .optional()
  .transform((text) => text || undefined)
  .meta({
    description: '`next_cursor` of an answer, for the page after it, which neither repeats nor skips an event.',
  });

export function formatPlaceCursor(place: ReceiptPlace): string {
  const { received_at_us, partition, offset, position, meter_id } = place;
  return formatCursor([received_at_us, partition, offset, position, meter_id]);
}

export function parsePlaceCursor(cursor: string | undefined): ReceiptPlace | null {
  if (cursor === undefined) return null;
  const [received_at_us, partition, offset, position, meter_id] = parseCursor(cursor, (parts) => Place.parse(parts));
  return { received_at_us, partition, offset, position, meter_id };
}
