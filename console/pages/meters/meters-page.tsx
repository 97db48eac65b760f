/** The meters: which events each counts, how, and when the last one came. */
import { Tabs } from '@mantine/core';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { formatCurl } from '../../client/client.ts';
import { usePages } from '../../client/pages.ts';
import { useGet } from '../../client/queries.ts';
import { primaryButtonClass } from '../../components/button.tsx';
import { CodeBlock } from '../../components/copy.tsx';
import { DataTable } from '../../components/data-table.tsx';
import { PageHead } from '../../components/page.tsx';
import { Empty, LoadedRows } from '../../components/states.tsx';
import { Moment } from '../../figures/when.tsx';
import { useTexts } from '../../texts/texts.ts';
import { Definition } from './definition.tsx';
import { METER_TEXTS } from './meter-texts.ts';

/** A first meter, as the command of the empty page creates it. */
const EXAMPLE = { name: 'Tokens', event_name: 'completion', aggregation: { type: 'SUM', field: 'tokens' } };

const FROM = '/env/$environment_id/meters';

export function MetersPage(): ReactNode {
  const texts = useTexts(METER_TEXTS);
  const { view } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const meters = usePages('/meters', { query: { status: view ?? 'published' } as never });
  const names = useGet('/events/names', { query: { days: '30' } as never });
  const lastSeen = new Map(names.data?.items.map(({ event_name, last_seen_at }) => [event_name, last_seen_at]));
  const create = (
    <Link from={FROM} to="/env/$environment_id/meters/new" search={{}} className={primaryButtonClass}>
      {texts.newMeter}
    </Link>
  );
  return (
    <>
      <PageHead title={texts.meters} subtitle={texts.metersHint} actions={create} />
      <Tabs
        value={view ?? 'published'}
        color="var(--copper)"
        mb="md"
        onChange={(next) => void navigate({ search: next === 'archived' ? { view: 'archived' } : {} })}
      >
        <Tabs.List>
          <Tabs.Tab value="published">{texts.live}</Tabs.Tab>
          <Tabs.Tab value="archived">{texts.archived}</Tabs.Tab>
        </Tabs.List>
      </Tabs>
      <LoadedRows list={meters}>
        {() =>
          meters.rows.length === 0 ? (
            view === 'archived' ? (
              <Empty title={texts.emptyArchived} />
            ) : (
              <Empty title={texts.empty} action={create}>
                <p>{texts.emptyHint}</p>
                <CodeBlock label={texts.asCurl} code={formatCurl('POST', '/meters', EXAMPLE)} />
              </Empty>
            )
          ) : (
            <DataTable
              label={texts.meters}
              rows={meters.rows}
              rowKey={({ id }) => id}
              total={meters.total}
              onEnd={meters.loadMore}
              onOpen={({ id }) =>
                void navigate({ to: '/env/$environment_id/meters/$meter_id', params: { meter_id: id }, search: {} })
              }
              columns={[
                {
                  key: 'name',
                  header: texts.name,
                  width: 'minmax(140px, 1.4fr)',
                  narrow: 'first',
                  cell: ({ id, name }) => (
                    <Link from={FROM} to="/env/$environment_id/meters/$meter_id" params={{ meter_id: id }} search={{}}>
                      <bdi>{name}</bdi>
                    </Link>
                  ),
                },
                {
                  key: 'event',
                  header: texts.event,
                  width: 'minmax(120px, 1fr)',
                  cell: ({ event_name }) => <span className="mono">{event_name}</span>,
                },
                {
                  key: 'counts',
                  header: texts.counts,
                  width: 'minmax(160px, 1.4fr)',
                  cell: ({ aggregation }) => <Definition aggregation={aggregation} />,
                },
                {
                  key: 'seen',
                  header: texts.lastSeen,
                  width: '170px',
                  isFigure: true,
                  narrow: 'end',
                  cell: ({ event_name }) => {
                    const at = lastSeen.get(event_name);
                    return at ? <Moment at={at} /> : <span className="muted">{names.data ? texts.notSeen : '–'}</span>;
                  },
                },
              ]}
            />
          )
        }
      </LoadedRows>
    </>
  );
}
