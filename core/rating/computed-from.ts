/**
 * Inputs from which the amount of a line was computed, so that it can be derived again (docs/rules/invoices.md, "What a
 * line was computed from").
 */
import { z } from 'zod';
import { timestampText } from '../foundation/record.ts';
import { LINE_KINDS } from './line-kinds.ts';

/** Customers whose events a usage line counted, their intervals if these are not the whole window, and the timezone. */
export const CountedScope = z.object({
  customers: z
    .array(
      z.object({
        external_customer_id: z.string().meta({ description: 'External id of the customer, as in events.' }),
        times: z
          .array(
            z.object({
              start: z.string().meta({ description: 'Inclusive start; events at this instant count.' }),
              end: z.string().meta({ description: 'Exclusive end; events at this instant do not count.' }),
            }),
          )
          .nullable()
          .meta({ description: 'Half-open intervals in which events count. Null means the whole window of the line.' }),
      }),
    )
    .meta({ description: 'Customers by external id.' }),
  timezone: z.string().meta({ description: 'Timezone whose clock divides the windows of the meter.' }),
  billing_anchor: z.string().meta({ description: 'Instant on whose day months begin.' }),
});
export type CountedScope = z.infer<typeof CountedScope>;

/** Lines that were charged together with a usage line (docs/rules/proration.md, "Usage over a change"). */
const UsageLineChain = z.object({
  version: z.int().meta({ description: 'Version of the rule: 1.' }),
  rule: z.enum(['additive', 'shared', 'integral']).meta({
    description:
      'Division of usage between lines. additive: each line charges its own events. shared: one number is charged by all lines, in proportion to their time. integral: one integral over time is charged by all lines, each for its part.',
  }),
  whole_start: timestampText.meta({ description: 'Start of the whole period, also if the charged period is short.' }),
  whole_end: timestampText.meta({ description: 'End of the whole period.' }),
  begins: timestampText.meta({ description: 'Start of the billing period.' }),
  level_since: timestampText.nullish().meta({
    description: 'Instant from which events count for the level; present only for integral.',
  }),
  lines: z
    .array(
      z.object({
        line_item_id: z.string().meta({ description: 'Line item of the subscription.' }),
        start: timestampText.meta({ description: 'Start of the line’s active interval in the period.' }),
        end: timestampText.meta({ description: 'Exclusive end of the line’s active interval.' }),
      }),
    )
    .meta({ description: 'Lines in order of time, including this one.' }),
  until_begin: z.string().meta({
    description: 'Cost of the lines before this one, unrounded, before commitments, in currency units.',
  }),
  until_end: z.string().meta({
    description:
      'Cost of the lines up to and including this one. The amount is the difference of both costs, each rounded.',
  }),
});

/**
 * Inputs of a line's amount (docs/rules/invoices.md, "What a line was computed from"). Decimals are text. A fixed line
 * has only quantity and price; a usage line has all fields.
 */
