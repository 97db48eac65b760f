/** An add-on as it is shown inside of another record: without its own parts, whose keys the published client needs. */
import { z } from 'zod';
import { addonShape } from '../../core/addon/record.ts';

const NOT_HERE = { description: 'Not shown inside of another record: null.' };

export const AddonWithoutParts = addonShape.extend({
  prices: z.null().meta(NOT_HERE),
  entitlements: z.null().meta(NOT_HERE),
  credit_grants: z.null().meta(NOT_HERE),
});
