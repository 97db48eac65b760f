/** The prices of a plan, fixed fees apart from usage. */
import { Link, useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { primaryButtonClass } from '../../components/button.tsx';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { Section, Sheet } from '../../components/page.tsx';
import { Empty } from '../../components/states.tsx';
import { Quantity, Unknown } from '../../figures/money.tsx';
import { Day } from '../../figures/when.tsx';
import { useTexts } from '../../texts/texts.ts';
import type { PlanPrice, PlanRecord } from './plan-queries.ts';
import { PLAN_TEXTS } from './plan-texts.ts';
import { PriceRate } from './price-rate.tsx';
import { PRICE_TEXTS } from './price-texts.ts';

const FROM = '/env/$environment_id/plans/$plan_id';

export function PlanPrices({ plan }: { plan: PlanRecord }): ReactNode {
  const texts = useTexts(PLAN_TEXTS);
  const prices = plan.prices ?? [];
  const kinds = [
    { title: texts.fixedPrices, prices: prices.filter(({ type }) => type === 'FIXED'), isUsage: false },
    { title: texts.usagePrices, prices: prices.filter(({ type }) => type === 'USAGE'), isUsage: true },
  ].filter((kind) => kind.prices.length > 0);
  if (kinds.length === 0)
    return (
      <Section title={texts.prices}>
        <Sheet>
          <Empty
            title={texts.noPrices}
            action={
              plan.status === 'published' && (
                <Link from={FROM} to="/env/$environment_id/plans/$plan_id/prices/new" className={primaryButtonClass}>
                  {texts.newPrice}
                </Link>
              )
            }
          >
            {texts.noPricesHint}
          </Empty>
        </Sheet>
      </Section>
    );
  return kinds.map((kind) => (
    <Section key={kind.title} title={kind.title}>
      <PriceTable label={kind.title} prices={kind.prices} isUsage={kind.isUsage} />
    </Section>
  ));
}

type PriceTableProps = { label: string; prices: readonly PlanPrice[]; isUsage: boolean };

function PriceTable({ label, prices, isUsage }: PriceTableProps): ReactNode {
  const texts = useTexts(PLAN_TEXTS);
  const terms = useTexts(PRICE_TEXTS);
  const navigate = useNavigate({ from: FROM });
  const columns: Column<PlanPrice>[] = [
    {
      key: 'name',
      header: texts.price,
      width: 'minmax(110px, 1.2fr)',
      narrow: 'first',
      cell: ({ id, display_name }) => (
        <Link from={FROM} to="/env/$environment_id/plans/$plan_id/prices/$price_id" params={{ price_id: id }}>
          <bdi>{display_name ?? terms.unnamed}</bdi>
        </Link>
      ),
    },
    {
      key: 'charge',
      header: texts.charge,
      width: 'minmax(170px, 2fr)',
      narrow: 'second',
      cell: (price) => <PriceRate price={price} />,
    },
    {
      key: 'meter',
      header: isUsage ? texts.meter : terms.minQuantity,
      width: 'minmax(100px, 1fr)',
      narrow: 'hidden',
      cell: ({ meter, min_quantity }) =>
        meter ? <bdi>{meter.name}</bdi> : isUsage ? <Unknown /> : <Quantity value={min_quantity} />,
    },
    {
      key: 'billed',
      header: texts.billed,
      width: 'minmax(160px, 1.2fr)',
      narrow: 'second',
      cell: ({ billing_period, billing_period_count, invoice_cadence, currency }) =>
        `${
          billing_period_count === 1
            ? terms.period(billing_period)
            : terms.every(String(billing_period_count), billing_period)
        }, ${invoice_cadence === 'ARREAR' ? terms.arrears : terms.advance}, ${currency.toUpperCase()}`,
    },
    {
      key: 'from',
      header: texts.from,
      width: '112px',
      narrow: 'hidden',
      cell: ({ start_date }) => <Day at={start_date} />,
    },
  ];
  return (
    <DataTable
      label={label}
      columns={columns}
      rows={prices}
      rowKey={({ id }) => id}
      onOpen={({ id }) =>
        void navigate({
          to: '/env/$environment_id/plans/$plan_id/prices/$price_id',
          params: { price_id: id },
        })
      }
    />
  );
}
