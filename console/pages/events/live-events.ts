/**
 * New events as they come: by the stream of the service, or by polling if there is none or if a filter is on a property, which the stream
 * does not know. New rows move the list at most once a second, and wait while it is paused.
 */
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { api, asEvents, linkTo, readEvents } from '../../client/client.ts';
import { parseEvents } from '../../client/exact-json.ts';
import { addToTail, countNew, type EventFilters, type EventRow } from './event-rows.ts';

const POLL_MS = 5000;
const POLLED_ROWS = 20;
/** After so many failures in a row the stream is taken as missing. */
const FAILURES_MAX = 3;

type StreamMessage = { items: EventRow[]; passed_over: number; rate: string };
export type LiveEvents = {
  readonly tail: readonly EventRow[];
  /** New rows that wait until the list is resumed. */
  readonly waiting: number;
  readonly passed_over: number;
  readonly shown: number;
  /** Events per second; null if it is not known. */
  readonly rate: string | null;
  readonly mode: 'stream' | 'poll' | 'off';
};

type LiveInput = { filters: EventFilters; isOn: boolean; isPaused: boolean };

export function useLiveEvents({ filters, isOn, isPaused }: LiveInput): LiveEvents {
  const key = JSON.stringify(filters);
  const [arrived, setArrived] = useState<{ key: string; rows: readonly EventRow[] }>({ key, rows: [] });
  const [shown, setShown] = useState(arrived);
  const [last, setLast] = useState<StreamMessage | null>(null);
  const [hasStream, setStream] = useState(true);
  const queries = useQueryClient();
  // A paused list stays as it is; other filters show another list.
  if (shown !== arrived && (!isPaused || shown.key !== arrived.key)) setShown(arrived);
  const isStreamed = hasStream && filters.property_filters === undefined;
  useEffect(() => {
    if (!isOn) return;
    const accept = (items: readonly EventRow[]) => {
      if (items.length === 0) return;
      setArrived((old) => ({ key, rows: addToTail(old.key === key ? old.rows : [], items) }));
      // The status of a polled event is not known.
      if (items.some(({ status }) => status !== 'counted'))
        void queries.invalidateQueries({ queryKey: ['/events/uncounted', 'counts'] });
    };
    return isStreamed
      ? openStream(JSON.parse(key) as EventFilters, {
          onMessage: (message) => {
            setLast(message);
            accept(message.items);
          },
          onMissing: () => setStream(false),
        })
      : poll(JSON.parse(key) as EventFilters, accept);
  }, [key, isOn, isStreamed, queries]);
  const isCurrent = arrived.key === key && isOn;
  return {
    tail: isCurrent ? shown.rows : [],
    waiting: isCurrent ? countNew(arrived.rows, shown.rows[0]?.id) : 0,
    passed_over: last?.passed_over ?? 0,
    shown: last?.items.length ?? 0,
    rate: isStreamed ? (last?.rate ?? null) : null,
    mode: isOn ? (isStreamed ? 'stream' : 'poll') : 'off',
  };
}

type StreamHandlers = { onMessage: (message: StreamMessage) => void; onMissing: () => void };

/** A hidden page needs no stream; it is opened again when the page is shown. */
function openStream(filters: EventFilters, { onMessage, onMissing }: StreamHandlers): () => void {
  let source: EventSource | null = null;
  let failures = 0;
  const open = () => {
    const { event_name, external_customer_id } = filters;
    source = new EventSource(linkTo('/events/stream', { event_name, external_customer_id }));
    source.addEventListener('events', ({ data }: MessageEvent<string>) => {
      failures = 0;
      onMessage(parseEvents(data) as StreamMessage);
    });
    source.onerror = () => {
      failures += 1;
      if (source?.readyState === EventSource.CLOSED || failures >= FAILURES_MAX) onMissing();
    };
  };
  const follow = () => {
    if (document.hidden) {
      source?.close();
      source = null;
    } else if (source === null) open();
  };
  follow();
  document.addEventListener('visibilitychange', follow);
  return () => {
    document.removeEventListener('visibilitychange', follow);
    source?.close();
  };
}

function poll(filters: EventFilters, accept: (items: readonly EventRow[]) => void): () => void {
  const timer = setInterval(() => {
    if (document.hidden) return;
    readEvents(api.POST('/events/query', { body: { ...filters, page_size: POLLED_ROWS }, ...asEvents })).then(
      ({ events }) => accept(events as EventRow[]),
      // The next poll tries again; the list itself shows why it cannot be read.
      () => undefined,
    );
  }, POLL_MS);
  return () => clearInterval(timer);
}
