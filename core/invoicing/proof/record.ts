/**
 * The proof of an invoice as a document (docs/proof.md): the invoice as stored, and for each usage line its customers, meter definition,
 * offsets and the root of the Merkle tree over its events. From this document and the events, anyone can recompute the roots and the
 * amounts.
 */

import { z } from 'zod';
import { decimalText, timestampText } from '../../foundation/record.ts';
import { formatTypesWithoutValue } from '../../metering/aggregations/list-types.ts';
import { aggregationShape, filterShape, RESET_USAGES } from '../../metering/meter/record.ts';
import { CountedScope } from '../../rating/computed-from.ts';
import { Invoice, InvoiceLineItem } from '../invoice/record.ts';
import { Seal } from './seal.ts';

export const PROOF_FORMAT = 'farthing-invoice-proof-1';

/** Customers, meter and offsets of the events that a usage line counted. */
export const CountedLine = z
  .object({
    meter: z
      .object({
        id: z.string(),
        version: z.int().meta({ description: 'Version of the meter definition that counted.' }),
        event_name: z.string().meta({ description: 'Name of the counted events.' }),
        aggregation: aggregationShape.meta({ description: 'Aggregation of the events to one number.' }),
        filters: z.array(filterShape).meta({ description: 'Filters of the meter; an event must pass all of them.' }),
        reset_usage: z
          .enum(RESET_USAGES)
          .meta({ description: 'Reset of the count; NEVER counts from the start of the subscription.' }),
      })
      .meta({ description: 'Meter definition at the computation of the line.' }),
    ...CountedScope.shape,
    window_start: timestampText.meta({ description: 'Start of the window: events at this instant or later count.' }),
    window_end: timestampText.meta({ description: 'End of the window: events before this instant count.' }),
    marks: z
      .record(z.string(), z.string())
      .meta({ description: 'First offset that is not counted, for each partition of the log.' }),
    ends: z.record(z.string(), z.string()).meta({
      description: 'First offset after the end of the meter definition, for each partition in which it has ended.',
    }),
  })
  .meta({ id: 'InvoiceProofCounted' });
export type CountedLine = z.infer<typeof CountedLine>;

export const LineProof = z
  .object({
    line: InvoiceLineItem.meta({ description: 'Line as it is on the invoice.' }),
    price_unit: z
      .object({
        code: z.string().meta({ description: 'Code of the price unit.' }),
        conversion_rate: z.string().meta({ description: 'Money for one price unit.' }),
      })
      .nullable()
      .meta({
        description: "Custom price unit of the line's price: its code, and the money for one unit; null without one.",
      }),
    counted: CountedLine.nullable().meta({ description: 'Counted events of a usage line; null for other lines.' }),
    seal: Seal.nullable().meta({ description: 'Digest of the events of a usage line; null for other lines.' }),
    not_sealed: z.string().nullable().meta({
      description: 'Reason why a usage line has no digest: its events do not add up to the line. Null otherwise.',
    }),
    taken_as_stated: z.array(z.string()).meta({
      description: 'Parts of the line that the document cannot prove, as text. A verifier accepts them as given.',
    }),
  })
  .meta({ id: 'InvoiceLineProof' });
export type LineProof = z.infer<typeof LineProof>;

const amount = decimalText;

/** Discount of a coupon, with the terms that the coupon had when the invoice was computed. */
const CouponProof = z
  .object({
    coupon_id: z.string().meta({ description: 'Id of the coupon.' }),
    coupon_association_id: z
      .string()
      .nullable()
      .meta({ description: 'Association by which a subscription has the coupon; null without one.' }),
    line_id: z
      .string()
      .nullable()
      .meta({ description: 'Id of the discounted line; null if the discount applies to the whole invoice.' }),
    terms: z
      .record(z.string(), z.unknown())
      .nullable()
      .meta({ description: 'Terms of the coupon when the invoice was computed.' }),
    original_price: amount.meta({ description: 'Amount before the discount.' }),
    discounted_amount: amount.meta({ description: 'Amount of the discount.' }),
  })
  .meta({ id: 'InvoiceCouponProof' });

