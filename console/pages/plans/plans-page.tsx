/** The plans: what each costs, how many subscribe to it, and what recurs of it each month. */
import { Tabs } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
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
import { Money, Unknown } from '../../figures/money.tsx';
import { useTexts } from '../../texts/texts.ts';
import { PlanForm } from './plan-form.tsx';
import { buildSummariesQuery, type PlanRecord } from './plan-queries.ts';
import { PLAN_TEXTS, type PlanTexts } from './plan-texts.ts';
import styles from './plans.module.css';
import { PriceRate } from './price-rate.tsx';

const FROM = '/env/$environment_id/plans';
/** The summaries come for so many plans at once. */
const SUMMARIES_MAX = 100;

type PlanTotals = {
  active_subscriptions: number;
  recurring_revenue: readonly { currency: string; amount: string }[];
};

export function PlansPage(): ReactNode {
  const texts = useTexts(PLAN_TEXTS);
  const { view, sheet } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const mayNot = useMayNot('plan:write');
  const plans = usePages('/plans', {
    query: { status: view ?? 'published', expand: 'prices' } as never,
  });
  const rows = plans.rows as unknown as PlanRecord[];
  const totals = useQuery(buildSummariesQuery(rows.slice(0, SUMMARIES_MAX).map(({ id }) => id)));
  const openSheet = (next?: 'new') => void navigate({ search: (old) => ({ ...old, sheet: next }) });
  const create = (
    <Button isPrimary blocked={mayNot} onClick={() => openSheet('new')}>
      {texts.newPlan}
    </Button>
  );
  return (
    <WithSheet sheet={sheet === 'new' && <PlanForm onClose={() => openSheet()} />}>
      <PageHead title={texts.plans} subtitle={texts.plansHint} actions={create} />
      <Tabs
        value={view ?? 'published'}
        color="var(--copper)"
        mb="md"
        onChange={(next) =>
          void navigate({
            search: (old) => ({ zone: old.zone, ...(next === 'archived' ? { view: 'archived' as const } : {}) }),
          })
        }
      >
        <Tabs.List>
          <Tabs.Tab value="published">{texts.published}</Tabs.Tab>
          <Tabs.Tab value="archived">{texts.archived}</Tabs.Tab>
        </Tabs.List>
      </Tabs>
      <LoadedRows list={plans}>
        {() =>
          rows.length === 0 ? (
            view === 'archived' ? (
              <Empty title={texts.emptyArchived} />
            ) : (
              <Empty title={texts.empty} action={create}>
                <p>{texts.emptyHint}</p>
                <CodeBlock label={texts.asCurl} code={formatCurl('POST', '/plans', { name: 'Pro' })} />
              </Empty>
            )
          ) : (
            <DataTable
              label={texts.plans}
              columns={listColumns(texts, totals.data)}
              rows={rows}
              rowKey={({ id }) => id}
              total={plans.total}
              onEnd={plans.loadMore}
              onOpen={({ id }) =>
                void navigate({
                  to: '/env/$environment_id/plans/$plan_id',
                  params: { plan_id: id },
                })
              }
            />
          )
        }
      </LoadedRows>
    </WithSheet>
  );
}

function listColumns(texts: PlanTexts, totals: ReadonlyMap<string, PlanTotals> | undefined): Column<PlanRecord>[] {
  return [
    {
      key: 'name',
      header: texts.plan,
      width: 'minmax(140px, 1.4fr)',
      narrow: 'first',
      cell: ({ name, description }) => (
        <>
          <bdi>{name}</bdi>
          {description && <div className="label">{description}</div>}
        </>
      ),
    },
    {
      key: 'prices',
      header: texts.prices,
      width: 'minmax(220px, 2.4fr)',
      narrow: 'second',
      cell: ({ prices }) =>
        prices && prices.length > 0 ? (
          <ul className={styles.rates}>
            {prices.map((price) => (
              <li key={price.id}>
                <bdi>{price.display_name}</bdi> <PriceRate price={price} />
              </li>
            ))}
          </ul>
        ) : (
          <Unknown />
        ),
    },
    {
      key: 'subscribers',
      header: texts.subscribers,
      width: '110px',
      isFigure: true,
      narrow: 'hidden',
      cell: ({ id }) => totals?.get(id)?.active_subscriptions ?? <Unknown />,
    },
    {
      key: 'revenue',
      header: texts.revenue,
      width: '160px',
      isFigure: true,
      narrow: 'end',
      cell: ({ id }) => {
        const sums = totals?.get(id)?.recurring_revenue ?? [];
        return sums.length === 0 ? (
          <Unknown />
        ) : (
          sums.map(({ currency, amount }) => (
            <div key={currency}>
              <Money amount={amount} currency={currency} />
            </div>
          ))
        );
      },
    },
  ];
}
