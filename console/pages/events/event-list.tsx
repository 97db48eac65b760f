/** The list of events: the tail of new ones, and the pages before it. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { type ReactNode, useMemo } from 'react';
import { api, formatCurl, readData } from '../../client/client.ts';
import { Button } from '../../components/button.tsx';
import { Chip } from '../../components/chip.tsx';
import { CodeBlock } from '../../components/copy.tsx';
import { DataTable } from '../../components/data-table.tsx';
import { Empty, Failure, Loading, useIsShown } from '../../components/states.tsx';
import { useTexts } from '../../texts/texts.ts';
import { buildEventsQuery, isAnswered, UNCOUNTED_DAYS } from './event-queries.ts';
import { type EventFilters, type EventRow, type EventStatus, formatProperties, joinRows } from './event-rows.ts';
import { EVENT_TEXTS } from './event-texts.ts';
import { EventTime } from './event-time.tsx';
import styles from './events.module.css';
import type { LiveEvents } from './live-events.ts';

/** Events that are not counted are marked in the list up to this number. */
const MARKED_MAX = 1000;

type EventListProps = {
  filters: EventFilters;
  live: LiveEvents;
  isFiltered: boolean;
  openKey: string | null;
  onOpen: (id: string) => void;
  onFocusChange: (hasFocus: boolean) => void;
  onSend: () => void;
};

export function EventList(props: EventListProps): ReactNode {
  const { filters, live, isFiltered, openKey, onOpen, onFocusChange, onSend } = props;
  const texts = useTexts(EVENT_TEXTS);
  const list = useInfiniteQuery(buildEventsQuery(filters));
  const loaded = useMemo(() => (list.data?.pages ?? []).flatMap(({ events }) => events as EventRow[]), [list.data]);
  const rows = useMemo(() => joinRows(live.tail, loaded), [live.tail, loaded]);
  const faults = useFaults(filters, {
    newest: live.mode === 'poll' ? live.tail[0]?.id : undefined,
    shouldRead: isAnswered(list),
  });
  const isShown = useIsShown(!list.isPending);
  if (list.isError) return <Failure error={list.error} onRetry={() => void list.refetch()} />;
  if (!isShown) return <Loading rows={10} />;
  if (rows.length === 0)
    return isFiltered ? (
      <Empty title={texts.noMatch}>{texts.noMatchHint}</Empty>
    ) : (
      <Empty title={texts.empty} action={<Button onClick={onSend}>{texts.send}</Button>}>
        <p>{texts.emptyHint}</p>
        <CodeBlock label={texts.asCurl} code={formatCurl('POST', '/events', EXAMPLE)} />
      </Empty>
    );
  return (
    <div
      onFocus={({ target }) => onFocusChange(target.getAttribute('role') === 'row')}
      onBlur={({ relatedTarget, currentTarget }) =>
        onFocusChange(relatedTarget instanceof Node && currentTarget.contains(relatedTarget))
      }
    >
      <DataTable<EventRow>
        label={texts.title}
        rows={rows}
        rowKey={({ id }) => id}
        openKey={openKey}
        hasMore={list.hasNextPage}
        onEnd={() => {
          if (list.hasNextPage && !list.isFetchingNextPage) void list.fetchNextPage();
        }}
        onOpen={({ id }) => onOpen(id)}
        columns={[
          {
            key: 'time',
            header: texts.time,
            width: '148px',
            narrow: 'second',
            cell: ({ timestamp }) => <EventTime at={timestamp} />,
          },
          {
            key: 'name',
            header: texts.name,
            width: 'minmax(96px, 0.8fr)',
            narrow: 'first',
            cell: ({ event_name }) => <span className="mono">{event_name}</span>,
          },
          {
            key: 'customer',
            header: texts.customer,
            width: 'minmax(84px, 0.7fr)',
            cell: ({ external_customer_id }) => <bdi>{external_customer_id}</bdi>,
          },
          {
            key: 'properties',
            header: texts.properties,
            width: 'minmax(140px, 2.2fr)',
            cell: ({ properties }) => (
              <span className={`mono ${styles.line}`} title={formatProperties(properties)}>
                {formatProperties(properties)}
              </span>
            ),
          },
          {
            key: 'status',
            header: texts.status,
            width: '104px',
            narrow: 'end',
            cell: ({ id, status }) => <StatusChip status={faults.get(id) ?? status} />,
          },
        ]}
      />
    </div>
  );
}

const EXAMPLE = { event_name: 'api_call', external_customer_id: 'customer-1', properties: { model: 'small' } };

type FaultsInput = {
  /** Id of the newest polled event, after which the faults are read again; the stream knows the faults of its events. */
  newest: string | undefined;
  /** Whether they are read. */
  shouldRead: boolean;
};

/** A list of the service has no status; a fault is known from the events that are not counted. */
function useFaults({ property_filters: _, ...rest }: EventFilters, { newest, shouldRead }: FaultsInput) {
  const filters = { ...rest, ...(rest.start_time === undefined ? { days: UNCOUNTED_DAYS } : {}) };
  const found = useQuery({
    queryKey: ['/events/uncounted', 'faults', filters, newest] as const,
    queryFn: ({ signal }) =>
      readData(api.GET('/events/uncounted', { params: { query: { ...filters, limit: MARKED_MAX } as never }, signal })),
    placeholderData: (old) => old,
    staleTime: 5000,
    enabled: shouldRead,
  });
  return useMemo(() => {
    const faults = new Map<string, EventStatus>();
    for (const { event_id, reason } of found.data?.items ?? [])
      if (event_id !== null && (reason === 'unmatched' || reason === 'unusable')) faults.set(event_id, reason);
    return faults;
  }, [found.data]);
}

export function StatusChip({ status }: { status: EventStatus | undefined }): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  if (status === undefined) return <Chip>{texts.accepted}</Chip>;
  return <Chip tone={status === 'counted' ? 'plain' : 'bad'}>{texts[status]}</Chip>;
}
