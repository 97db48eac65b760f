/** Accepted events that no meter counts, with the reason, and the way to mend each. */
import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import { useMayNot } from '../../client/permission.ts';
import { invalidate } from '../../client/queries.ts';
import { Button } from '../../components/button.tsx';
import { Chip } from '../../components/chip.tsx';
import { Choice } from '../../components/choice.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { DataTable } from '../../components/data-table.tsx';
import { toInstants } from '../../components/range.ts';
import { Empty, Failure, Loading } from '../../components/states.tsx';
import { formatCount } from '../../figures/format.ts';
import { Unknown } from '../../figures/money.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import {
  buildUncountedCountsQuery,
  buildUncountedQuery,
  UNCOUNTED_DAYS,
  type UncountedFilters,
  type UncountedRecord,
} from './event-queries.ts';
import { formatProperties } from './event-rows.ts';
import { type EventsSearch, type ReasonFilter, UNCOUNTED_REASONS } from './event-search.ts';
import { EVENT_TEXTS, type EventTexts } from './event-texts.ts';
import { EventTime } from './event-time.tsx';
import styles from './events.module.css';

type UncountedListProps = { search: EventsSearch; onChange: (next: Partial<EventsSearch>) => void };

export function UncountedList({ search, onChange }: UncountedListProps): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  const language = useLanguage();
  const [replayed, setReplayed] = useState<string[] | null>(null);
  const mayNot = { send: useMayNot('event:write'), correct: useMayNot('event:correct') };
  const { customer, name, from, to, reason } = search;
  const filters: UncountedFilters = {
    ...(name === undefined ? {} : { event_name: name }),
    ...(customer === undefined ? {} : { external_customer_id: customer }),
    ...(from === undefined || to === undefined ? { days: UNCOUNTED_DAYS } : toInstants({ from, to })),
  };
  const counts = useQuery(buildUncountedCountsQuery(filters));
  const list = useInfiniteQuery(buildUncountedQuery({ ...filters, ...(reason === undefined ? {} : { reason }) }));
  const rows = (list.data?.pages ?? []).flatMap(({ items }) => items);
  const countText = (value: ReasonFilter) => {
    const found = counts.data?.counts?.find((each) => each.reason === value);
    return found ? ` ${formatCount(language, found.event_count)}${found.has_more ? '+' : ''}` : '';
  };
  const letters = rows.filter((row) => row.reason === 'dead_letter').map(({ id }) => id);
  const open = (row: UncountedRecord) =>
    row.reason === 'dead_letter' || row.event_id === null
      ? onChange({ do: 'send', letter: row.id, event: undefined })
      : onChange({ event: row.event_id, do: undefined });
  return (
    <>
      <div className={styles.reasons}>
        <Choice<ReasonFilter | 'any'>
          label={texts.reason}
          value={reason ?? 'any'}
          options={[
            { value: 'any', label: texts.anyReason },
            ...UNCOUNTED_REASONS.map((value) => ({ value, label: `${texts[value]}${countText(value)}` })),
          ]}
          onValue={(value) => onChange({ reason: value === 'any' ? undefined : value })}
        />
        {letters.length > 0 && (
          <Button blocked={mayNot.correct} onClick={() => setReplayed(letters)}>
            {texts.replayAll(formatCount(language, letters.length))}
          </Button>
        )}
      </div>
      {list.isError ? (
        <Failure error={list.error} onRetry={() => void list.refetch()} />
      ) : list.isPending ? (
        <Loading rows={8} />
      ) : rows.length === 0 && !list.hasNextPage ? (
        <Empty title={texts.allCounted}>{texts.allCountedHint}</Empty>
      ) : (
        <DataTable<UncountedRecord>
          label={texts.uncounted}
          rows={rows}
          rowKey={({ id, meter_id }) => `${id}${meter_id ?? ''}`}
          openKey={rows.find(({ event_id }) => event_id !== null && event_id === search.event)?.id ?? null}
          hasMore={list.hasNextPage}
          onEnd={() => {
            if (list.hasNextPage && !list.isFetchingNextPage) void list.fetchNextPage();
          }}
          onOpen={open}
          columns={listColumns(texts, mayNot, onChange, (id) => setReplayed([id]))}
        />
      )}
      {replayed && <ReplayLetters ids={replayed} onClose={() => setReplayed(null)} />}
    </>
  );
}

function listColumns(
  texts: EventTexts,
  mayNot: { readonly send: string | null; readonly correct: string | null },
  onChange: UncountedListProps['onChange'],
  replay: (id: string) => void,
) {
  return [
    {
      key: 'time',
      header: texts.time,
      width: '148px',
      cell: ({ timestamp, received_at }: UncountedRecord) => <EventTime at={timestamp ?? received_at} />,
    },
    {
      key: 'name',
      header: texts.name,
      width: 'minmax(144px, 0.8fr)',
      narrow: 'first' as const,
      cell: ({ event_name, nearest_event_name }: UncountedRecord) => (
        <span className="mono">
          {event_name ?? <Unknown />}
          {nearest_event_name !== null && <span className={styles.nearest}>{texts.nearest(nearest_event_name)}</span>}
        </span>
      ),
    },
    {
      key: 'customer',
      header: texts.customer,
      width: 'minmax(84px, 0.6fr)',
      cell: ({ external_customer_id }: UncountedRecord) =>
        external_customer_id === null ? <Unknown /> : <bdi>{external_customer_id}</bdi>,
    },
    {
      key: 'reason',
      header: texts.reason,
      width: 'minmax(110px, 1.6fr)',
      cell: ({ reason, message, properties }: UncountedRecord) => (
        <span className={styles.why}>
          <Chip tone={reason === 'conflict' ? 'warn' : 'bad'}>{texts[reason]}</Chip>
          <span
            className={`muted ${styles.line}`}
            title={`${message} ${properties ? formatProperties(properties) : ''}`}
          >
            {message}
          </span>
        </span>
      ),
    },
    {
      key: 'mend',
      header: <span className="visually-hidden">{texts.mend}</span>,
      width: '124px',
      isFigure: true,
      narrow: 'end' as const,
      cell: ({ id, reason, event_id }: UncountedRecord) =>
        reason === 'dead_letter' ? (
          <span className={styles.deeds}>
            <Button blocked={mayNot.correct} onClick={() => replay(id)}>
              {texts.replay}
            </Button>
            <Button blocked={mayNot.send} onClick={() => onChange({ do: 'send', letter: id, event: undefined })}>
              {texts.mend}
            </Button>
          </span>
        ) : reason === 'conflict' || event_id === null ? null : (
          <Button blocked={mayNot.correct} onClick={() => onChange({ event: event_id, do: 'mend' })}>
            {texts.mend}
          </Button>
        ),
    },
  ];
}

/** Sends dead letters through validation again, and shows the verdict of each that was refused. */
function ReplayLetters({ ids, onClose }: { ids: string[]; onClose: () => void }): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  const language = useLanguage();
  const queries = useQueryClient();
  return (
    <Confirm
      needs="event:correct"
      title={texts.replayTitle(formatCount(language, ids.length))}
      action={texts.replay}
      onClose={onClose}
      onConfirm={async () => {
        const { verdicts } = await readData(api.POST('/events/dead-letters/replay', { body: { ids } as never }));
        await invalidate(queries, '/events');
        const refused = verdicts.filter(({ verdict }) => verdict === 'refused');
        if (refused.length > 0) throw new Error(refused.map(({ id, message }) => `${id}: ${message}`).join('; '));
      }}
    >
      <p>{texts.replayHint}</p>
    </Confirm>
  );
}
