/** Receivables: unpaid amounts of all customers by age (docs/rules/invoices.md, "Due date"). */
import { z } from 'zod';
import { requireRead } from '../../../core/foundation/access/role.ts';
import { decimalText, timestampText } from '../../../core/foundation/record.ts';
import { loadReceivables } from '../../../storage/models/invoicing/receivables.ts';
import { listCursor, Pagination } from '../../http/list.ts';
import { type Route, route } from '../../http/route.ts';

const agedAmounts = {
  currency: z.string().meta({ description: 'Currency code (ISO 4217), lowercase.' }),
  not_due: decimalText.meta({ description: 'Unpaid amount that is not past its due date.' }),
  overdue_1_to_30: decimalText.meta({ description: 'Unpaid amount that is overdue for up to 30 days.' }),
  overdue_31_to_60: decimalText.meta({ description: 'Unpaid amount that is overdue for 31 to 60 days.' }),
  overdue_61_to_90: decimalText.meta({ description: 'Unpaid amount that is overdue for 61 to 90 days.' }),
  overdue_over_90: decimalText.meta({ description: 'Unpaid amount that is overdue for more than 90 days.' }),
  total_overdue: decimalText.meta({ description: 'Sum of the overdue amounts.' }),
  total_unpaid: decimalText.meta({ description: 'Unpaid amount in all.' }),
  invoice_count: z.int().meta({ description: 'Number of invoices with an unpaid amount.' }),
};
const ReceivablesTotal = z
  .object({
    ...agedAmounts,
    customer_count: z.int().meta({ description: 'Number of customers who owe an amount.' }),
  })
  .meta({ id: 'ReceivablesTotal' });
const CustomerReceivables = z
  .object({
    customer_id: z.string().meta({ description: 'Customer who owes the amount.' }),
    external_customer_id: z.string().meta({ description: 'External id of the customer.' }),
    customer_name: z.string().meta({ description: 'Name of the customer.' }),
    ...agedAmounts,
    oldest_due_date: timestampText.nullable().meta({ description: 'Earliest due date of an unpaid invoice.' }),
  })
  .meta({ id: 'CustomerReceivables' });

const ReceivablesQuery = z.object({
  currency: z.string().optional().meta({ description: 'Currency code (ISO 4217), case-insensitive. Default: all.' }),
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(1000)
    .default(50)
    .meta({ description: 'Page size, 1 to 1,000. Default: 50.' }),
  offset: z.coerce.number().int().min(0).default(0).meta({ description: 'Number of items to skip. Default: 0.' }),
  cursor: listCursor.meta({
    description: '`next_cursor` of an answer, for the page after it, at the `as_of` of that answer. Needs no `offset`.',
  }),
});
export const ReceivablesAnswer = z
  .object({
    as_of: timestampText.meta({
      description: 'Instant by which invoices are overdue: that of the request, or of the first page.',
    }),
    totals: z.array(ReceivablesTotal).meta({ description: 'Sums over all customers, one per currency.' }),
    items: z
      .array(CustomerReceivables)
      .meta({ description: 'One item per customer and currency, the greatest overdue amount first.' }),
    pagination: Pagination.meta({ description: 'Position of the page in the result.' }),
  })
  .meta({ id: 'ReceivablesResponse' });

export const receivablesRoutes: Route[] = [
  route({
    method: 'get',
    path: '/dashboard/receivables',
    operation_id: 'getReceivables',
    summary: 'Get receivables by age',
    description:
      'Returns the unpaid amounts of final invoices over all customers, by the days since their due date. Totals are per ' +
      'currency; items are per customer and currency, a page at a time. Each begun day counts.',
    tag: 'Dashboard',
    access: 'invoice:read',
    query: ReceivablesQuery,
    success: 200,
    answer: ReceivablesAnswer,
    handle: async ({ query }, { scope, services, now, principal }) => {
      requireRead(principal, 'customer', 'receivables');
      const input = { ...query, currency: query.currency?.toLowerCase() ?? null, now };
      return loadReceivables(scope, input, services.postgres);
    },
  }),
];
