/** Voids and replacements of events, newest first, with author and reason. */
import type { ReactNode } from 'react';
import { usePages } from '../../client/pages.ts';
import { Chip } from '../../components/chip.tsx';
import { Choice } from '../../components/choice.tsx';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { Empty, LoadedRows } from '../../components/states.tsx';
import { Unknown } from '../../figures/money.tsx';
import { useTexts } from '../../texts/texts.ts';
import type { ListedCorrection } from './event-queries.ts';
import { buildListFilters } from './event-rows.ts';
import type { CorrectionFilter, EventsSearch } from './event-search.ts';
import { EVENT_TEXTS, type EventTexts } from './event-texts.ts';
import { EventTime } from './event-time.tsx';
import styles from './events.module.css';

type CorrectedListProps = { search: EventsSearch; onChange: (next: Partial<EventsSearch>) => void };

export function CorrectedList({ search, onChange }: CorrectedListProps): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  const { action, event } = search;
  const query = { ...buildListFilters(search), ...(action === undefined ? {} : { action }) };
  const list = usePages('/events/corrections', { query: query as never });
  return (
    <>
      <div className={styles.reasons}>
        <Choice<CorrectionFilter | 'any'>
          label={texts.correction}
          value={action ?? 'any'}
          options={[
            { value: 'any', label: texts.anyCorrection },
            { value: 'replace', label: texts.onlyReplaced },
            { value: 'void', label: texts.onlyVoided },
          ]}
          onValue={(value) => onChange({ action: value === 'any' ? undefined : value })}
        />
      </div>
      <LoadedRows list={list} rows={8}>
        {() =>
          list.rows.length === 0 ? (
            <Empty title={texts.noCorrection}>{texts.noCorrectionHint}</Empty>
          ) : (
            <DataTable<ListedCorrection>
              label={texts.correctedTab}
              rows={list.rows}
              total={list.total}
              rowKey={({ id }) => id}
              openKey={list.rows.find(({ event_id }) => event_id === event)?.id ?? null}
              onEnd={list.loadMore}
              onOpen={({ event_id }) => onChange({ event: event_id, do: undefined })}
              columns={listColumns(texts)}
            />
          )
        }
      </LoadedRows>
    </>
  );
}

function listColumns(texts: EventTexts): Column<ListedCorrection>[] {
  return [
    {
      key: 'requested',
      header: texts.correctedAt,
      width: '148px',
      cell: ({ requested_at }) => <EventTime at={requested_at} />,
    },
    {
      key: 'name',
      header: texts.name,
      width: 'minmax(96px, 0.8fr)',
      narrow: 'first',
      cell: ({ event_name, event_id }) => <span className="mono">{event_name ?? event_id}</span>,
    },
    {
      key: 'customer',
      header: texts.customer,
      width: 'minmax(84px, 0.7fr)',
      cell: ({ external_customer_id }) =>
        external_customer_id === null ? <Unknown /> : <bdi>{external_customer_id}</bdi>,
    },
    {
      key: 'reason',
      header: texts.reason,
      width: 'minmax(120px, 1.6fr)',
      cell: ({ reason }) => (
        <bdi className={styles.line} title={reason}>
          {reason}
        </bdi>
      ),
    },
    {
      key: 'author',
      header: texts.author,
      width: 'minmax(84px, 0.8fr)',
      narrow: 'hidden',
      cell: ({ actor, requested_by }) => (
        <bdi className={styles.line}>
          {actor?.type === 'system' ? texts.service : (actor?.name ?? actor?.email ?? requested_by)}
        </bdi>
      ),
    },
    {
      key: 'state',
      header: texts.status,
      width: '124px',
      narrow: 'end',
      cell: ({ action, state }) => (
        <Chip tone={state === 'applied' ? (action === 'void' ? 'warn' : 'info') : 'plain'}>
          {state === 'applied' ? texts[`did_${action}`] : texts[state]}
        </Chip>
      ),
    },
  ];
}
