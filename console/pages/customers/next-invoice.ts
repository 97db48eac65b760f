/** The next invoice of a subscription, live, in the shape that the threads of an invoice take. */
import { type UseQueryResult, useQueries, useQuery } from '@tanstack/react-query';
import { api } from '../../client/client.ts';
import { type GetData, postQuery } from '../../client/queries.ts';
import type { InvoiceRecord } from '../invoices/invoice.ts';
import { nameLines } from './preview-lines.ts';

export type CustomerSubscription = GetData<'/subscriptions'>['items'][number];

const LIVE_MS = 5_000;
const BILLED = new Set(['active', 'trialing', 'incomplete', 'paused']);

/** Whether a subscription will bill again. */
export function isBilled({ subscription_status }: Pick<CustomerSubscription, 'subscription_status'>): boolean {
  return BILLED.has(subscription_status.toLowerCase());
}

function nextInvoiceQuery(subscription_id: string) {
  const body = { subscription_id };
  return {
    ...postQuery('/invoices/preview', body, () => api.POST('/invoices/preview', { body })),
    select: (preview: unknown) => nameLines(preview as InvoiceRecord, subscription_id),
    refetchInterval: LIVE_MS,
    retry: false,
  };
}

export function useNextInvoice(subscription_id: string): UseQueryResult<InvoiceRecord> {
  return useQuery(nextInvoiceQuery(subscription_id));
}

/** The next invoices that are loaded. */
export function useNextInvoices(subscription_ids: readonly string[]): readonly InvoiceRecord[] {
  return useQueries({
    queries: subscription_ids.map(nextInvoiceQuery),
    combine: (answers) => answers.flatMap(({ data }) => (data ? [data] : [])),
  });
}

/** The invoice of the number whose thread is open: `why` is the id of a line, or that of the subscription for the total. */
export function findExplained(invoices: readonly InvoiceRecord[], why: string | undefined): InvoiceRecord | undefined {
  return invoices.find(({ id, line_items }) => id === why || line_items?.some((line) => line.id === why));
}
