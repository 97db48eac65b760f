/** The subscriptions of a plan, the newest first. */
import { Link, useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { usePages } from '../../client/pages.ts';
import { Chip } from '../../components/chip.tsx';
import { DataTable } from '../../components/data-table.tsx';
import { Section, Sheet } from '../../components/page.tsx';
import { LoadedRows } from '../../components/states.tsx';
import { Period } from '../../figures/when.tsx';
import { useTexts } from '../../texts/texts.ts';
import type { PlanRecord } from './plan-queries.ts';
import { PLAN_TEXTS } from './plan-texts.ts';
import styles from './plans.module.css';

const FROM = '/env/$environment_id/plans/$plan_id';

export function PlanSubscribers({ plan }: { plan: PlanRecord }): ReactNode {
  const texts = useTexts(PLAN_TEXTS);
  const navigate = useNavigate({ from: FROM });
  const list = usePages('/subscriptions', { query: { plan_id: plan.id, expand: 'customer' } as never });
  const last = Math.max(0, ...(plan.prices ?? []).map(({ sequence }) => sequence));
  return (
    <Section title={texts.customers} hint={list.isPending ? undefined : texts.allSubscriptions(list.total)}>
      <LoadedRows list={list} rows={3}>
        {() =>
          list.rows.length === 0 ? (
            <Sheet>
              <p className={styles.note}>{texts.noSubscribers}</p>
            </Sheet>
          ) : (
            <DataTable
              label={texts.customers}
              rows={list.rows}
              rowKey={({ id }) => id}
              total={list.total}
              onEnd={list.loadMore}
              onOpen={({ id }) =>
                void navigate({
                  to: '/env/$environment_id/subscriptions/$subscription_id',
                  params: { subscription_id: id },
                })
              }
              columns={[
                {
                  key: 'customer',
                  header: texts.customer,
                  width: 'minmax(150px, 2fr)',
                  narrow: 'first',
                  cell: ({ id, customer, customer_id }) => (
                    <Link
                      from={FROM}
                      to="/env/$environment_id/subscriptions/$subscription_id"
                      params={{ subscription_id: id }}
                    >
                      <bdi>{customer?.name || customer_id}</bdi>
                    </Link>
                  ),
                },
                {
                  key: 'status',
                  header: texts.status,
                  width: '120px',
                  narrow: 'end',
                  cell: ({ subscription_status }) => (
                    <Chip tone={subscription_status === 'active' ? 'ok' : 'plain'}>
                      {texts.statusName(subscription_status)}
                    </Chip>
                  ),
                },
                {
                  key: 'period',
                  header: texts.running,
                  width: 'minmax(150px, 1fr)',
                  cell: ({ current_period_start, current_period_end }) => (
                    <Period start={current_period_start} end={current_period_end} />
                  ),
                },
                {
                  key: 'prices',
                  header: texts.prices,
                  width: '130px',
                  cell: ({ synced_price_sequence, subscription_status }) =>
                    subscription_status === 'cancelled' ? (
                      '–'
                    ) : (synced_price_sequence ?? 0) < last ? (
                      <Chip tone="warn">{texts.behind}</Chip>
                    ) : (
                      texts.upToDate
                    ),
                },
              ]}
            />
          )
        }
      </LoadedRows>
    </Section>
  );
}
