import type { ReactNode } from 'react';
import type { ListOfPages } from '../../client/pages.ts';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { Unknown } from '../../figures/money.tsx';
import { Moment } from '../../figures/when.tsx';
import { useTexts } from '../../texts/texts.ts';
import { DeliveryChip } from './endpoint-chip.tsx';
import { WEBHOOK_TEXTS, type WebhookTexts } from './texts.ts';
import type { DeliveryRecord } from './webhook-records.ts';

export function DeliveryTable({
  deliveries,
  openId,
  onOpen,
}: {
  deliveries: ListOfPages<DeliveryRecord>;
  openId: string | null;
  onOpen: (id: string) => void;
}): ReactNode {
  const texts = useTexts(WEBHOOK_TEXTS);
  return (
    <DataTable
      label={texts.deliveries}
      columns={listColumns(texts)}
      rows={deliveries.rows}
      rowKey={({ id }) => id}
      total={deliveries.total}
      onEnd={deliveries.loadMore}
      openKey={openId}
      onOpen={({ id }) => onOpen(id)}
    />
  );
}

function listColumns(texts: WebhookTexts): Column<DeliveryRecord>[] {
  return [
    {
      key: 'event',
      header: texts.event,
      width: 'minmax(182px, 2fr)',
      narrow: 'first',
      cell: ({ event_name }) => <span className="mono">{event_name}</span>,
    },
    {
      key: 'record',
      header: texts.aboutRecord,
      width: 'minmax(96px, 2fr)',
      narrow: 'hidden',
      cell: ({ entity_id }) => <span className="mono">{entity_id}</span>,
    },
    {
      key: 'status',
      header: texts.status,
      width: '104px',
      narrow: 'end',
      cell: (delivery) => <DeliveryChip delivery={delivery} />,
    },
    {
      key: 'answer',
      header: texts.answer,
      width: '84px',
      isFigure: true,
      cell: ({ http_status }) => (http_status === null ? <Unknown /> : <span className="mono">{http_status}</span>),
    },
    {
      key: 'attempts',
      header: texts.attempts,
      width: '84px',
      isFigure: true,
      narrow: 'hidden',
      cell: ({ attempt_count }) => attempt_count,
    },
    { key: 'made', header: texts.made, width: '148px', cell: ({ created_at }) => <Moment at={created_at} /> },
  ];
}
