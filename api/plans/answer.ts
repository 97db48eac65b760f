/** A plan as it is shown beside or inside of another record. */
import { z } from 'zod';
import { planShape } from '../../core/plan/record.ts';

const NOT_HERE = { description: 'Not shown inside of another record: null.' };

/** Without its own parts, whose keys the published client needs. */
export const PlanWithoutParts = planShape.extend({
  prices: z.null().meta(NOT_HERE),
  entitlements: z.null().meta(NOT_HERE),
  credit_grants: z.null().meta(NOT_HERE),
});
