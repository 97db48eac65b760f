/** Events that came after the invoice of their period was final, with that invoice and the invoice that charges them. */
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Chip } from '../../components/chip.tsx';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { Empty, Failure, Loading } from '../../components/states.tsx';
import { Day } from '../../figures/when.tsx';
import { useTexts } from '../../texts/texts.ts';
import { buildLateQuery, type LateEventRow } from './event-queries.ts';
import { buildListFilters } from './event-rows.ts';
import type { EventsSearch } from './event-search.ts';
import { EVENT_TEXTS, type EventTexts } from './event-texts.ts';
import { EventTime } from './event-time.tsx';
import styles from './events.module.css';

const FROM = '/env/$environment_id/events';

type LateListProps = { search: EventsSearch; onChange: (next: Partial<EventsSearch>) => void };

export function LateList({ search, onChange }: LateListProps): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  const list = useInfiniteQuery(buildLateQuery(buildListFilters(search)));
  if (list.isError) return <Failure error={list.error} onRetry={() => void list.refetch()} />;
  if (list.isPending) return <Loading rows={8} />;
  const rows = list.data.pages.flatMap(({ items }) => items);
  const { invoices_since, is_complete } = list.data.pages[0]!;
  return (
    <>
      <p className={styles.note}>
        {texts.lateSince} <Day at={invoices_since} />. {!is_complete && texts.lateCut}
      </p>
      {rows.length === 0 && !list.hasNextPage ? (
        <Empty title={texts.noLate}>{texts.noLateHint}</Empty>
      ) : (
        <DataTable<LateEventRow>
          label={texts.late}
          rows={rows}
          rowKey={({ id }) => id}
          openKey={search.event ?? null}
          hasMore={list.hasNextPage}
          onEnd={() => {
            if (list.hasNextPage && !list.isFetchingNextPage) void list.fetchNextPage();
          }}
          onOpen={({ id }) => onChange({ event: id, do: undefined })}
          columns={listColumns(texts)}
        />
      )}
    </>
  );
}

function listColumns(texts: EventTexts): Column<LateEventRow>[] {
  return [
    {
      key: 'received',
      header: texts.receivedAt,
      width: '148px',
      cell: ({ received_at }) => <EventTime at={received_at} />,
    },
    {
      key: 'name',
      header: texts.name,
      width: 'minmax(96px, 0.9fr)',
      narrow: 'first',
      cell: ({ event_name }) => <span className="mono">{event_name}</span>,
    },
    {
      key: 'customer',
      header: texts.customer,
      width: 'minmax(84px, 0.8fr)',
      cell: ({ external_customer_id }) => <bdi>{external_customer_id}</bdi>,
    },
    {
      key: 'time',
      header: texts.eventTime,
      width: 'minmax(100px, 0.8fr)',
      cell: ({ timestamp }) => <Day at={timestamp} />,
    },
    {
      key: 'missed',
      header: texts.lateFor,
      width: 'minmax(152px, 1fr)',
      cell: ({ invoices }) =>
        invoices.map(({ invoice_id, invoice_number }) => (
          <InvoiceLink key={invoice_id} invoice_id={invoice_id} name={invoice_number ?? texts.openInvoice} />
        )),
    },
    {
      key: 'charged',
      header: texts.chargedBy,
      width: 'minmax(152px, 1fr)',
      narrow: 'end',
      cell: ({ invoices }) =>
        invoices.map(({ invoice_id, charged_by }) =>
          charged_by === null ? (
            <Chip key={invoice_id}>{texts.notCharged}</Chip>
          ) : (
            <InvoiceLink
              key={invoice_id}
              invoice_id={charged_by.invoice_id}
              name={charged_by.invoice_number ?? texts.draft}
            />
          ),
        ),
    },
  ];
}

function InvoiceLink({ invoice_id, name }: { invoice_id: string; name: string }): ReactNode {
  return (
    <Link from={FROM} to="/env/$environment_id/invoices/$invoice_id" params={{ invoice_id }} search={{}}>
      <bdi>{name}</bdi>
    </Link>
  );
}
