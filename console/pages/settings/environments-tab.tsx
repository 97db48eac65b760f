import { Link, useParams, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { components } from '../../client/openapi.d.ts';
import { useMayNot } from '../../client/permission.ts';
import { useGet } from '../../client/queries.ts';
import { Button } from '../../components/button.tsx';
import { Chip } from '../../components/chip.tsx';
import { CopyId } from '../../components/copy.tsx';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { Loaded } from '../../components/states.tsx';
import { Day } from '../../figures/when.tsx';
import { useTexts } from '../../texts/texts.ts';
import { ENVIRONMENT_TEXTS } from './environment-texts.ts';
import styles from './settings.module.css';
import type { TabProps } from './tab-props.ts';

export const ENVIRONMENTS_MAX = 200;
type EnvironmentRow = components['schemas']['EnvironmentResponse'];

/** The environments of the tenant: each has its own catalogue, customers, keys and settings. */
export function EnvironmentsTab({ openSheet }: TabProps): ReactNode {
  const texts = useTexts(ENVIRONMENT_TEXTS);
  const { environment_id } = useParams({ from: '/env/$environment_id/settings' });
  const { id: openId } = useSearch({ from: '/env/$environment_id/settings' });
  const environments = useGet('/environments', { query: { limit: ENVIRONMENTS_MAX } });
  const blocked = useMayNot('environment:write');
  const columns: Column<EnvironmentRow>[] = [
    {
      key: 'name',
      header: texts.name,
      narrow: 'first',
      width: 'minmax(140px, 2fr)',
      cell: ({ id, name }) => (
        <>
          <Link to="/env/$environment_id" params={{ environment_id: id }}>
            <bdi>{name}</bdi>
          </Link>{' '}
          {id === environment_id && <Chip tone="info">{texts.open}</Chip>}
        </>
      ),
    },
    {
      key: 'type',
      header: texts.type,
      width: '140px',
      narrow: 'end',
      cell: ({ type }) => texts[type],
    },
    {
      key: 'id',
      header: texts.id,
      width: 'minmax(230px, 2fr)',
      narrow: 'hidden',
      cell: ({ id }) => <CopyId id={id} />,
    },
    { key: 'made', header: texts.made, width: '130px', cell: ({ created_at }) => <Day at={created_at} /> },
  ];
  return (
    <>
      <div className={styles.toolbar}>
        <p>{texts.hint}</p>
        <span className={styles.pairOfButtons}>
          <Button blocked={blocked} onClick={() => openSheet({ sheet: 'copy' })}>
            {texts.copy}
          </Button>
          <Button isPrimary blocked={blocked} onClick={() => openSheet({ sheet: 'new' })}>
            {texts.create}
          </Button>
        </span>
      </div>
      <Loaded query={environments}>
        {({ environments: rows }) => (
          <DataTable
            label={texts.environments}
            columns={columns}
            rows={rows}
            rowKey={({ id }) => id}
            openKey={openId ?? null}
            onOpen={({ id }) => openSheet({ sheet: 'open', id })}
          />
        )}
      </Loaded>
    </>
  );
}
