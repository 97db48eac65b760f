/** Request shapes of single lines: overrides of a plan price, and lines in addition to those of the plan. */
import { z } from 'zod';
import { criticalFields } from '../catalog/price/record.ts';
import { decimalText, keyText, metadata, orNull, timestampText, withoutEffect } from '../foundation/record.ts';
import { lineCommitmentFields } from '../rating/commitments/line-item-commitment.ts';
import { inlinePriceShape } from './inline-price.ts';

/** Terms of one plan price that apply to this subscription instead of the plan's own. */
export const overrideLineItemShape = z.object({
  price_id: z.string().meta({ description: 'Price of the plan. Each price is named once.' }),
  quantity: orNull(decimalText).meta({ description: 'Units of a FIXED price. Default: its `min_quantity`, or 1.' }),
  ...criticalFields,
});

/** A line in addition to those of the plan, with its own dates and quantity. Its price exists already or is created with it. */
export const extraLineItemShape = z.object({
  price_id: orNull(z.string()).meta({
    description: 'Id of an existing price. Exactly one of `price_id` and `price` is required.',
  }),
  price: orNull(inlinePriceShape).meta({
    description: 'Price that is created with the line. Exactly one of `price` and `price_id` is required.',
  }),
  quantity: orNull(decimalText).meta({ description: 'Units of a FIXED price. Default: its `min_quantity`, or 1.' }),
  start_date: orNull(timestampText).meta({
    description: 'Instant from which the line is charged. Default: the start of the subscription.',
  }),
  end_date: orNull(timestampText).meta({
    description: 'Exclusive end of the line. Default: the end of the subscription.',
  }),
  display_name: orNull(keyText).meta({
    description: 'Description of the invoice line. Default: the name of the price.',
  }),
  metadata,
  subscription_phase_id: orNull(z.string()).meta({
    description: 'Refused, because a phase of a new subscription has its own `line_items`.',
  }),
  // A line of a new subscription is always charged for its own dates.
  proration_behavior: withoutEffect,
  ...lineCommitmentFields,
});

export type ExtraLineItem = Omit<z.output<typeof extraLineItemShape>, 'proration_behavior'> & {
  /** Set only for a line that is added later. */
  proration_behavior?: 'create_prorations' | 'none' | null;
};
