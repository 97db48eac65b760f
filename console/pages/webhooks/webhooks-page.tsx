/** The endpoints that receive the changes of this environment. */
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { formatCurl } from '../../client/client.ts';
import { usePages } from '../../client/pages.ts';
import { useMayNot } from '../../client/permission.ts';
import { Button } from '../../components/button.tsx';
import { CodeBlock } from '../../components/copy.tsx';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { PageHead } from '../../components/page.tsx';
import { WithSheet } from '../../components/side-sheet.tsx';
import { Empty, LoadedRows } from '../../components/states.tsx';
import { Day } from '../../figures/when.tsx';
import { useTexts } from '../../texts/texts.ts';
import { EndpointChip } from './endpoint-chip.tsx';
import { EndpointForm } from './endpoint-form.tsx';
import { WEBHOOK_TEXTS, type WebhookTexts } from './texts.ts';
import type { EndpointRecord } from './webhook-records.ts';

const FROM = '/env/$environment_id/webhooks';

export function WebhooksPage(): ReactNode {
  const texts = useTexts(WEBHOOK_TEXTS);
  const { sheet } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const mayNot = useMayNot('webhook:write');
  const endpoints = usePages('/webhooks/endpoints');
  const openSheet = (next?: 'new') => void navigate({ search: (old) => ({ zone: old.zone, sheet: next }) });
  const add = (
    <Button isPrimary blocked={mayNot} onClick={() => openSheet('new')}>
      {texts.add}
    </Button>
  );
  return (
    <WithSheet sheet={sheet === 'new' && <EndpointForm onClose={() => openSheet()} />}>
      <PageHead title={texts.title} subtitle={texts.subtitle} actions={add} />
      <LoadedRows list={endpoints}>
        {() =>
          endpoints.rows.length === 0 ? (
            <Empty title={texts.empty} action={add}>
              <p>{texts.emptyHint}</p>
              <CodeBlock
                label={texts.asCurl}
                code={formatCurl('POST', '/webhooks/endpoints', {
                  url: 'https://hooks.example.com/farthing',
                  event_names: ['invoice.finalized'],
                })}
              />
            </Empty>
          ) : (
            <DataTable
              label={texts.title}
              columns={listColumns(texts)}
              rows={endpoints.rows}
              rowKey={({ id }) => id}
              total={endpoints.total}
              onEnd={endpoints.loadMore}
              onOpen={({ id }) =>
                void navigate({ to: '/env/$environment_id/webhooks/$endpoint_id', params: { endpoint_id: id } })
              }
            />
          )
        }
      </LoadedRows>
    </WithSheet>
  );
}

function listColumns(texts: WebhookTexts): Column<EndpointRecord>[] {
  return [
    {
      key: 'url',
      header: texts.url,
      width: 'minmax(220px, 3fr)',
      narrow: 'first',
      cell: ({ url }) => <span className="mono">{url}</span>,
    },
    {
      key: 'description',
      header: texts.description,
      width: 'minmax(120px, 2fr)',
      cell: ({ description }) => <bdi>{description}</bdi>,
    },
    {
      key: 'events',
      header: texts.events,
      width: '140px',
      cell: ({ event_names }) => (event_names.length === 0 ? texts.allEvents : texts.eventCount(event_names.length)),
    },
    {
      key: 'state',
      header: texts.status,
      width: '110px',
      narrow: 'end',
      cell: (endpoint) => <EndpointChip endpoint={endpoint} />,
    },
    {
      key: 'made',
      header: texts.made,
      width: '120px',
      narrow: 'hidden',
      cell: ({ created_at }) => <Day at={created_at} />,
    },
  ];
}
