/** The keys of programs: who holds them, when they were last used, and the way to make, rotate and revoke them. */
import { useNavigate, useSearch } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { usePages } from '../../client/pages.ts';
import { useMayNot } from '../../client/permission.ts';
import { Button } from '../../components/button.tsx';
import { Chip } from '../../components/chip.tsx';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { PageHead } from '../../components/page.tsx';
import { WithSheet } from '../../components/side-sheet.tsx';
import { Empty, LoadedRows } from '../../components/states.tsx';
import { Unknown } from '../../figures/money.tsx';
import { Day, Moment } from '../../figures/when.tsx';
import { useTexts } from '../../texts/texts.ts';
import type { ApiKey } from './api-key.ts';
import { KeySheet } from './key-sheet.tsx';
import { NewKeySheet } from './new-key-sheet.tsx';
import { RevokeKey } from './revoke-key.tsx';
import { TEXTS } from './texts.ts';

const FROM = '/env/$environment_id/api-keys';

export function ApiKeysPage(): ReactNode {
  const texts = useTexts(TEXTS);
  const { sheet, key } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const [revoked, setRevoked] = useState<ApiKey | null>(null);
  const keys = usePages('/secrets/api/keys', { query: { status: 'published' } });
  const open = (search: { sheet?: 'new' | 'key' | 'rotate'; key?: string }) =>
    void navigate({ search: (old) => ({ zone: old.zone, ...search }) });
  const blocked = useMayNot('secret:write');
  const found = keys.rows.find(({ id }) => id === key);
  const make = (
    <Button isPrimary blocked={blocked} onClick={() => open({ sheet: 'new' })}>
      {texts.make}
    </Button>
  );
  return (
    <WithSheet
      sheet={
        sheet === 'new' ? (
          <NewKeySheet onClose={() => open({})} />
        ) : sheet === 'rotate' && found ? (
          <NewKeySheet key={found.id} rotated={found} onRevoke={() => setRevoked(found)} onClose={() => open({})} />
        ) : sheet === 'key' && found ? (
          <KeySheet
            apiKey={found}
            blocked={blocked}
            onRotate={() => open({ sheet: 'rotate', key: found.id })}
            onRevoke={() => setRevoked(found)}
            onClose={() => open({})}
          />
        ) : null
      }
    >
      <PageHead title={texts.title} subtitle={texts.subtitle} actions={make} />
      <LoadedRows list={keys}>
        {() =>
          keys.rows.length === 0 ? (
            <Empty title={texts.empty} action={make}>
              {texts.emptyHint}
            </Empty>
          ) : (
            <DataTable
              label={texts.title}
              columns={listColumns(texts)}
              rows={keys.rows}
              rowKey={({ id }) => id}
              total={keys.total}
              onEnd={keys.loadMore}
              openKey={key ?? null}
              onOpen={({ id }) => open({ sheet: 'key', key: id })}
            />
          )
        }
      </LoadedRows>
      {revoked && <RevokeKey apiKey={revoked} onClose={() => setRevoked(null)} />}
    </WithSheet>
  );
}

function listColumns(texts: ReturnType<typeof useTexts<typeof TEXTS.en>>): Column<ApiKey>[] {
  return [
    {
      key: 'name',
      header: texts.name,
      width: 'minmax(140px, 2fr)',
      narrow: 'first',
      cell: ({ name }) => <bdi>{name}</bdi>,
    },
    {
      key: 'id',
      header: texts.key,
      width: '112px',
      cell: ({ display_id }) => <span className="mono">{display_id}</span>,
    },
    {
      key: 'roles',
      header: texts.rights,
      width: 'minmax(120px, 1.5fr)',
      narrow: 'end',
      cell: ({ type, roles }) => (
        <Chip>{type === 'publishable_key' ? texts.eventsOnly : (roles ?? []).join(', ')}</Chip>
      ),
    },
    {
      key: 'owner',
      header: texts.owner,
      narrow: 'hidden',
      cell: ({ service_account_name }) => (service_account_name ? <bdi>{service_account_name}</bdi> : texts.person),
    },
    {
      key: 'used',
      header: texts.lastUsed,
      width: '156px',
      cell: ({ last_used_at }) => (last_used_at ? <Moment at={last_used_at} /> : texts.never),
    },
    {
      key: 'expires',
      header: texts.expires,
      narrow: 'hidden',
      cell: ({ expires_at }) => (expires_at ? <Day at={expires_at} /> : <Unknown />),
    },
  ];
}
