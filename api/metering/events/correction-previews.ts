/** Previews of corrections: what a void or a replacement of an event would change (docs/rules/events.md). */
import { z } from 'zod';
import { type CorrectionPreview, previewCorrection } from '../../../actions/lifecycle/invoices/preview-correction.ts';
import { requireRead } from '../../../core/foundation/access/role.ts';
import type { Decimal } from '../../../core/foundation/decimal.ts';
import { decimalText, timestampText } from '../../../core/foundation/record.ts';
import { formatMs, formatUs } from '../../../core/foundation/time/instant.ts';
import type { ChangedLine } from '../../../core/invoicing/invoice/changed-lines.ts';
import type { CorrectedEvent } from '../../../core/metering/planned-correction.ts';
import { type Context, idParams, type Route, route } from '../../http/route.ts';
import { parseReplacement, ReplaceEventRequest } from './corrections.ts';

const PreviewReplacementRequest = ReplaceEventRequest.pick({ event: true }).meta({
  id: 'PreviewReplaceEventRequest',
  example: {
    event: {
      event_name: 'api_call',
      external_customer_id: 'acme',
      timestamp: '2026-01-31T10:00:00Z',
      properties: { tokens: 64 },
    },
  },
});

const Content = z
  .object({
    event_name: z.string(),
    external_customer_id: z.string().meta({ description: 'Customer, as in the event.' }),
    timestamp: timestampText,
    source: z.string().meta({ description: 'Source of the event; empty without one.' }),
  })
  .meta({ id: 'CorrectedEventContent' });

const MeterChange = z
  .object({
    meter_id: z.string(),
    name: z.string().meta({ description: 'Name of the meter.' }),
    aggregation: z.string().meta({ description: 'Type of the aggregation, such as SUM.' }),
    external_customer_id: z.string().meta({ description: 'Customer of the usage, as in the event.' }),
    customer_id: z.string().nullable().meta({ description: 'Id of the customer; null before it exists.' }),
    period_start: timestampText.meta({
      description: 'Start of the billing period with the event; of its month in UTC without a subscription.',
    }),
    period_end: timestampText.meta({ description: 'Exclusive end of the period.' }),
    before: decimalText.meta({ description: 'Usage of the period now, exact.' }),
    after: decimalText.meta({ description: 'Usage of the period after the correction, exact.' }),
    event_count_before: z.int().meta({ description: 'Number of counted events now.' }),
    event_count_after: z.int().meta({ description: 'Number of counted events after the correction.' }),
  })
  .meta({ id: 'CorrectedMeter' });

const ChargeChange = z
  .object({
    subscription_line_item_id: z.string().nullable().meta({ description: 'Line item that is charged.' }),
    price_id: z.string().nullable().meta({ description: 'Price of the line; null for a line without one.' }),
    meter_id: z.string().nullable().meta({ description: 'Meter of a usage line.' }),
    display_name: z.string().nullable().meta({ description: 'Description of the line.' }),
    plan_name: z.string().nullable().meta({ description: 'Plan of the line; null without one.' }),
    is_correction: z.boolean().meta({ description: 'Whether the line corrects the charge of a final invoice.' }),
    period_start: timestampText.nullable().meta({ description: 'Start of the charged time.' }),
    period_end: timestampText.nullable().meta({ description: 'Exclusive end of the charged time.' }),
    quantity_before: decimalText.meta({ description: 'Charged quantity now; 0 without the line.' }),
    quantity_after: decimalText.meta({ description: 'Charged quantity after the correction.' }),
    before: decimalText.meta({ description: 'Amount of the line now, rounded; 0 without the line.' }),
    after: decimalText.meta({ description: 'Amount of the line after the correction, rounded.' }),
    amount: decimalText.meta({
      description: 'Difference of the amounts, negative if the correction lowers the charge.',
    }),
  })
  .meta({ id: 'CorrectedCharge' });

const InvoiceChange = z
  .object({
    subscription_id: z.string().meta({ description: 'Subscription that is invoiced.' }),
    invoice_id: z
      .string()
      .nullable()
      .meta({ description: 'Open draft that changes; null for the next invoice, which does not exist yet.' }),
    currency: z.string().meta({ description: 'Currency code (ISO 4217), lowercase.' }),
    total_before: decimalText.meta({ description: 'Total now; of a draft before taxes and credits.' }),
    total_after: decimalText.meta({ description: 'Total after the correction.' }),
    charges: z.array(ChargeChange).meta({ description: 'Lines that change.' }),
  })
  .meta({ id: 'CorrectedInvoice' });

