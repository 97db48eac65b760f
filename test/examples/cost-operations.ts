/** The operation of cost analytics, by the function that its answers come from. */
import { z } from 'zod';
import { Decimal } from '../../core/foundation/decimal.ts';
import { computeMargin } from '../../core/invoicing/costs/margin.ts';
import type { Result } from './compare.ts';

const given = z.object({ total_revenue: z.coerce.string(), total_cost: z.coerce.string() });

export function costFigures(asked: Result): Result {
  const { total_revenue, total_cost } = given.parse(asked);
  const figures = computeMargin(new Decimal(total_revenue), new Decimal(total_cost));
  return Object.fromEntries(Object.entries(figures).map(([name, figure]) => [name, figure.toFixed()]));
}
