/** Plan shape inside another record. */
import { z } from 'zod';
import { planShape } from '../../../core/catalog/plan/record.ts';

const NOT_HERE = { description: 'Always null inside another record.' };

/** The parts are null, but their keys remain for the published client. */
export const PlanWithoutParts = planShape.extend({
  prices: z.null().meta(NOT_HERE),
  entitlements: z.null().meta(NOT_HERE),
  credit_grants: z.null().meta(NOT_HERE),
});