export const ComputedFrom = z.object({
  price: z
    .record(z.string(), z.unknown())
    .nullish()
    .meta({ description: 'Price at the time of the computation. A later edit of the price does not change it.' }),
  meter_id: z.string().nullish(),
  meter_version: z
    .string()
    .nullish()
    .meta({ description: 'Version of the meter that measured, from 1. Each change of its definition adds 1.' }),
  window_start: timestampText.nullish().meta({ description: 'Start of the window in which events were counted.' }),
  window_end: timestampText.nullish().meta({ description: 'Exclusive end of the window.' }),
  quantity: z
    .string()
    .nullish()
    .meta({ description: 'Measured quantity. It may be below zero, which is billed as 0.' }),
  event_count: z.int().nullish().meta({ description: 'Number of counted events.' }),
  high_water: z.record(z.string(), z.string()).nullish().meta({
    description:
      'Position in the log up to which events were counted: per partition the first offset that is not in the quantity.',
  }),
  as_of: z.string().nullish().meta({ description: 'Instant before which every accepted event is counted.' }),
  buckets: z.array(z.record(z.string(), z.unknown())).nullish().meta({ description: 'Always null at present.' }),
  breakdown: z
    .array(z.record(z.string(), z.unknown()))
    .nullish()
    .meta({ description: 'Parts of the amount, one entry per tier or package step.' }),
  proration: z.string().nullish().meta({ description: 'Charged share of the period, if less than the whole.' }),
  reason: z.string().nullish().meta({
    description:
      'Human-readable reason why the line exists, if it is not the regular charge of the period, such as a late event.',
  }),
  kind: z
    .enum(LINE_KINDS)
    .nullish()
    .meta({ description: 'Kind of the line, if it is not the regular charge of the period. `reason` explains it.' }),
  less: z
    .object({
      amount: z.string().meta({ description: 'Amount in currency units.' }),
      quantity: z
        .string()
        .nullish()
        .meta({ description: 'Quantity in units of the meter; null if it was not recorded.' }),
      invoiced: z.enum(['before_period_end', 'by_other_invoices']).meta({
        description:
          'Source of the deducted amounts: invoices before the period end only, or also corrections on later invoices.',
      }),
    })
    .nullish()
    .meta({
      description: 'Amount of this charge on other invoices, which this line deducts; absent if there is none.',
    }),
  of_term: z
    .object({
      used: z.string().meta({
        description:
          'Cost of the term’s usage before this invoice, in currency units. On a true-up line it includes this invoice.',
      }),
      committed: z.string().meta({ description: 'Committed amount of the term, in currency units.' }),
      since: timestampText.nullish().meta({
        description: 'Start of the term; absent if an earlier version computed the line.',
      }),
      is_last: z.boolean().nullish().meta({
        description:
          'True if this line charges the shortfall of its commitment. Null for a commitment of the subscription.',
      }),
    })
    .nullish()
    .meta({
      description: 'Term of a commitment that covers several periods or the whole subscription; otherwise absent.',
    }),
  base_amount: z
    .string()
    .nullish()
    .meta({ description: 'Cost of the usage before a commitment; absent without a commitment.' }),
  window_terms: z
    .object({
      amount: z.string().nullable().meta({
        description: 'Committed money per window, unrounded. Null if only times of day have a commitment.',
      }),
      time_buckets: z
        .array(z.record(z.string(), z.unknown()))
        .meta({ description: 'Times of day with their own commitment and possibly their own price.' }),
    })
    .nullish()
    .meta({ description: 'Terms of a commitment per window at the time of the computation; absent without one.' }),
  allowances: z.array(z.record(z.string(), z.unknown())).nullish().meta({
    description:
      'Limits up to which usage is free, with their usage before and including this charge. For usage-ordered grants, their terms and the intervals that began with a use. Absent without entitlements.',
  }),
  allowance_parts: z
    .array(
      z.object({
        start: z.string().meta({ description: 'Start of the interval.' }),
        end: z.string().meta({ description: 'Exclusive end of the interval.' }),
        used: z.string().meta({ description: 'Units used in the interval.' }),
      }),
    )
    .nullish()
    .meta({
      description:
        'Usage of the charge in each interval in which no limit begins or ends. Only with several independent limits.',
    }),
  carried_amount: z.string().nullish().meta({
    description: 'Overbilled amount that exceeds this invoice and is deducted from the next one.',
  }),
  counted: CountedScope.nullish().meta({
    description:
      'Customers whose events were counted, and the timezone; absent if an earlier version computed the line.',
  }),
  share: z
    .object({
      part_ms: z.int().meta({ description: 'Charged milliseconds.' }),
      whole_ms: z.int().meta({ description: 'Milliseconds of the whole period.' }),
      before_ms: z.int().nullish().meta({
        description:
          'Milliseconds of the period before the charged part. The amount is the cost until the end of the part minus the cost until its start, each rounded. Absent if an earlier version computed the line.',
      }),
    })
    .nullish()
    .meta({ description: 'Charged share of the period in milliseconds, if `proration` is set.' }),
  chain: UsageLineChain.nullish().meta({
    description:
      'Consecutive usage lines of the period that are charged as one. Absent for a line that is charged by itself, and for earlier versions, which charged each line by itself.',
  }),
  billed_before: z
    .object({
      amount: z.string().meta({ description: 'Amount in currency units.' }),
      quantity: z.string().meta({ description: 'Quantity in units of the meter.' }),
    })
    .nullish()
    .meta({
      description:
        'Amount and quantity that other invoices billed for the corrected charge; absent unless the line is a correction.',
    }),
  edited: z
    .object({
      amount: z.string().meta({ description: 'Computed amount of the line, in currency units.' }),
      quantity: z.string().meta({ description: 'Computed number of units.' }),
    })
    .nullish()
    .meta({ description: 'Computed values of a line that was edited by hand since; otherwise absent.' }),
  drawn_from: z
    .literal('subscription')
    .nullish()
    .meta({ description: 'Set to subscription if the commitment belongs to the subscription as a whole.' }),
});
export type ComputedFrom = z.infer<typeof ComputedFrom>;

export type ComputedCharge = {
  readonly amount: string;
  readonly quantity: string;
  readonly computed_from?: Pick<ComputedFrom, 'edited'> | null | undefined;
};

/**
 * Amount and quantity that the rules computed for a charge, before any manual edit. Late events are compared with these, so that they do
 * not revert the edit (docs/rules/invoices.md, "Edits").
 */
export function toComputedCharge({ amount, quantity, computed_from }: ComputedCharge): {
  amount: string;
  quantity: string;
} {
  return computed_from?.edited ?? { amount, quantity };
}
