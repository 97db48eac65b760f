/** The operations of the metering.* areas. */
import { z } from 'zod';
import { aggregationShape, checkMeter } from '../../core/catalogue/meter.ts';
import { FarthingError } from '../../core/error.ts';

export function createMeter(given: unknown) {
  const { aggregation } = z.object({ aggregation: z.unknown() }).parse(given);
  const shape = aggregationShape.safeParse(aggregation);
  if (!shape.success) return { valid: false };
  try {
    checkMeter({ name: 'Calls', event_name: 'call', aggregation: shape.data, filters: [], reset_usage: 'NEVER' });
    return { valid: true };
  } catch (error) {
    if (error instanceof FarthingError) return { valid: false };
    throw error;
  }
}
