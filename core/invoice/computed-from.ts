/** What the amount of a line was derived from, so that it can be derived again (docs/rules/invoices.md, "What a line was computed from"). */
import { z } from 'zod';
import { timestampText } from '../record.ts';

/** Whose events a usage line counted, with the times in which they are where these are not its whole window, and by which clock. */
export const CountedScope = z.object({
  customers: z
    .array(
      z.object({
        external_customer_id: z.string().meta({ description: 'As events name the customer.' }),
        times: z
          .array(
            z.object({
              start: z.string().meta({ description: 'Events at this instant or later.' }),
              end: z.string().meta({ description: 'Events before this instant.' }),
            }),
          )
          .nullable()
          .meta({ description: 'Half-open; null is the whole window of the line.' }),
      }),
    )
    .meta({ description: 'By their external ids.' }),
  timezone: z.string().meta({ description: 'Whose clock cuts the windows of the meter.' }),
  billing_anchor: z.string().meta({ description: 'On whose day months begin.' }),
});
export type CountedScope = z.infer<typeof CountedScope>;

/** The lines with which a usage line was charged (docs/rules/proration.md, "Usage over a change"). */
const UsageLineChain = z.object({
  version: z.int().meta({ description: 'By which version of the rule: 1.' }),
  rule: z.enum(['additive', 'shared', 'integral']).meta({
    description:
      'How lines share usage: each charges its own events; all charge one number by time; all charge one integral over time.',
  }),
  whole_start: timestampText.meta({ description: 'The start of the whole period, also where the period is short.' }),
  whole_end: timestampText.meta({ description: 'The end of the whole period.' }),
  begins: timestampText.meta({ description: 'The start of the billing period.' }),
  level_since: timestampText.nullish().meta({
    description: 'Of an integral: the instant since which values make the level; else not there.',
  }),
  lines: z
    .array(
      z.object({
        line_item_id: z.string().meta({ description: 'The line item of the subscription.' }),
        start: timestampText.meta({ description: 'When it begins to be active in the period.' }),
        end: timestampText.meta({ description: 'When it ends, which is not in it.' }),
      }),
    )
    .meta({ description: 'In order of time, with this line.' }),
  until_begin: z.string().meta({
    description: 'What the lines before this one cost, not rounded, before commitments, in units of the currency.',
  }),
  until_end: z.string().meta({
    description: 'The same with this line. The amount is the difference of both, each rounded.',
  }),
});

/** What a line is when it is not the charge of its period itself; `reason` says the same to people. */
export const LINE_KINDS = [
  'overage',
  'true_up',
  'unused_time',
  'resumed',
  'late_events',
  'corrected_events',
  'threshold_surplus',
] as const;

/**
 * What a line's amount was derived from (docs/rules/invoices.md, "What a line was computed from"). Decimals are text. A
 * fixed line has only quantity and price; a usage line has all of it.
 */
