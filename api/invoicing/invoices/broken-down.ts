/** Adds the requested breakdowns to the usage lines of an invoice. */
import { breakDownLines } from '../../../actions/invoicing/documents/break-down.ts';
import { parseGroupBy } from '../../../core/metering/analytics/group-by.ts';
import type { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import type { Context } from '../../http/route.ts';
import { withBounds } from '../../metering/usage/query-fields.ts';

type InvoiceBreakdownQuery = { readonly group_by?: readonly string[] | undefined; readonly expand_by_source: boolean };
type InvoiceWithLineItems = { readonly line_items: readonly object[] | null };

export async function breakDownInvoice<Shown extends InvoiceWithLineItems>(
  shown: Shown,
  query: InvoiceBreakdownQuery,
  context: Context,
) {
  const groups = query.group_by ?? [];
  const group_by = parseGroupBy(groups);
  if (groups.length === 0 && !query.expand_by_source) return shown;
  const lines = (shown.line_items ?? []) as readonly InvoiceLineItemModel[];
  const parts = await withBounds(context, (bounds) =>
    breakDownLines(context.services, context.scope, {
      lines,
      group_by: groups.length > 0 ? group_by : null,
      by_feature: groups.includes('feature_id'),
      by_source: query.expand_by_source,
      now: context.now,
      bounds,
    }),
  );
  const line_items = lines.map((line) => {
    const { usage_breakdown, usage_analytics } = parts.get(line.id) ?? NOTHING;
    return {
      ...line,
      usage_breakdown: usage_breakdown?.map(({ group, ...share }) => ({ grouped_by: group, ...share })) ?? null,
      usage_analytics: usage_analytics?.map(({ group, ...share }) => ({ source: group, ...share })) ?? null,
    };
  });
  return { ...shown, line_items };
}

const NOTHING = { usage_breakdown: null, usage_analytics: null };
