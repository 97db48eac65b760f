/** Answer shape of an add-on inside another record. Its related records are null, but their keys remain for the published client. */
import { z } from 'zod';
import { addonShape } from '../../../core/catalog/addon/record.ts';

const NOT_HERE = { description: 'Always null inside another record.' };

export const AddonWithoutParts = addonShape.extend({
  prices: z.null().meta(NOT_HERE),
  entitlements: z.null().meta(NOT_HERE),
  credit_grants: z.null().meta(NOT_HERE),
});
