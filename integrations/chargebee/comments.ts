/** Comments of an invoice at Chargebee, in which this service records its charges and pages (apidocs.chargebee.com, "Comments"). */
import type { ChargebeeClient } from './client.ts';

/** `created_at` is in Unix seconds. */
export type InvoiceComment = { readonly text: string; readonly created_at: number };

export async function listComments(client: ChargebeeClient, invoice_id: string): Promise<InvoiceComment[]> {
  const comments: InvoiceComment[] = [];
  for await (const { notes, created_at } of client.list('comment', { entity_type: 'invoice', entity_id: invoice_id }))
    comments.push({ text: notes, created_at: Number(created_at) });
  return comments;
}
