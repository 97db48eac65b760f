/** Reads of the pages of events. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { ApiError, api, asEvents, readData, readEvents } from '../../client/client.ts';
import type { GetData } from '../../client/queries.ts';
import { shouldRetry } from '../../client/retry.ts';
import type { EventFilters, ListFilters } from './event-rows.ts';
import type { ReasonFilter } from './event-search.ts';

const PAGE_ROWS = 50;
/** Days back in which events that are not counted are listed, unless a period is chosen. */
export const UNCOUNTED_DAYS = 31;

export type EventThreadData = GetData<'/events/{id}/thread'>;
export type UncountedRecord = GetData<'/events/uncounted'>['items'][number];

export function buildEventsQuery(filters: EventFilters) {
  return infiniteQueryOptions({
    queryKey: ['/events', 'pages', filters] as const,
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) =>
      readEvents(
        api.POST('/events/query', {
          body: { page_size: PAGE_ROWS, ...filters, ...(pageParam ? { iter_last_key: pageParam } : {}) },
          signal,
          ...asEvents,
        }),
      ),
    getNextPageParam: ({ has_more, iter_last_key }) => (has_more ? iter_last_key : null),
    placeholderData: keepPreviousData,
  });
}

/** Whether the query of these filters has answered or failed. Placeholder rows of the previous filters are no answer. */
export function isAnswered({
  isPending,
  isPlaceholderData,
}: {
  isPending: boolean;
  isPlaceholderData: boolean;
}): boolean {
  return !(isPending || isPlaceholderData);
}

export type UncountedFilters = {
  readonly reason?: ReasonFilter;
  readonly event_name?: string;
  readonly external_customer_id?: string;
  readonly days?: number;
  readonly start_time?: string;
  readonly end_time?: string;
};

export function buildUncountedQuery(filters: UncountedFilters) {
  return infiniteQueryOptions({
    queryKey: ['/events/uncounted', 'pages', filters] as const,
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) =>
      readEvents(
        api.GET('/events/uncounted', {
          params: { query: { limit: PAGE_ROWS, ...filters, ...(pageParam ? { cursor: pageParam } : {}) } as never },
          signal,
          ...asEvents,
        }),
      ),
    getNextPageParam: ({ next_cursor }) => next_cursor,
  });
}

/** Counts of the events that are not counted, by reason. */
export function buildUncountedCountsQuery(filters: UncountedFilters) {
  return queryOptions({
    queryKey: ['/events/uncounted', 'counts', filters] as const,
    queryFn: ({ signal }) =>
      readData(
        api.GET('/events/uncounted', { params: { query: { ...filters, counts: 'true', limit: 1 } as never }, signal }),
      ),
    refetchInterval: 30_000,
  });
}

export type ListedCorrection = GetData<'/events/corrections'>['items'][number];
export type LateEventRow = GetData<'/events/late'>['items'][number];

/** Age from which the counts of the tabs are read again when the page opens. */
const COUNT_STALE_MS = 30_000;

/** Reads the number of corrections, which a page of one row has. */
export function buildCorrectionCountQuery(filters: ListFilters) {
  return queryOptions({
    queryKey: ['/events/corrections', 'count', filters] as const,
    queryFn: ({ signal }) =>
      readData(api.GET('/events/corrections', { params: { query: { ...filters, limit: 1 } as never }, signal })),
    staleTime: COUNT_STALE_MS,
  });
}

export function buildLateQuery(filters: ListFilters) {
  return infiniteQueryOptions({
    queryKey: ['/events/late', 'pages', filters] as const,
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) =>
      readData(
        api.GET('/events/late', {
          params: { query: { limit: PAGE_ROWS, ...filters, ...(pageParam ? { cursor: pageParam } : {}) } as never },
          signal,
        }),
      ),
    getNextPageParam: ({ next_cursor }) => next_cursor,
  });
}

export function buildLateCountQuery(filters: ListFilters) {
  return queryOptions({
    queryKey: ['/events/late', 'count', filters] as const,
    queryFn: ({ signal }) =>
      readData(
        api.GET('/events/late', { params: { query: { ...filters, count: 'true', limit: 1 } as never }, signal }),
      ),
    staleTime: COUNT_STALE_MS,
  });
}

const PROCESSING_MS = 1000;
const PROCESSING_RETRIES_MAX = 8;

/** A thread and a preview are refused while the event or a correction of it is being processed, which is over soon. */
export const whileProcessing = {
  retry: (count: number, error: Error) =>
    error instanceof ApiError && error.status === 503
      ? shouldRetry(count, error, PROCESSING_RETRIES_MAX)
      : shouldRetry(count, error),
};

/**
 * Key of a preview of a correction. Queries whose keys begin with a path are read again after the correction, which must not be previewed
 * then.
 */
export function buildPreviewKey(action: 'replace' | 'void', ...parts: (string | null)[]) {
  return ['preview', action, ...parts] as const;
}

/** Corrections of an event, read again until all are applied. */
export function buildCorrectionsQuery(id: string) {
  return queryOptions({
    queryKey: ['/events/{id}/corrections', id] as const,
    queryFn: ({ signal }) =>
      readData(api.GET('/events/{id}/corrections', { params: { path: { id } as never }, signal })),
    refetchInterval: ({ state }) =>
      state.data?.items.some((item) => item.state === 'requested') ? PROCESSING_MS : false,
  });
}

/**
 * The thread of an event. It is read again each second until the event takes effect, and once more when a correction is applied.
 */
export function buildThreadQuery(id: string, applied_count: number) {
  return queryOptions({
    queryKey: ['/events/{id}/thread', id, applied_count] as const,
    placeholderData: keepPreviousData,
    ...whileProcessing,
    queryFn: ({ signal }) =>
      readEvents(api.GET('/events/{id}/thread', { params: { path: { id } }, signal, ...asEvents })),
    refetchInterval: ({ state }) => (state.data?.status === 'processing' ? PROCESSING_MS : false),
  });
}
