/** The prices that charge for a meter, with their plans. */
import { Link, useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { usePages } from '../../client/pages.ts';
import { buttonClass } from '../../components/button.tsx';
import { DataTable } from '../../components/data-table.tsx';
import { Section, Sheet } from '../../components/page.tsx';
import { Empty, LoadedRows } from '../../components/states.tsx';
import { useTexts } from '../../texts/texts.ts';
import type { PlanPrice } from '../plans/plan-queries.ts';
import { PriceRate } from '../plans/price-rate.tsx';
import { METER_TEXTS } from './meter-texts.ts';

const FROM = '/env/$environment_id/meters/$meter_id';

export function MeterPrices({ meter_id }: { meter_id: string }): ReactNode {
  const texts = useTexts(METER_TEXTS);
  const navigate = useNavigate({ from: FROM });
  const list = usePages('/prices', { query: { meter_ids: meter_id, entity_type: 'PLAN', expand: 'plan' } as never });
  const rows = list.rows as unknown as PlanPrice[];
  return (
    <Section title={texts.prices}>
      <LoadedRows list={list} rows={2}>
        {() =>
          rows.length === 0 ? (
            <Sheet>
              <Empty
                title={texts.noPrices}
                action={
                  <Link from={FROM} to="/env/$environment_id/plans" search={{}} className={buttonClass}>
                    {texts.toPlans}
                  </Link>
                }
              />
            </Sheet>
          ) : (
            <DataTable<PlanPrice>
              label={texts.prices}
              rows={rows}
              rowKey={({ id }) => id}
              total={list.total}
              onEnd={list.loadMore}
              onOpen={({ id, entity_id }) =>
                void navigate({
                  to: '/env/$environment_id/plans/$plan_id/prices/$price_id',
                  params: { plan_id: entity_id ?? '', price_id: id },
                  search: {},
                })
              }
              columns={[
                {
                  key: 'price',
                  header: texts.price,
                  width: 'minmax(140px, 1.2fr)',
                  narrow: 'first',
                  cell: ({ id, entity_id, display_name }) => (
                    <Link
                      from={FROM}
                      to="/env/$environment_id/plans/$plan_id/prices/$price_id"
                      params={{ plan_id: entity_id ?? '', price_id: id }}
                      search={{}}
                    >
                      <bdi>{display_name ?? id}</bdi>
                    </Link>
                  ),
                },
                {
                  key: 'plan',
                  header: texts.plan,
                  narrow: 'end',
                  cell: ({ plan, entity_id }) => <bdi>{plan?.name ?? entity_id}</bdi>,
                },
                {
                  key: 'charge',
                  header: texts.charge,
                  width: 'minmax(200px, 2fr)',
                  cell: (price) => <PriceRate price={price} />,
                },
              ]}
            />
          )
        }
      </LoadedRows>
    </Section>
  );
}
