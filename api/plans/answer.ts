/** A plan as it is shown inside of another record: without its own parts, whose keys the published client needs. */
import { z } from 'zod';
import { planShape } from '../../core/plan/record.ts';

const NOT_HERE = { description: 'Not shown inside of another record: null.' };

export const PlanWithoutParts = planShape.extend({
  prices: z.null().meta(NOT_HERE),
  entitlements: z.null().meta(NOT_HERE),
  credit_grants: z.null().meta(NOT_HERE),
});
