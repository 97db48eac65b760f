/** Reads of the pages of events. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { ApiError, api, dataFrom } from '../../client/client.ts';
import type { GetData } from '../../client/queries.ts';
import type { ListFilters } from './event-rows.ts';
import { parseExact } from './exact-json.ts';
import type { UncountedReason } from './routes.ts';

const PAGE_ROWS = 50;
/** Days back in which events that are not counted are listed, unless a period is chosen. */
export const UNCOUNTED_DAYS = 31;

export type EventThreadData = GetData<'/events/{id}/thread'>;
export type UncountedEvent = GetData<'/events/uncounted'>['items'][number];
/** The properties of the event as sent, with every digit. */
export type ExactThread = { readonly thread: EventThreadData; readonly properties: Record<string, unknown> };

export type EventFilters = ListFilters & { readonly property_filters?: Record<string, string[]> };

export function eventsQuery(filters: EventFilters) {
  return infiniteQueryOptions({
    queryKey: ['/events', 'pages', filters] as const,
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) =>
      dataFrom(
        api.POST('/events/query', {
          body: { page_size: PAGE_ROWS, ...filters, ...(pageParam ? { iter_last_key: pageParam } : {}) },
          signal,
        }),
      ),
    getNextPageParam: ({ has_more, iter_last_key }) => (has_more ? iter_last_key : null),
    placeholderData: keepPreviousData,
  });
}

export type UncountedFilters = {
  readonly reason?: UncountedReason;
  readonly event_name?: string;
  readonly external_customer_id?: string;
  readonly days?: number;
  readonly start_time?: string;
  readonly end_time?: string;
};

export function uncountedQuery(filters: UncountedFilters) {
  return infiniteQueryOptions({
    queryKey: ['/events/uncounted', 'pages', filters] as const,
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) =>
      dataFrom(
        api.GET('/events/uncounted', {
          params: { query: { limit: PAGE_ROWS, ...filters, ...(pageParam ? { cursor: pageParam } : {}) } as never },
          signal,
        }),
      ),
    getNextPageParam: ({ next_cursor }) => next_cursor,
  });
}

/** Counts of the events that are not counted, by reason. */
export function uncountedCountsQuery(filters: UncountedFilters) {
  return queryOptions({
    queryKey: ['/events/uncounted', 'counts', filters] as const,
    queryFn: ({ signal }) =>
      dataFrom(
        api.GET('/events/uncounted', { params: { query: { ...filters, counts: 'true', limit: 1 } as never }, signal }),
      ),
    refetchInterval: 30_000,
  });
}

export type ListedCorrection = GetData<'/events/corrections'>['items'][number];
export type LateEventRow = GetData<'/events/late'>['items'][number];

/** Counts for the tabs are read again after this time, if the reader returns to the page. */
const COUNT_STALE_MS = 30_000;

/** The number of corrections; the list of one row has it. */
export function correctionCountQuery(filters: ListFilters) {
  return queryOptions({
    queryKey: ['/events/corrections', 'count', filters] as const,
    queryFn: ({ signal }) =>
      dataFrom(api.GET('/events/corrections', { params: { query: { ...filters, limit: 1 } as never }, signal })),
    staleTime: COUNT_STALE_MS,
  });
}

export function lateQuery(filters: ListFilters) {
  return infiniteQueryOptions({
    queryKey: ['/events/late', 'pages', filters] as const,
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) =>
      dataFrom(
        api.GET('/events/late', {
          params: { query: { limit: PAGE_ROWS, ...filters, ...(pageParam ? { cursor: pageParam } : {}) } as never },
          signal,
        }),
      ),
    getNextPageParam: ({ next_cursor }) => next_cursor,
  });
}

export function lateCountQuery(filters: ListFilters) {
  return queryOptions({
    queryKey: ['/events/late', 'count', filters] as const,
    queryFn: ({ signal }) =>
      dataFrom(
        api.GET('/events/late', { params: { query: { ...filters, count: 'true', limit: 1 } as never }, signal }),
      ),
    staleTime: COUNT_STALE_MS,
  });
}

const PROCESSING_MS = 1000;
const RETRIES_MAX = 8;

/** A preview is refused while the event is being processed, which is over soon. */
export const whileProcessing = {
  retry: (count: number, error: Error) => error instanceof ApiError && error.status === 503 && count < RETRIES_MAX,
  retryDelay: PROCESSING_MS,
};

/** Corrections of an event, read again until all are applied. */
export function correctionsQuery(id: string) {
  return queryOptions({
    queryKey: ['/events/{id}/corrections', id] as const,
    queryFn: ({ signal }) =>
      dataFrom(api.GET('/events/{id}/corrections', { params: { path: { id } as never }, signal })),
    refetchInterval: ({ state }) =>
      state.data?.items.some((item) => item.state === 'requested') ? PROCESSING_MS : false,
  });
}

/**
 * The thread of an event. It is read again each second until the event takes effect, and once more when a correction is applied.
 */
export function threadQuery(id: string, applied_count: number) {
  return queryOptions({
    queryKey: ['/events/{id}/thread', id, applied_count] as const,
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<ExactThread> => {
      const text = await dataFrom(
        api.GET('/events/{id}/thread', { params: { path: { id } }, parseAs: 'text', signal }) as Promise<{
          data?: string;
        }>,
      );
      const exact = parseExact(text) as { event: { properties: Record<string, unknown> } | null };
      return { thread: JSON.parse(text) as EventThreadData, properties: exact.event?.properties ?? {} };
    },
    refetchInterval: ({ state }) => (state.data?.thread.status === 'processing' ? PROCESSING_MS : false),
  });
}