/** Tax by one rate, and its terms. */
const TaxProof = z
  .object({
    tax_rate_id: z.string().meta({ description: 'Id of the tax rate.' }),
    name: z.string().meta({ description: 'Name of the tax rate.' }),
    tax_rate_type: z.string().meta({ description: 'Type of the rate: percentage or fixed.' }),
    percentage_value: amount
      .nullable()
      .meta({ description: 'Percentage of a percentage rate; null for a fixed rate.' }),
    fixed_value: amount.nullable().meta({ description: 'Amount of a fixed rate; null for a percentage rate.' }),
    tax_behavior: z
      .string()
      .meta({ description: 'Whether the tax was added (`exclusive`) or is contained in the amounts (`inclusive`).' }),
    is_given_back: z.boolean().meta({ description: 'Whether the tax belongs to credited lines.' }),
    taxable_amount: amount.meta({ description: 'Taxed amount.' }),
    tax_amount: amount.meta({ description: 'Amount of the tax.' }),
  })
  .meta({ id: 'InvoiceTaxProof' });

export const InvoiceProof = z
  .object({
    format: z.literal(PROOF_FORMAT).meta({ description: 'Version of this document.' }),
    minor_units: z.int().meta({ description: 'Decimals of the currency by ISO 4217; money is rounded to them.' }),
    invoice: Invoice.meta({ description: 'Invoice as it is stored, without its lines.' }),
    lines: z.array(LineProof).meta({ description: 'Lines, in the order of the invoice.' }),
    coupons: z.array(CouponProof).meta({ description: 'Discounts, in the order in which they were applied.' }),
    taxes: z.array(TaxProof).meta({ description: 'Taxes, in the order in which they were applied.' }),
  })
  .meta({ id: 'InvoiceProof' });
export type InvoiceProof = z.infer<typeof InvoiceProof>;

const hex = z.string();

/** Proves that an event is among those of a line: the sibling hashes on the path from its leaf to the root. */
export const EventProof = z
  .object({
    format: z.literal(PROOF_FORMAT).meta({ description: 'Version of this document.' }),
    invoice_id: z.string().meta({ description: 'Invoice whose lines count the event.' }),
    event_id: z.string().meta({ description: 'Id of the event.' }),
    lines: z
      .array(
        z.object({
          line_id: z.string().meta({ description: 'Line that counts the event.' }),
          event_count: z.int().meta({ description: 'Number of events that the line counts.' }),
          index: z
            .int()
            .meta({ description: 'Index of the event among the events of the line, by time and id, from 0.' }),
          leaf: z
            .object({
              event_id: z.string(),
              timestamp_us: z.string().meta({ description: 'Time of the event in microseconds since 1970.' }),
              external_customer_id: z.string().meta({ description: 'Customer of the event.' }),
              value: z
                .string()
                .meta({ description: `Counted number or text; empty for ${formatTypesWithoutValue()}.` }),
              group: z.string().meta({ description: 'Group of the event for a meter with groups; else empty.' }),
            })
            .meta({ description: 'Contribution of the event to the line, in the order in which it is hashed.' }),
          leaf_hash: hex.meta({ description: 'SHA-256 of a byte 0 and the leaf, in hexadecimal digits.' }),
          path: z
            .array(
              z.object({
                side: z.enum(['left', 'right']).meta({ description: 'Side on which the sibling hash is.' }),
                hash: hex.meta({ description: 'Sibling hash in hexadecimal digits.' }),
              }),
            )
            .meta({ description: 'Sibling hashes on the path to the root, from the leaf upwards.' }),
          root: hex.meta({ description: 'Root of the tree, equal to that in the proof of the invoice.' }),
        }),
      )
      .meta({ description: 'Lines that count the event; at least one.' }),
  })
  .meta({ id: 'InvoiceEventProof' });
export type EventProof = z.infer<typeof EventProof>;
