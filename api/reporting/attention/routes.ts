/** GET /dashboard/attention: what needs a person, for the first page of a console. */
import { z } from 'zod';
import { listAttention } from '../../../actions/reporting/attention/list-attention.ts';
import { canRead } from '../../../core/foundation/access/role.ts';
import { timestampText, toEnumValues } from '../../../core/foundation/record.ts';
import { ATTENTION_KINDS } from '../../../core/platform/attention.ts';
import { type Route, route } from '../../http/route.ts';
import { withBounds } from '../../metering/usage/query-fields.ts';
import { CurrencyAmount } from '../summaries/schema.ts';

const KINDS = toEnumValues(ATTENTION_KINDS);

const AttentionItem = z
  .object({
    kind: z.enum(KINDS).meta({
      description:
        'Kind of the records. payment_failed and invoice_overdue are final invoices with an unpaid amount, ' +
        'invoice_draft_waiting complete drafts, events_not_counted and dead_letters events of the last 7 days, ' +
        'alert_in_alarm alerts, task_failed imports and exports of the last 7 days, webhook_failing endpoints.',
    }),
    count: z.int().meta({ description: 'Number of records, at least 1. Events are counted up to 1,000.' }),
    is_minimum: z.boolean().meta({ description: 'True if there may be more records than `count`.' }),
    amounts: z
      .array(CurrencyAmount)
      .meta({ description: 'Unpaid or due amounts of the invoices, one per currency; empty for other kinds.' }),
    oldest_at: timestampText.meta({ description: 'Instant since which the oldest counted record needs attention.' }),
    sample_ids: z
      .array(z.string())
      .meta({ description: 'Ids of up to 5 records, the oldest first; of events the newest first.' }),
  })
  .meta({ id: 'AttentionItem' });

export const AttentionAnswer = z
  .object({ items: z.array(AttentionItem).meta({ description: 'One item per kind with records, in a fixed order.' }) })
  .meta({ id: 'AttentionResponse' });

export const attentionRoutes: Route[] = [
  route({
    method: 'get',
    path: '/dashboard/attention',
    operation_id: 'getAttention',
    summary: 'List what needs attention',
    description:
      'Counts failed payments, overdue invoices, waiting drafts, events that are not counted, alerts, failed tasks and ' +
      'failing webhook endpoints. Kinds without records are omitted, and so are those that the caller may not read.',
    tag: 'Dashboard',
    access: 'event:read',
    success: 200,
    answer: AttentionAnswer,
    handle: async (_input, context) => {
      const { services, scope, principal, now, received_at } = context;
      const kinds = KINDS.filter((kind) => canRead(principal, ATTENTION_KINDS[kind]));
      const items = await withBounds(context, (bounds) =>
        listAttention(services, scope, { kinds, now, received_at, bounds }),
      );
      return { items };
    },
  }),
];
