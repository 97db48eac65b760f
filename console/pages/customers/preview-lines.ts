import type { InvoiceRecord } from '../invoices/invoice.ts';

/** A preview is no record, so that its lines have no ids. They are named by their subscription line, and by their place after a repeated one. */
export function nameLines(preview: InvoiceRecord, subscription_id: string): InvoiceRecord {
  const seen = new Map<string, number>();
  const line_items = (preview.line_items ?? []).map((line) => {
    const own = line.subscription_line_item_id ?? line.price_id ?? 'line';
    const count = seen.get(own) ?? 0;
    seen.set(own, count + 1);
    return { ...line, id: count === 0 ? own : `${own}-${count + 1}` };
  });
  return { ...preview, id: subscription_id, line_items };
}