export const ComputedFrom = z.object({
  price: z
    .record(z.string(), z.unknown())
    .nullish()
    .meta({ description: 'The price as it was: a later edit of the price does not change what this line says.' }),
  meter_id: z.string().nullish(),
  meter_version: z
    .string()
    .nullish()
    .meta({ description: 'Which version of the meter measured: 1, and one more with each change of what it counts.' }),
  window_start: timestampText.nullish().meta({ description: 'The start of the time in which events were counted.' }),
  window_end: timestampText.nullish().meta({ description: 'The end of that time, which is not in it.' }),
  quantity: z.string().nullish().meta({ description: 'As measured, also where it is below zero and billed as 0.' }),
  event_count: z.int().nullish().meta({ description: 'How many events were counted.' }),
  high_water: z.record(z.string(), z.string()).nullish().meta({
    description: 'How far the log had been counted: of each partition the first offset that is not in the quantity.',
  }),
  as_of: z.string().nullish().meta({ description: 'Every event that was accepted before this instant is counted.' }),
  buckets: z.array(z.record(z.string(), z.unknown())).nullish().meta({ description: 'Not kept yet: null.' }),
  breakdown: z
    .array(z.record(z.string(), z.unknown()))
    .nullish()
    .meta({ description: 'How the amount came about, one entry for each tier or package step.' }),
  proration: z
    .string()
    .nullish()
    .meta({ description: 'The share of the period that was charged, when less than all of it.' }),
  reason: z
    .string()
    .nullish()
    .meta({ description: 'Why the line exists when it is not the charge of the period itself, such as a late event.' }),
  kind: z
    .enum(LINE_KINDS)
    .nullish()
    .meta({ description: 'What the line is when it is not the charge of the period itself; `reason` says why.' }),
  less: z
    .object({
      amount: z.string().meta({ description: 'In units of the currency.' }),
      quantity: z.string().nullish().meta({ description: 'In units of the meter; null where it was not recorded.' }),
      invoiced: z
        .enum(['before_period_end', 'by_other_invoices'])
        .meta({ description: 'Before the period was over, or also by corrections on later invoices.' }),
    })
    .nullish()
    .meta({ description: 'What other invoices say of the charge, and this line is less; not there without.' }),
  of_term: z
    .object({
      used: z.string().meta({
        description:
          'What the usage of the term came to before this invoice, in units of the currency; of what was lacking with it.',
      }),
      committed: z.string().meta({ description: 'What the term was committed to.' }),
      since: timestampText.nullish().meta({
        description: 'When the term began; not there where an earlier version computed the line.',
      }),
      is_last: z.boolean().nullish().meta({
        description: 'Of a commitment of the line: whether what is lacking is charged with it; else null.',
      }),
    })
    .nullish()
    .meta({
      description: 'Of a commitment over several periods, or of the subscription: the term that it is drawn from.',
    }),
  base_amount: z
    .string()
    .nullish()
    .meta({ description: 'What the usage costs before a commitment; not there without one.' }),
  window_terms: z
    .object({
      amount: z.string().nullable().meta({
        description: 'The money committed to in each window, not rounded; null where times of day alone have some.',
      }),
      time_buckets: z
        .array(z.record(z.string(), z.unknown()))
        .meta({ description: 'Times of day with a commitment, and perhaps a price, of their own.' }),
    })
    .nullish()
    .meta({ description: 'Of a commitment of each window: its terms as they were; not there without one.' }),
  allowances: z.array(z.record(z.string(), z.unknown())).nullish().meta({
    description:
      'The limits up to which usage is free, with what was used of them before this charge and with it; of grants the stretches of time that usage began, with their terms. Not there without one.',
  }),
  allowance_parts: z
    .array(
      z.object({
        start: z.string().meta({ description: 'Where the stretch begins.' }),
        end: z.string().meta({ description: 'Where it ends; what is used then is in the next one.' }),
        used: z.string().meta({ description: 'Units that were used in it.' }),
      }),
    )
    .nullish()
    .meta({
      description:
        'Where several limits hold beside each other: what was used in each stretch of the charge within which none of them begins or ends. Not there where one is alone.',
    }),
  carried_amount: z.string().nullish().meta({
    description: 'What was invoiced too much, and comes off the next invoice because this one has no room for it.',
  }),
  counted: CountedScope.nullish().meta({
    description: 'Whose events were counted, and by which clock; not there where an earlier version computed the line.',
  }),
  share: z
    .object({
      part_ms: z.int().meta({ description: 'Milliseconds that are charged.' }),
      whole_ms: z.int().meta({ description: 'Milliseconds of the whole period.' }),
      before_ms: z.int().nullish().meta({
        description:
          'Milliseconds of the period that lie before: the amount is what the period costs until the end of the part less what it costs until its beginning, each rounded. Not there where an earlier version computed the line.',
      }),
    })
    .nullish()
    .meta({ description: 'The share of the period to the millisecond, where `proration` says one.' }),
  chain: UsageLineChain.nullish().meta({
    description:
      'The usage lines that follow one another in the period and are charged as one. Not there where a line is charged by itself, and where an earlier version computed the line, which charged each line by itself.',
  }),
  billed_before: z
    .object({
      amount: z.string().meta({ description: 'In units of the currency.' }),
      quantity: z.string().meta({ description: 'In units of the meter.' }),
    })
    .nullish()
    .meta({ description: 'Of a correction: what other invoices have said of its charge.' }),
  edited: z
    .object({
      amount: z.string().meta({ description: 'What the line came to, in units of the currency.' }),
      quantity: z.string().meta({ description: 'How many units it charged.' }),
    })
    .nullish()
    .meta({ description: 'As it was computed, where somebody has changed it by hand since.' }),
  drawn_from: z
    .literal('subscription')
    .nullish()
    .meta({ description: 'Where the commitment is one of the subscription as a whole.' }),
});
export type ComputedFrom = z.infer<typeof ComputedFrom>;

type ComputedCharge = {
  readonly amount: string;
  readonly quantity: string;
  readonly computed_from?: Pick<ComputedFrom, 'edited'> | null | undefined;
};

/** What a charge came to by the rules: what is agreed on beside them by hand is no late event (docs/rules/invoices.md, "Edits"). */
export function toComputedCharge({ amount, quantity, computed_from }: ComputedCharge): {
  amount: string;
  quantity: string;
} {
  return computed_from?.edited ?? { amount, quantity };
}
