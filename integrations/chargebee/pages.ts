/**
 * Payment pages at Chargebee: hosted pages of the type `collect_now` (apidocs.chargebee.com, "Hosted pages"), which
 * request all that the customer owes. A payment on a page does not name the page, so a comment on the invoice records
 * for which payment of this service the page was opened, and until when it can be paid.
 */

import type { ChargebeeClient } from './client.ts';
import { type InvoiceComment, listComments } from './comments.ts';
import type { ChargebeeTransaction } from './records.ts';

export type OpenedPage = {
  readonly page_id: string;
  readonly payment_id: string;
  /** Unix seconds. */
  readonly opened_at: number;
  readonly ends_at: number;
};

/** Tolerance for a payment that was begun before the page ended. */
const SLACK_SECONDS = 60;
const COMMENT = /^Farthing page (\S+) of (pay_[0-9A-Z]{26}) until (\d{10})$/;

export function describePage({ page_id, payment_id, ends_at }: Omit<OpenedPage, 'opened_at'>): string {
  return `Farthing page ${page_id} of ${payment_id} until ${ends_at}`;
}

/** Lists the pages of an invoice, the newest first. */
export async function listPages(client: ChargebeeClient, invoice_id: string): Promise<OpenedPage[]> {
  const pages = (await listComments(client, invoice_id)).flatMap(parsePage);
  return pages.sort((a, b) => b.opened_at - a.opened_at || b.ends_at - a.ends_at);
}

function parsePage({ text, created_at }: InvoiceComment): OpenedPage[] {
  const [, page_id, payment_id, ends_at] = COMMENT.exec(text) ?? [];
  if (page_id === undefined || payment_id === undefined) return [];
  return [{ page_id, payment_id, opened_at: created_at, ends_at: Number(ends_at) }];
}

/** Whether a payment may have come from a page: money outside Chargebee and charges of saved methods have not. */
export function isCustomerPayment({ gateway, initiator_type }: ChargebeeTransaction): boolean {
  return gateway !== 'not_applicable' && initiator_type !== 'merchant';
}

/** Finds the page on which the customer paid: the newest that was open then. Null if the payment came from elsewhere. */
export function findPaidPage(transaction: ChargebeeTransaction, pages: readonly OpenedPage[]): OpenedPage | null {
  if (!isCustomerPayment(transaction)) return null;
  const paid_at = Number(transaction.date ?? 0);
  return pages.find(({ opened_at, ends_at }) => opened_at <= paid_at && paid_at <= ends_at + SLACK_SECONDS) ?? null;
}
