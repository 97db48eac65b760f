/** The operations of the metering.* areas. */
import { z } from 'zod';
import { aggregationShape, checkMeter } from '../../core/catalogue/meter.ts';
import { FarthingError } from '../../core/error.ts';
import { compileExpression } from '../../core/metering/expression.ts';

export function createMeter(given: unknown) {
  const { aggregation } = z.object({ aggregation: z.unknown() }).parse(given);
  const shape = aggregationShape.safeParse(aggregation);
  if (!shape.success) return { valid: false };
  try {
    const meter = { name: 'Calls', event_name: 'call', aggregation: shape.data, filters: [] };
    checkMeter({ ...meter, reset_usage: 'BILLING_PERIOD' }, compileExpression);
    return { valid: true };
  } catch (error) {
    if (error instanceof FarthingError) return { valid: false };
    throw error;
  }
}
