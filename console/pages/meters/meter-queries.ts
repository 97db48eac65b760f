/** Reads of the pages of meters that are sent by POST. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, asEvents, readData, readEvents } from '../../client/client.ts';
import type { GetData } from '../../client/queries.ts';
import type { buildTrial, TrialRange } from './meter-draft.ts';

export type MeterRecord = GetData<'/meters/{id}'>;
type TrialBody = ReturnType<typeof buildTrial> & { external_customer_id?: string };

/** The number that events give under a definition which is not saved. */
export function buildTrialQuery(body: TrialBody) {
  return queryOptions({
    queryKey: ['/events/usage', body] as const,
    queryFn: ({ signal }) => readData(api.POST('/events/usage', { body: body as never, signal })),
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  });
}

export function buildMeterUsageQuery(meter_id: string, range: TrialRange) {
  const body = { meter_id, window_size: 'DAY' as const, ...range };
  return queryOptions({
    queryKey: ['/events/usage/meter', body] as const,
    queryFn: ({ signal }) => readData(api.POST('/events/usage/meter', { body, signal })),
    placeholderData: keepPreviousData,
  });
}

const TRIED_EVENTS = 5;

export function buildNewestEventsQuery(event_name: string) {
  return queryOptions({
    queryKey: ['/events/query', event_name] as const,
    queryFn: ({ signal }) =>
      readEvents(api.POST('/events/query', { body: { event_name, page_size: TRIED_EVENTS }, signal, ...asEvents })),
    staleTime: 30_000,
  });
}
