/** What a request says of single lines: in the place of a price of the plan, or beside the plan. */
import { z } from 'zod';
import { lineCommitmentFields } from '../commitment/line-item-commitment.ts';
import { criticalFields } from '../price/record.ts';
import { decimalText, keyText, metadata, orNull, timestampText, withoutEffect } from '../record.ts';
import { inlinePriceShape } from './inline-price.ts';

/** One entry per price: what this subscription pays instead of the plan's own terms. */
export const overrideLineItemShape = z.object({
  price_id: z.string().meta({ description: 'The price of the plan, named once.' }),
  quantity: orNull(decimalText).meta({ description: 'Units of a FIXED price; its `min_quantity`, or 1, when absent.' }),
  ...criticalFields,
});

/** A line beside the plan's: a price that exists or is made with it, its own dates and quantity. */
export const extraLineItemShape = z.object({
  price_id: orNull(z.string()).meta({ description: 'A price that exists; this or `price`.' }),
  price: orNull(inlinePriceShape).meta({ description: 'A price of its own, made with the line; this or `price_id`.' }),
  quantity: orNull(decimalText).meta({ description: 'Units of a FIXED price; its `min_quantity`, or 1, when absent.' }),
  start_date: orNull(timestampText).meta({
    description: 'From when on it is charged; from the start of the subscription when absent.',
  }),
  end_date: orNull(timestampText).meta({
    description: 'Until when, exclusive; until the end of the subscription when absent.',
  }),
  display_name: orNull(keyText).meta({
    description: 'What an invoice line is called; the name of the price when absent.',
  }),
  metadata,
  subscription_phase_id: orNull(z.string()).meta({
    description: 'Nothing: a phase of a new subscription states its `line_items` itself.',
  }),
  // A line of a new subscription is always charged for its own dates.
  proration_behavior: withoutEffect,
  ...lineCommitmentFields,
});

export type ExtraLineItem = Omit<z.output<typeof extraLineItemShape>, 'proration_behavior'> & {
  /** Of a line that is added later. */
  proration_behavior?: 'create_prorations' | 'none' | null;
};
