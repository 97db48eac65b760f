/**
 * The proof of an invoice as a document (docs/proof.md): what stands on it, and of each usage line whose events were counted, by which
 * definition of the meter, up to where, and the root of the Merkle tree over them. Who has it and the events can compute the rest.
 */
import { z } from 'zod';
import { CountedScope } from '../invoice/computed-from.ts';
import { Invoice, InvoiceLineItem } from '../invoice/record.ts';
import { aggregationShape, filterShape, RESET_USAGES } from '../meter/record.ts';
import { decimalText, timestampText } from '../record.ts';
import { Seal } from './seal.ts';

export const PROOF_FORMAT = 'farthing-invoice-proof-1';

/** Whose events a usage line counted, by what, and until where. */
export const CountedLine = z
  .object({
    meter: z
      .object({
        id: z.string(),
        version: z.int().meta({ description: 'Of the definition that counted.' }),
        event_name: z.string().meta({ description: 'Of the events that it counts.' }),
        aggregation: aggregationShape.meta({ description: 'How they become one number.' }),
        filters: z.array(filterShape).meta({ description: 'All of which an event must pass.' }),
        reset_usage: z.enum(RESET_USAGES).meta({ description: 'NEVER counts from the start of the subscription.' }),
      })
      .meta({ description: 'As it was defined when the line was computed.' }),
    ...CountedScope.shape,
    window_start: timestampText.meta({ description: 'Events at this instant or later.' }),
    window_end: timestampText.meta({ description: 'Events before this instant.' }),
    marks: z
      .record(z.string(), z.string())
      .meta({ description: 'Of each partition of the log the first offset that is not counted.' }),
    ends: z.record(z.string(), z.string()).meta({
      description: 'Of each partition where the definition of the meter has ended: the first offset behind it.',
    }),
  })
  .meta({ id: 'InvoiceProofCounted' });
export type CountedLine = z.infer<typeof CountedLine>;

export const LineProof = z
  .object({
    line: InvoiceLineItem.meta({ description: 'As it stands on the invoice.' }),
    price_unit: z
      .object({
        code: z.string().meta({ description: 'Of the price unit.' }),
        conversion_rate: z.string().meta({ description: 'What one of it is in money.' }),
      })
      .nullable()
      .meta({ description: 'Of a price in a unit of your own: its code, and what one of it is in money; null else.' }),
    counted: CountedLine.nullable().meta({ description: 'Of a usage line; null else.' }),
    seal: Seal.nullable().meta({ description: 'Of a usage line: the digest of its events; null else.' }),
    not_sealed: z
      .string()
      .nullable()
      .meta({ description: 'Why a usage line has no digest: what its events come to is not what it says.' }),
    taken_as_stated: z.array(z.string()).meta({
      description: 'What of the line the document cannot show, in words: whoever checks it takes that as it is stated.',
    }),
  })
  .meta({ id: 'InvoiceLineProof' });
export type LineProof = z.infer<typeof LineProof>;

const amount = decimalText;

/** What a coupon took off, and its terms as they were. */
export const CouponProof = z
  .object({
    coupon_id: z.string().meta({ description: 'The coupon.' }),
    coupon_association_id: z.string().nullable().meta({ description: 'By which a subscription has it; null else.' }),
    line_id: z.string().nullable().meta({ description: 'The line that it was taken off; null of the invoice.' }),
    terms: z.record(z.string(), z.unknown()).nullable().meta({ description: 'The coupon as it was.' }),
    original_price: amount.meta({ description: 'From what it was taken off.' }),
    discounted_amount: amount.meta({ description: 'What it took off.' }),
  })
  .meta({ id: 'InvoiceCouponProof' });

/** What a rate came to, and its terms. */
export const TaxProof = z
  .object({
    tax_rate_id: z.string().meta({ description: 'The rate.' }),
    name: z.string().meta({ description: 'Of the rate.' }),
    tax_rate_type: z.string().meta({ description: 'percentage or fixed.' }),
    percentage_value: amount.nullable().meta({ description: 'Of a percentage rate: how many percent; null else.' }),
    fixed_value: amount.nullable().meta({ description: 'Of a fixed rate: how much; null else.' }),
    tax_behavior: z.string().meta({ description: 'exclusive was added, inclusive is in the amounts.' }),
    is_given_back: z.boolean().meta({ description: 'Whether it goes with what lines give back.' }),
    taxable_amount: amount.meta({ description: 'What was taxed.' }),
    tax_amount: amount.meta({ description: 'The tax.' }),
  })
  .meta({ id: 'InvoiceTaxProof' });

export const InvoiceProof = z
  .object({
    format: z.literal(PROOF_FORMAT).meta({ description: 'The version of this document.' }),
    minor_units: z.int().meta({ description: 'Decimals of the currency by ISO 4217, to which money is rounded.' }),
    invoice: Invoice.meta({ description: 'As it is kept, without its lines.' }),
    lines: z.array(LineProof).meta({ description: 'In the order of the invoice.' }),
    coupons: z.array(CouponProof).meta({ description: 'In the order in which they took something off.' }),
    taxes: z.array(TaxProof).meta({ description: 'In the order in which they were applied.' }),
  })
  .meta({ id: 'InvoiceProof' });
export type InvoiceProof = z.infer<typeof InvoiceProof>;

const hex = z.string();

/** That one event is among those of a line: the hashes beside the way from its leaf to the root. */
export const EventProof = z
  .object({
    format: z.literal(PROOF_FORMAT).meta({ description: 'The version of this document.' }),
    invoice_id: z.string().meta({ description: 'The invoice whose lines count the event.' }),
    event_id: z.string().meta({ description: 'The event.' }),
    lines: z
      .array(
        z.object({
          line_id: z.string().meta({ description: 'A line that counts the event.' }),
          event_count: z.int().meta({ description: 'How many events the line counts.' }),
          index: z.int().meta({ description: 'Which of them it is, by time and id, from 0.' }),
          leaf: z
            .object({
              event_id: z.string(),
              timestamp_us: z.string().meta({ description: 'Microseconds since 1970.' }),
              external_customer_id: z.string().meta({ description: 'Whose event it is.' }),
              value: z.string().meta({ description: 'The number or text that is counted; empty of COUNT.' }),
              group: z.string().meta({ description: 'Of a meter with groups; else empty.' }),
            })
            .meta({ description: 'What the line took of the event, in the order in which it is hashed.' }),
          leaf_hash: hex.meta({ description: 'SHA-256 of a byte 0 and the leaf, in hexadecimal digits.' }),
          path: z
            .array(
              z.object({
                side: z.enum(['left', 'right']).meta({ description: 'On which side of the way it stands.' }),
                hash: hex.meta({ description: 'In hexadecimal digits.' }),
              }),
            )
            .meta({ description: 'The hashes beside the way to the root, the first beside the leaf.' }),
          root: hex.meta({ description: 'The same as in the proof of the invoice.' }),
        }),
      )
      .meta({ description: 'At least one.' }),
  })
  .meta({ id: 'InvoiceEventProof' });
export type EventProof = z.infer<typeof EventProof>;
