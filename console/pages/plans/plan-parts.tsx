/** A plan grants entitlements and credits besides its prices. */
import { type UseQueryResult, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { api } from '../../client/client.ts';
import type { NeededPermission } from '../../client/permission.ts';
import { invalidate, useGet } from '../../client/queries.ts';
import { Button } from '../../components/button.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { Section, Sheet } from '../../components/page.tsx';
import { Loaded } from '../../components/states.tsx';
import { TextButton } from '../../components/text-button.tsx';
import { Quantity } from '../../figures/money.tsx';
import { useTexts } from '../../texts/texts.ts';
import type { PlanRecord } from './plan-queries.ts';
import { PLAN_TEXTS } from './plan-texts.ts';
import styles from './plans.module.css';

type PlanPartProps = { plan: PlanRecord; blocked: string | null; onAdd: () => void };
type RemovedPart = { id: string; name: string; needs: NeededPermission };

export function PlanEntitlements({ plan, blocked, onAdd }: PlanPartProps): ReactNode {
  const texts = useTexts(PLAN_TEXTS);
  const list = useGet('/plans/{id}/entitlements', { path: { id: plan.id } });
  return (
    <PlanPart
      title={texts.entitlements}
      none={texts.noEntitlements}
      add={plan.status === 'published' && <AddButton {...{ blocked, onAdd }} label={texts.addEntitlement} />}
      list={list}
      blocked={blocked}
      nameRow={({ feature, feature_id }) => feature?.name ?? feature_id}
      needs="entitlement:write"
      onRemove={(id) => api.DELETE('/entitlements/{id}', { params: { path: { id } } })}
      columns={[
        {
          key: 'feature',
          header: texts.feature,
          width: 'minmax(140px, 2fr)',
          narrow: 'first',
          cell: ({ feature, feature_id }) => <bdi>{feature?.name ?? feature_id}</bdi>,
        },
        {
          key: 'allows',
          header: texts.allows,
          isFigure: true,
          narrow: 'end',
          cell: ({ feature_type, is_enabled, usage_limit, static_value }) =>
            feature_type === 'metered' ? (
              usage_limit === null ? (
                texts.unlimited
              ) : (
                <Quantity value={String(usage_limit)} />
              )
            ) : feature_type === 'static' ? (
              static_value
            ) : is_enabled ? (
              texts.on
            ) : (
              texts.off
            ),
        },
        {
          key: 'resets',
          header: texts.resets,
          narrow: 'second',
          cell: ({ usage_reset_period }) =>
            usage_reset_period ? texts.recurring(texts.period(usage_reset_period)) : '–',
        },
      ]}
    />
  );
}

export function PlanGrants({ plan, blocked, onAdd }: PlanPartProps): ReactNode {
  const texts = useTexts(PLAN_TEXTS);
  const list = useGet('/plans/{id}/creditgrants', { path: { id: plan.id } });
  return (
    <PlanPart
      title={texts.grants}
      none={texts.noGrants}
      add={plan.status === 'published' && <AddButton {...{ blocked, onAdd }} label={texts.addGrant} />}
      list={list}
      blocked={blocked}
      nameRow={({ name }) => name}
      needs="creditgrant:write"
      onRemove={(id) => api.DELETE('/creditgrants/{id}', { params: { path: { id } } })}
      columns={[
        {
          key: 'name',
          header: texts.name,
          width: 'minmax(140px, 2fr)',
          narrow: 'first',
          cell: ({ name }) => <bdi>{name}</bdi>,
        },
        {
          key: 'credits',
          header: texts.credits,
          isFigure: true,
          narrow: 'end',
          cell: ({ credits }) => <Quantity value={credits} />,
        },
        {
          key: 'cadence',
          header: texts.cadence,
          cell: ({ cadence, period }) =>
            cadence === 'ONETIME' ? texts.once : texts.recurring(texts.period(period ?? '')),
        },
        {
          key: 'expires',
          header: texts.expires,
          cell: ({ expiration_type, expiration_duration, expiration_duration_unit }) =>
            expiration_type === 'NEVER'
              ? texts.never
              : expiration_type === 'BILLING_CYCLE'
                ? texts.withPeriod
                : texts.after(expiration_duration ?? 1, expiration_duration_unit ?? 'DAY'),
        },
      ]}
    />
  );
}

type PlanPartListProps<Row> = {
  title: string;
  none: string;
  add: ReactNode;
  list: UseQueryResult<{ items: Row[] }>;
  columns: readonly Column<Row>[];
  blocked: string | null;
  nameRow: (row: Row) => string;
  needs: NeededPermission;
  onRemove: (id: string) => Promise<unknown>;
};

/** One kind of records of a plan, each with its removal. */
function PlanPart<Row extends { id: string }>(props: PlanPartListProps<Row>): ReactNode {
  const { title, none, add, list, columns, blocked, nameRow, needs, onRemove } = props;
  const texts = useTexts(PLAN_TEXTS);
  const queries = useQueryClient();
  const [removed, setRemoved] = useState<RemovedPart | null>(null);
  const removal = removeColumn<Row>(texts.remove, blocked, (row) =>
    setRemoved({ id: row.id, name: nameRow(row), needs }),
  );
  return (
    <Section title={title} end={add}>
      <Loaded query={list} rows={2}>
        {({ items }) =>
          items.length === 0 ? (
            <Sheet>
              <p className={styles.note}>{none}</p>
            </Sheet>
          ) : (
            <DataTable label={title} rows={items} rowKey={({ id }) => id} columns={[...columns, removal]} />
          )
        }
      </Loaded>
      {removed && (
        <RemoveDialog
          removed={removed}
          onClose={() => setRemoved(null)}
          onRemove={async () => {
            await onRemove(removed.id);
            await invalidate(queries, '/plans');
          }}
        />
      )}
    </Section>
  );
}

type AddButtonProps = { label: string; blocked: string | null; onAdd: () => void };

function AddButton({ label, blocked, onAdd }: AddButtonProps): ReactNode {
  return (
    <Button blocked={blocked} onClick={onAdd}>
      {label}
    </Button>
  );
}

function removeColumn<Row extends { id: string }>(label: string, blocked: string | null, onRemove: (row: Row) => void) {
  return {
    key: 'remove',
    header: <span className="visually-hidden">{label}</span>,
    width: '96px',
    isFigure: true,
    narrow: 'second' as const,
    cell: (row: Row) => blocked === null && <TextButton onClick={() => onRemove(row)}>{label}</TextButton>,
  };
}

function RemoveDialog({
  removed,
  onRemove,
  onClose,
}: {
  removed: RemovedPart;
  onRemove: () => Promise<unknown>;
  onClose: () => void;
}): ReactNode {
  const texts = useTexts(PLAN_TEXTS);
  return (
    <Confirm
      needs={removed.needs}
      title={texts.removeTitle(removed.name)}
      action={texts.remove}
      isDangerous
      onClose={onClose}
      onConfirm={onRemove}
    >
      <p>{texts.removeHint}</p>
    </Confirm>
  );
}