export const CorrectionPreviewAnswer = z
  .object({
    event_id: z.string(),
    before: Content.nullable().meta({ description: 'Current content; null for a voided event.' }),
    after: Content.nullable().meta({ description: 'Content after the correction; null for a void.' }),
    meters: z.array(MeterChange).meta({ description: 'Meters that count the event before or after.' }),
    invoices: z.array(InvoiceChange).meta({ description: 'Open drafts and next invoices that change.' }),
  })
  .meta({ id: 'EventCorrectionPreview' });

const common = {
  method: 'post',
  tag: 'Events',
  access: 'event:correct',
  params: idParams,
  success: 200,
  answer: CorrectionPreviewAnswer,
  idempotency: 'reads',
} as const;
const WHAT_IS_SHOWN =
  ' Shows usage of meters, lines of open drafts, and lines of the next invoice, now and after the correction. A final ' +
  'invoice does not change; its difference is a line of the next invoice. Nothing is written. Refused if the correction ' +
  'would be refused, and with 503 while the event or an earlier correction of it is being processed.';

export const correctionPreviewRoutes: Route[] = [
  route({
    ...common,
    path: '/events/:id/void/preview',
    operation_id: 'previewEventVoid',
    summary: 'Preview the void of an event',
    description: `Computes the effects of a void.${WHAT_IS_SHOWN}`,
    handle: ({ params }, context) => preview(context, { event_id: params.id, action: 'void', replacement: null }),
  }),
  route({
    ...common,
    path: '/events/:id/replace/preview',
    operation_id: 'previewEventReplacement',
    summary: 'Preview the replacement of an event',
    description: `Computes the effects of a replacement.${WHAT_IS_SHOWN}`,
    body: PreviewReplacementRequest,
    raw_body: true,
    handle: ({ params: { id } }, context) => {
      const { replacement } = parseReplacement(context, { id, shape: PreviewReplacementRequest });
      return preview(context, { event_id: id, action: 'replace', replacement });
    },
  }),
];

type CorrectionPreviewInput = Omit<Parameters<typeof previewCorrection>[2], 'now'>;

async function preview({ services, scope, principal, now }: Context, input: CorrectionPreviewInput) {
  requireRead(principal, 'invoice', 'the effect of a correction on invoices');
  return showPreview(await previewCorrection(services, scope, { ...input, now }));
}

function showPreview({ correction, meters, invoices }: CorrectionPreview) {
  const { event_id, before, after } = correction;
  return {
    event_id,
    before: showContent(before),
    after: showContent(after),
    meters: meters.map(({ meter, external_customer_id, customer, period, ...usage }) => ({
      meter_id: meter.id,
      name: meter.name,
      aggregation: meter.aggregation.type,
      external_customer_id,
      customer_id: customer?.id ?? null,
      period_start: formatMs(period.start),
      period_end: formatMs(period.end),
      before: usage.before.quantity.toFixed(),
      after: usage.after.quantity.toFixed(),
      event_count_before: usage.before.event_count,
      event_count_after: usage.after.event_count,
    })),
    invoices: invoices.map(({ subscription, lines, ...invoice }) => ({
      ...invoice,
      subscription_id: subscription.id,
      charges: lines.map(showCharge),
    })),
  };
}

function showContent(content: CorrectedEvent | null) {
  if (content === null) return null;
  const { event_name, external_customer_id, timestamp_us, source } = content;
  return { event_name, external_customer_id, timestamp: formatUs(timestamp_us), source };
}

function showCharge({ line, before, after }: ChangedLine) {
  const text = (value: Decimal) => value.toFixed();
  return {
    subscription_line_item_id: line.subscription_line_item_id ?? null,
    price_id: line.price_id ?? null,
    meter_id: line.meter_id ?? null,
    display_name: line.display_name ?? null,
    plan_name: line.plan_display_name ?? null,
    is_correction: Boolean(line.parent_line_item_id),
    period_start: line.period_start ?? null,
    period_end: line.period_end ?? null,
    quantity_before: text(before.quantity),
    quantity_after: text(after.quantity),
    before: text(before.amount),
    after: text(after.amount),
    amount: text(after.amount.minus(before.amount)),
  };
}
