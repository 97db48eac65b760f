/** All subscriptions: quick filters by status with their counts, and filters by customer and plan. */
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { usePages } from '../../client/pages.ts';
import { useMayNot } from '../../client/permission.ts';
import { useGet } from '../../client/queries.ts';
import { Button, primaryButtonClass } from '../../components/button.tsx';
import { Chip } from '../../components/chip.tsx';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { PageHead } from '../../components/page.tsx';
import { Empty, LoadedRows } from '../../components/states.tsx';
import { formatCount, formatDay } from '../../figures/format.ts';
import { Day, Period, useZone } from '../../figures/when.tsx';
import { type Language, useLanguage, useTexts } from '../../texts/texts.ts';
import lists from '../invoices/invoices.module.css';
import { CustomerSelect, PlanSelect } from './record-selects.tsx';
import {
  findNextInvoiceAt,
  STATUS_TONES,
  SUBSCRIPTION_FILTERS,
  type SubscriptionListFilter,
  type SubscriptionRecord,
} from './subscription.ts';
import { TEXTS } from './texts.ts';

const FROM = '/env/$environment_id/subscriptions';

type ListQuery = { customer_id?: string; plan_id?: string };

export function SubscriptionsPage(): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const zone = useZone();
  const { show, customer, plan } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const rest: ListQuery = { ...(customer ? { customer_id: customer } : {}), ...(plan ? { plan_id: plan } : {}) };
  const list = usePages('/subscriptions', {
    query: { ...rest, ...(show ? { subscription_status: [show] } : {}), expand: ['customer', 'plan'] },
  });
  const isFiltered = show !== undefined || customer !== undefined || plan !== undefined;
  const rows = list.rows as readonly SubscriptionRecord[];
  return (
    <>
      <PageHead title={texts.title} actions={<NewSubscriptionLink />} />
      <div className={lists.bar}>
        <nav aria-label={texts.filters} className={lists.nav}>
          <ul className={lists.tabs}>
            <FilterTab filter={null} isOn={show === undefined} rest={rest} />
            {SUBSCRIPTION_FILTERS.map((filter) => (
              <FilterTab key={filter} filter={filter} isOn={filter === show} rest={rest} />
            ))}
          </ul>
        </nav>
        <div className={lists.pickers}>
          <PlanSelect
            className={lists.picker}
            aria-label={texts.plan}
            placeholder={texts.anyPlan}
            clearable
            value={plan}
            onValue={(id) => void navigate({ search: ({ plan: _, ...old }) => (id ? { ...old, plan: id } : old) })}
          />
          <CustomerSelect
            className={lists.picker}
            aria-label={texts.customer}
            placeholder={texts.anyCustomer}
            clearable
            value={customer}
            onValue={(id) =>
              void navigate({ search: ({ customer: _, ...old }) => (id ? { ...old, customer: id } : old) })
            }
          />
        </div>
      </div>
      <LoadedRows list={list} rows={8}>
        {() =>
          rows.length > 0 ? (
            <DataTable
              label={texts.title}
              columns={listColumns(texts, language, zone)}
              rows={rows}
              rowKey={({ id }) => id}
              total={list.total}
              onEnd={list.loadMore}
              onOpen={({ id }) =>
                void navigate({
                  to: '/env/$environment_id/subscriptions/$subscription_id',
                  params: (old) => ({ environment_id: old.environment_id!, subscription_id: id }),
                  search: (old) => ({ zone: old.zone }),
                })
              }
            />
          ) : isFiltered ? (
            <Empty
              title={texts.nothingTitle}
              action={
                <Button onClick={() => void navigate({ search: (old) => ({ zone: old.zone }) })}>
                  {texts.showAll}
                </Button>
              }
            >
              {texts.nothing}
            </Empty>
          ) : (
            <Empty title={texts.emptyTitle} action={<NewSubscriptionLink />}>
              {texts.empty}
            </Empty>
          )
        }
      </LoadedRows>
      {rows.length > 0 && (
        <p className={lists.foot}>
          <span />
          <span className={lists.keys}>{texts.keys}</span>
        </p>
      )}
    </>
  );
}

function NewSubscriptionLink(): ReactNode {
  const texts = useTexts(TEXTS);
  const mayNot = useMayNot('subscription:write');
  const { customer, plan } = useSearch({ from: FROM });
  if (mayNot !== null)
    return (
      <Button isPrimary blocked={mayNot}>
        {texts.newSubscription}
      </Button>
    );
  return (
    <Link
      from={FROM}
      to="/env/$environment_id/subscriptions/new"
      search={({ zone }) => ({ zone, ...(customer ? { customer } : {}), ...(plan ? { plan } : {}) })}
      className={primaryButtonClass}
    >
      {texts.newSubscription}
    </Link>
  );
}

type SubscriptionTabProps = { filter: SubscriptionListFilter | null; isOn: boolean; rest: ListQuery };

/** A quick filter with the number of its subscriptions. */
function FilterTab({ filter, isOn, rest }: SubscriptionTabProps): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const count = useGet('/subscriptions', {
    query: { ...rest, ...(filter ? { subscription_status: [filter] } : {}), limit: 1 },
  });
  return (
    <li>
      <Link
        from={FROM}
        to="."
        search={({ show: _, ...old }) => (filter === null ? old : { ...old, show: filter })}
        className={lists.tab}
        activeOptions={{ exact: true }}
        aria-current={isOn ? 'page' : 'false'}
      >
        {filter === null ? texts.all : texts.statusName(filter)}{' '}
        {count.data && <span className={lists.count}>{formatCount(language, count.data.pagination?.total ?? 0)}</span>}
      </Link>
    </li>
  );
}

function listColumns(
  texts: ReturnType<typeof useTexts<typeof TEXTS.en>>,
  language: Language,
  zone: string,
): Column<SubscriptionRecord>[] {
  return [
    {
      key: 'customer',
      header: texts.customer,
      width: 'minmax(140px, 2fr)',
      narrow: 'first',
      cell: ({ customer, customer_id }) => <bdi>{customer?.name || customer?.external_id || customer_id}</bdi>,
    },
    {
      key: 'plan',
      header: texts.plan,
      width: 'minmax(110px, 1.4fr)',
      cell: ({ plan, plan_id }) => <bdi>{plan?.name ?? plan_id}</bdi>,
    },
    {
      key: 'status',
      header: texts.status,
      width: 'minmax(110px, 1.2fr)',
      narrow: 'end',
      cell: ({ subscription_status, cancel_at }) => (
        <>
          <Chip tone={STATUS_TONES[subscription_status]}>{texts.statusName(subscription_status)}</Chip>
          {cancel_at && subscription_status !== 'cancelled' && (
            <span className="label"> {texts.ending(formatDay(language, cancel_at, zone))}</span>
          )}
        </>
      ),
    },
    {
      key: 'period',
      header: texts.period,
      width: 'minmax(140px, 1.4fr)',
      cell: ({ current_period_start, current_period_end }) => (
        <Period start={current_period_start} end={current_period_end} />
      ),
    },
    {
      key: 'currency',
      header: <span className="visually-hidden">ISO 4217</span>,
      width: '52px',
      narrow: 'hidden',
      cell: ({ currency }) => <span className="muted">{currency.toUpperCase()}</span>,
    },
    {
      key: 'next',
      header: texts.nextInvoice,
      width: '112px',
      isFigure: true,
      narrow: 'hidden',
      cell: (subscription) => <Day at={findNextInvoiceAt(subscription)} />,
    },
  ];
}
