/** Reads how far the environment is. New events arrive by the stream, everything else is read again when it changes. */
import { useQueries, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { api, linkTo, readData } from '../../client/client.ts';
import type { components } from '../../client/openapi.d.ts';
import { usePages } from '../../client/pages.ts';
import { type GetData, getQuery, useGet } from '../../client/queries.ts';
import { can, useSession } from '../../client/session.ts';
import { buildEnvironmentOptions, useEnvironment } from './environment.ts';
import { deriveProgress, type Progress } from './progress.ts';
import { hasAdvanced } from './run-year.ts';

const POLL_MS = 5_000;
const SHOWN_EVENTS = 5;

export type ArrivedEvent = GetData<'/events'>['events'][number];
type RecordOf<Path extends '/meters' | '/plans' | '/prices' | '/subscriptions'> = NonNullable<
  GetData<Path>['items']
>[number];
type YearInvoice = NonNullable<GetData<'/invoices'>['items']>[number];
type YearClock = components['schemas']['TestClockResponse'];

export type FirstBill = {
  readonly isPending: boolean;
  readonly error: Error | null;
  readonly meters: readonly RecordOf<'/meters'>[];
  readonly plans: readonly RecordOf<'/plans'>[];
  readonly prices: readonly RecordOf<'/prices'>[];
  readonly subscription: RecordOf<'/subscriptions'> | undefined;
  readonly events: readonly ArrivedEvent[];
  /** When the events were read last; 0 before. */
  readonly events_read_at_ms: number;
  readonly year: { readonly environment_id: string; readonly clock: YearClock } | undefined;
  /** Undefined until they are read. */
  readonly invoices: readonly YearInvoice[] | undefined;
  readonly progress: Progress;
};

export function useFirstBill(): FirstBill {
  const meters = usePages('/meters', { query: { order: 'asc' } });
  const plans = usePages('/plans', { query: { order: 'asc' } });
  const prices = usePages('/prices', { query: { entity_type: 'PLAN' } });
  const subscriptions = usePages('/subscriptions', { query: { order: 'desc' } });
  const events = useGet('/events', { query: { page_size: SHOWN_EVENTS } }, { refetchInterval: POLL_MS });
  const names = new Set(meters.rows.map(({ event_name }) => event_name));
  const year = useYear();
  const invoices = useInvoicesIn(year);
  const isInProduction = useProductionCatalogue();
  const lists = [meters, plans, prices, subscriptions];
  return {
    isPending: lists.some(({ isPending }) => isPending) || events.isPending,
    error: lists.find(({ error }) => error)?.error ?? events.error,
    meters: meters.rows,
    plans: plans.rows,
    prices: prices.rows,
    subscription: subscriptions.rows[0],
    events: events.data?.events ?? [],
    events_read_at_ms: events.dataUpdatedAt,
    year,
    invoices,
    progress: deriveProgress({
      plan_count: plans.rows.length,
      price_count: prices.rows.length,
      has_counted_event: (events.data?.events ?? []).some(({ event_name }) => names.has(event_name)),
      subscription_count: subscriptions.rows.length,
      has_advanced: year !== undefined && hasAdvanced(year.clock) && !isAdvancing(year.clock),
      is_in_production: isInProduction,
    }),
  };
}

/** The service continues an advance after the page is left. */
export function isAdvancing(clock: Pick<YearClock, 'test_clock_status'> | undefined): boolean {
  return clock?.test_clock_status === 'advancing';
}

/** The environment with a clock that was made from this one: its clock names it in its metadata. */
function useYear(): FirstBill['year'] {
  const { environments } = useSession();
  const here = useEnvironment();
  const clocked = environments.filter(({ test_clock_id }) => test_clock_id);
  const clocks = useQueries({
    queries: clocked.map(({ id: environment_id, test_clock_id }) => ({
      queryKey: ['/test-clocks/{id}', environment_id, test_clock_id] as const,
      queryFn: () =>
        readData(
          api.GET('/test-clocks/{id}', {
            params: { path: { id: test_clock_id! } },
            ...buildEnvironmentOptions(environment_id),
          }),
        ),
      refetchInterval: ({ state }: { state: { data?: YearClock | undefined } }) =>
        isAdvancing(state.data) ? POLL_MS : (false as const),
    })),
  });
  const found = clocks.findIndex(
    ({ data }, index) => data?.metadata?.['source_environment_id'] === here.id || clocked[index]?.id === here.id,
  );
  const clock = clocks[found]?.data;
  return clock && { environment_id: clocked[found]!.id, clock };
}

/** The newest invoices of an environment, in the order of their periods. */
function useInvoicesIn(year: FirstBill['year']): readonly YearInvoice[] | undefined {
  const environment_id = year?.environment_id;
  const { data } = useQuery({
    queryKey: ['/invoices', 'first-bill', environment_id] as const,
    queryFn: () =>
      readData(
        api.GET('/invoices', {
          params: { query: { limit: 24, order: 'asc', skip_line_items: true } },
          ...buildEnvironmentOptions(environment_id!),
        }),
      ),
    enabled: environment_id !== undefined,
    refetchInterval: isAdvancing(year?.clock) ? POLL_MS : false,
  });
  return data?.items;
}

/** Whether the production environment has a plan. */
function useProductionCatalogue(): boolean {
  const { environments } = useSession();
  const production = environments.find(({ type }) => type === 'production');
  const { data } = useQuery({
    queryKey: ['/plans', 'production', production?.id] as const,
    queryFn: () =>
      readData(
        api.GET('/plans', { params: { query: { limit: 1 } }, ...buildEnvironmentOptions(production?.id ?? '') }),
      ),
    enabled: production !== undefined,
  });
  return (data?.items?.length ?? 0) > 0;
}

/** Reads events and all that depends on them again whenever the stream brings new ones. The service sends at most one message a second. */
export function useEventStream(): void {
  const queries = useQueryClient();
  const session = useSession();
  const { id } = useEnvironment();
  const isAllowed = can(session, 'event', 'read');
  useEffect(() => {
    if (!isAllowed) return;
    const stream = new EventSource(linkTo('/events/stream', { environment_id: id }));
    stream.addEventListener('events', () => {
      // Threads of older events do not change with new ones.
      void queries.invalidateQueries({ queryKey: ['/events'] });
      void queries.invalidateQueries({ queryKey: ['/invoices/preview'] });
    });
    return () => stream.close();
  }, [queries, id, isAllowed]);
}

/** The threads of the shown events; one that is still processed is read again. */
export function useThreads(events: readonly ArrivedEvent[]): (GetData<'/events/{id}/thread'> | undefined)[] {
  return useQueries({
    queries: events.map(({ id }) => ({
      ...getQuery('/events/{id}/thread', { path: { id } }),
      refetchInterval: ({ state }: { state: { data?: GetData<'/events/{id}/thread'> | undefined } }) =>
        state.data === undefined || state.data.status === 'processing' ? 1_000 : false,
    })),
  }).map(({ data }) => data as GetData<'/events/{id}/thread'> | undefined);
}

const NO_ARRIVALS: ReadonlyMap<string, number | null> = new Map();

/** For each event that arrives while the page is open, the instant at which it was read; null for those that were there before. */
export function useArrivals({ events, events_read_at_ms }: FirstBill): ReadonlyMap<string, number | null> {
  const [arrivals, setArrivals] = useState<ReadonlyMap<string, number | null> | null>(null);
  const fresh = events.filter(({ id }) => !arrivals?.has(id));
  if (events_read_at_ms > 0 && (arrivals === null || fresh.length > 0)) {
    const at = arrivals === null ? null : events_read_at_ms;
    setArrivals(new Map([...(arrivals ?? []), ...fresh.map(({ id }) => [id, at] as const)]));
  }
  return arrivals ?? NO_ARRIVALS;
}
