/** A plan as it is shown inside of another record: without its own parts, whose keys the published client needs. */
import { z } from 'zod';
import { planShape } from '../../core/plan/record.ts';

export const PlanWithoutParts = planShape.extend({
  prices: z.null(),
  entitlements: z.null(),
  credit_grants: z.null(),
});
