/** Reads of the usage explorer. */
import { keepPreviousData, queryOptions, useQueries, useQuery } from '@tanstack/react-query';
import { api, readData } from '../../client/client.ts';
import { type DayRange, toInstants } from '../../components/range.ts';
import { listValues } from './usage-figures.ts';
import type { UsageWindowSize } from './usage-window.ts';

/** Number of values of a split that are read at first, each by its own query. */
const VALUES_MAX = 12;

export type MeterUsage = Awaited<ReturnType<typeof askUsage>>;
export type Analytics = Awaited<ReturnType<typeof askAnalytics>>;

function askUsage(body: object, signal: AbortSignal) {
  return readData(api.POST('/events/usage/meter', { body: body as never, signal }));
}

function askAnalytics(body: object, signal: AbortSignal) {
  return readData(api.POST('/events/analytics', { body: body as never, signal }));
}

export type UsageQuery = {
  readonly meter_id: string;
  readonly range: DayRange;
  readonly external_customer_id?: string;
  readonly window?: UsageWindowSize;
  readonly filters?: Record<string, string[]>;
};

export function buildWindowsQuery({ meter_id, range, external_customer_id, window, filters }: UsageQuery) {
  const body = {
    meter_id,
    ...toInstants(range),
    ...(external_customer_id === undefined ? {} : { external_customer_id }),
    ...(window === undefined ? {} : { window_size: window }),
    ...(filters === undefined ? {} : { filters }),
  };
  return queryOptions({
    queryKey: ['/events/usage/meter', body] as const,
    queryFn: ({ signal }) => askUsage(body, signal),
    placeholderData: keepPreviousData,
    staleTime: 30_000,
  });
}

export type AnalyticsQuery = UsageQuery & { readonly group_by?: string };

export function buildAnalyticsQuery({
  meter_id,
  range,
  external_customer_id,
  window,
  group_by,
  filters,
}: AnalyticsQuery) {
  const body = {
    meter_ids: [meter_id],
    ...toInstants(range),
    expand: ['plan', 'price'],
    ...(external_customer_id === undefined ? {} : { external_customer_id }),
    ...(window === undefined ? {} : { window_size: window }),
    ...(group_by === undefined ? {} : { group_by: [`properties.${group_by}`] }),
    ...(filters === undefined ? {} : { property_filters: filters }),
  };
  return queryOptions({
    queryKey: ['/events/analytics', body] as const,
    queryFn: ({ signal }) => askAnalytics(body, signal),
    placeholderData: keepPreviousData,
    staleTime: 30_000,
  });
}

export type SplitRow = {
  readonly value: string;
  readonly usage: MeterUsage | undefined;
  readonly before: MeterUsage | undefined;
  readonly cost: Analytics | undefined;
};

export type UsageSplit = { readonly rows: readonly SplitRow[]; readonly left_out: number; readonly isPending: boolean };

type SplitInput = {
  query: UsageQuery;
  split: string | undefined;
  before: DayRange | null;
  /** Number of values to read. */
  values_max: number | undefined;
};

/** Usage for each value of a property, or for each customer: one answer of the API each, so that nothing is summed in the browser. */
export function useSplit({ query, split, before, values_max = VALUES_MAX }: SplitInput): UsageSplit {
  const property = split?.startsWith('p:') ? split.slice(2) : undefined;
  const { window: _, ...whole } = query;
  const items = useQuery({
    ...buildAnalyticsQuery({ ...whole, ...(property === undefined ? {} : { group_by: property }) }),
    enabled: split !== undefined && query.meter_id !== '',
  });
  const weights = (items.data?.items ?? []).map(({ properties, external_customer_id, total_usage }) => ({
    value: property === undefined ? external_customer_id : readValue(properties, property),
    usage: total_usage,
  }));
  const { values, left_out } = listValues(weights, values_max);
  const narrow = (value: string, base: UsageQuery): UsageQuery =>
    property === undefined ? { ...base, external_customer_id: value } : { ...base, filters: { [property]: [value] } };
  const enabled = split !== undefined && !items.isPlaceholderData;
  const usages = useQueries({
    queries: values.map((value) => ({ ...buildWindowsQuery(narrow(value, query)), enabled })),
  });
  const befores = useQueries({
    queries: before
      ? values.map((value) => ({ ...buildWindowsQuery(narrow(value, { ...whole, range: before })), enabled }))
      : [],
  });
  const costs = useQueries({
    queries: values.map((value) => ({ ...buildAnalyticsQuery(narrow(value, whole)), enabled })),
  });
  return {
    rows: values.map((value, at) => ({
      value,
      usage: usages[at]?.data,
      before: befores[at]?.data,
      cost: costs[at]?.data,
    })),
    left_out,
    isPending: split !== undefined && (items.isPending || usages.some(({ isPending }) => isPending)),
  };
}

function readValue(properties: Record<string, unknown> | null, property: string): string {
  const value = properties?.[property];
  return typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value);
}

/** Number of corrections that the chart reads, newest first. */
const CORRECTIONS_MAX = 1_000;

/** Reads the corrections of events with a name. Corrections before the start of the range are omitted: an event is corrected after it was sent. */
export function buildCorrectedQuery({ event_name, external_customer_id, range }: CorrectedQuery) {
  const query = {
    event_name,
    ...(external_customer_id === undefined ? {} : { external_customer_id }),
    state: 'applied',
    start_time: toInstants(range).start_time,
    limit: CORRECTIONS_MAX,
  };
  return queryOptions({
    queryKey: ['/events/corrections', query] as const,
    queryFn: ({ signal }) => readData(api.GET('/events/corrections', { params: { query: query as never }, signal })),
    staleTime: 30_000,
  });
}

type CorrectedQuery = Pick<UsageQuery, 'external_customer_id' | 'range'> & { readonly event_name: string };
