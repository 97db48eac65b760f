/** Records of the subscription pages, and the lines of previews under names of their own. */
import type { components } from '../../client/openapi.d.ts';
import type { Tone } from '../../components/tone.ts';
import type { InvoiceRecord } from '../invoices/invoice.ts';

export type SubscriptionRecord = components['schemas']['SubscriptionResponse'];
export type ScheduleRecord = components['schemas']['SubscriptionScheduleResponse'];
export type SubscribedLine = NonNullable<SubscriptionRecord['line_items']>[number];
export type SubscriptionState = SubscriptionRecord['subscription_status'];

export const SUBSCRIPTION_FILTERS = ['active', 'trialing', 'incomplete', 'draft', 'cancelled'] as const;
export type SubscriptionListFilter = (typeof SUBSCRIPTION_FILTERS)[number];

export const STATUS_TONES: Record<SubscriptionState, Tone> = {
  active: 'ok',
  trialing: 'info',
  incomplete: 'warn',
  draft: 'plain',
  cancelled: 'plain',
  paused: 'plain',
};

/** Instant of the next invoice; null if there is none to come. */
export function findNextInvoiceAt({
  subscription_status,
  current_period_end,
}: Pick<SubscriptionRecord, 'subscription_status' | 'current_period_end'>): string | null {
  return subscription_status === 'active' || subscription_status === 'trialing' ? current_period_end : null;
}

/** Lines of a preview have no id. Their number, from 1, stands in for it, so that a line can be named in the URL. */
export function numberLines(invoice: InvoiceRecord): InvoiceRecord {
  const line_items = (invoice.line_items ?? []).map((line, index) => ({ ...line, id: line.id || String(index + 1) }));
  return { ...invoice, line_items };
}

/** Lines that are charged at an instant, or later. */
export function listCurrentLines(lines: readonly SubscribedLine[], now_ms: number): SubscribedLine[] {
  return lines.filter(({ end_date }) => end_date === null || new Date(end_date).getTime() > now_ms);
}
