/** The first and the last event in the window of a line. */
import { useQuery } from '@tanstack/react-query';
import { api } from '../../../client/client.ts';
import { postQuery } from '../../../client/queries.ts';
import type { InvoiceLine } from '../invoice.ts';

type MeteredFilter = { key: string; values: string[] };
export type MeteredEvents = { event_name: string; filters?: readonly MeteredFilter[] | null };
export type SeenEvent = { id: string; timestamp: string };

/** Without a single customer (a hierarchy has several) the ends are not known. */
export function useLineEnds(
  line: InvoiceLine,
  counted: MeteredEvents | undefined,
): { first: SeenEvent | undefined; last: SeenEvent | undefined } {
  const from = line.computed_from;
  const customers = from?.counted?.customers ?? [];
  const isKnown = counted !== undefined && customers.length === 1 && Boolean(from?.window_start && from.event_count);
  const ask = (order: 'asc' | 'desc') => {
    const filters = Object.fromEntries((counted?.filters ?? []).map(({ key, values }) => [key, values]));
    const body = {
      external_customer_id: customers[0]?.external_customer_id ?? null,
      event_name: counted?.event_name ?? null,
      start_time: from?.window_start ?? null,
      end_time: from?.window_end ?? null,
      sort: 'timestamp' as const,
      order,
      page_size: 1,
      ...(Object.keys(filters).length > 0 ? { property_filters: filters } : {}),
    };
    return postQuery('/events/query', body, () => api.POST('/events/query', { body }));
  };
  const first = useQuery({ ...ask('asc'), enabled: isKnown });
  const last = useQuery({ ...ask('desc'), enabled: isKnown });
  return { first: first.data?.events[0], last: last.data?.events[0] };
}
