/** All invoices: quick filters with their counts, and filters by customer and period. */
import { Select } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { api, linkTo } from '../../client/client.ts';
import { usePages } from '../../client/pages.ts';
import { postQuery, useGet } from '../../client/queries.ts';
import { Button, buttonClass, primaryButtonClass } from '../../components/button.tsx';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { NoOptions } from '../../components/no-options.tsx';
import { PageHead } from '../../components/page.tsx';
import { Empty, LoadedRows } from '../../components/states.tsx';
import { findLocale, formatCount, formatMoney } from '../../figures/format.ts';
import { Money, Unknown, WhyButton } from '../../figures/money.tsx';
import { Period } from '../../figures/when.tsx';
import { type Language, useLanguage, useTexts } from '../../texts/texts.ts';
import {
  FILTER_QUERIES,
  INVOICE_FILTERS,
  type InvoiceListFilter,
  type InvoiceRecord,
  listMonths,
  toMonthBounds,
} from './invoice.ts';
import styles from './invoices.module.css';
import { useNow } from './now.ts';
import { InvoiceStatus } from './status-chip.tsx';
import { TEXTS } from './texts.ts';

const FROM = '/env/$environment_id/invoices';

export function InvoicesPage(): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const { show = 'all', customer, month } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const rest = {
    ...(customer ? { customer_id: customer } : {}),
    ...(month ? toMonthBounds(month) : {}),
    skip_line_items: true,
  };
  const list = usePages('/invoices', { query: { ...rest, ...FILTER_QUERIES[show], expand: ['customer'] } });
  const isFiltered = show !== 'all' || customer !== undefined || month !== undefined;
  const open = ({ id }: InvoiceRecord, why?: 'total') =>
    void navigate({
      to: '/env/$environment_id/invoices/$invoice_id',
      params: (old) => ({ environment_id: old.environment_id!, invoice_id: id }),
      search: (old) => ({ zone: old.zone, ...(why ? { why } : {}) }),
    });
  const rows = list.rows as readonly InvoiceRecord[];
  return (
    <>
      <PageHead title={texts.title} actions={<ExportLink />} />
      <div className={styles.bar}>
        <nav aria-label={texts.filters} className={styles.nav}>
          <ul className={styles.tabs}>
            {INVOICE_FILTERS.map((filter) => (
              <FilterTab key={filter} filter={filter} isOn={filter === show} rest={rest} />
            ))}
          </ul>
        </nav>
        <div className={styles.pickers}>
          <MonthPicker />
          <CustomerPicker />
        </div>
      </div>
      <LoadedRows list={list} rows={8}>
        {() =>
          rows.length > 0 ? (
            <DataTable
              label={texts.title}
              columns={listColumns(texts, language, open)}
              rows={rows}
              rowKey={({ id }) => id}
              total={list.total}
              onEnd={list.loadMore}
              onOpen={(invoice) => open(invoice)}
            />
          ) : isFiltered ? (
            <Empty
              title={texts.nothingTitle}
              action={
                <Button onClick={() => void navigate({ search: ({ zone }) => ({ zone }) })}>{texts.showAll}</Button>
              }
            >
              {texts.nothing}
            </Empty>
          ) : (
            <Empty
              title={texts.emptyTitle}
              action={
                <Link from={FROM} to="/env/$environment_id/subscriptions/new" className={primaryButtonClass}>
                  {texts.newSubscription}
                </Link>
              }
            >
              {texts.empty}
            </Empty>
          )
        }
      </LoadedRows>
      {rows.length > 0 && (
        <p className={styles.foot}>
          <span>{texts.noSum}</span>
          <span className={styles.keys}>{texts.keys}</span>
        </p>
      )}
    </>
  );
}

type InvoiceTabProps = { filter: InvoiceListFilter; isOn: boolean; rest: object };

/** A quick filter with the number of its invoices. */
function FilterTab({ filter, isOn, rest }: InvoiceTabProps): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const count = useGet('/invoices', { query: { ...rest, ...FILTER_QUERIES[filter], limit: 1 } });
  return (
    <li>
      <Link
        from={FROM}
        to="."
        search={({ show: _, ...old }) => (filter === 'all' ? old : { ...old, show: filter })}
        className={styles.tab}
        activeOptions={{ exact: true }}
        aria-current={isOn ? 'page' : 'false'}
      >
        {texts[filter]}{' '}
        {count.data && <span className={styles.count}>{formatCount(language, count.data.pagination?.total ?? 0)}</span>}
      </Link>
    </li>
  );
}

/** The export is a stream of the API, which needs a range: the last twelve months. */
function ExportLink(): ReactNode {
  const texts = useTexts(TEXTS);
  const now_ms = useNow();
  const start = listMonths(now_ms, 12).at(-1)!;
  return (
    <a
      className={buttonClass}
      href={linkTo('/exports/invoice', { start_time: `${start}-01T00:00:00Z` })}
      title={texts.csvTitle}
      download
    >
      {texts.csv}
    </a>
  );
}

function MonthPicker(): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const { month } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const now_ms = useNow();
  const months = listMonths(now_ms, 13);
  const format = new Intl.DateTimeFormat(findLocale(language), { month: 'long', year: 'numeric', timeZone: 'UTC' });
  return (
    <Select
      className={styles.picker}
      aria-label={texts.period}
      placeholder={texts.anyPeriod}
      clearable
      value={month ?? null}
      data={(month && !months.includes(month) ? [month, ...months] : months).map((value) => ({
        value,
        label: toMonthBounds(value) ? format.format(new Date(`${value}-01T00:00:00Z`)) : value,
      }))}
      onChange={(value) =>
        void navigate({ search: ({ month: _, ...old }) => (value ? { ...old, month: value } : old) })
      }
    />
  );
}

function CustomerPicker(): ReactNode {
  const texts = useTexts(TEXTS);
  const { customer } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const [text, setText] = useState('');
  const [name] = useDebouncedValue(text, 200);
  const chosen = useGet('/customers/{id}', { path: { id: customer ?? '' } }, { enabled: customer !== undefined });
  const body = {
    limit: 20,
    filters:
      name === '' || name === chosen.data?.name
        ? []
        : [{ field: 'name', operator: 'contains' as const, data_type: 'string' as const, value: { string: name } }],
  };
  const found = useQuery(postQuery('/customers/search', body, () => api.POST('/customers/search', { body })));
  const options = new Map((found.data?.items ?? []).map((each) => [each.id, each.name || each.external_id]));
  if (customer !== undefined) options.set(customer, chosen.data?.name || chosen.data?.external_id || customer);
  return (
    <Select
      className={styles.picker}
      aria-label={texts.customer}
      placeholder={texts.anyCustomer}
      searchable
      clearable
      value={customer ?? null}
      data={[...options].map(([value, label]) => ({ value, label }))}
      filter={({ options: all }) => all}
      nothingFoundMessage={<NoOptions query={found} none={texts.noCustomer} />}
      onSearchChange={setText}
      onChange={(value) =>
        void navigate({ search: ({ customer: _, ...old }) => (value ? { ...old, customer: value } : old) })
      }
    />
  );
}

function listColumns(
  texts: ReturnType<typeof useTexts<typeof TEXTS.en>>,
  language: Language,
  open: (invoice: InvoiceRecord, why: 'total') => void,
): Column<InvoiceRecord>[] {
  return [
    {
      key: 'number',
      header: texts.number,
      width: '142px',
      cell: ({ invoice_number }) =>
        invoice_number ? <span className="mono">{invoice_number}</span> : <span className="muted">–</span>,
    },
    {
      key: 'customer',
      header: texts.customer,
      width: 'minmax(112px, 3fr)',
      narrow: 'first',
      cell: ({ customer, customer_id }) =>
        customer ? <bdi>{customer.name || customer.external_id}</bdi> : <span className="mono">{customer_id}</span>,
    },
    {
      key: 'period',
      header: texts.period,
      width: 'minmax(132px, 1.4fr)',
      cell: ({ period_start, period_end }) => <Period start={period_start} end={period_end} />,
    },
    {
      key: 'status',
      header: texts.status,
      width: 'minmax(130px, 1.4fr)',
      cell: (invoice) => <InvoiceStatus invoice={invoice} />,
    },
    {
      key: 'currency',
      header: <span className="visually-hidden">{texts.currency}</span>,
      width: '52px',
      narrow: 'end',
      cell: ({ currency }) => <span className="muted">{currency.toUpperCase()}</span>,
    },
    {
      key: 'total',
      header: texts.total,
      width: 'minmax(96px, 0.9fr)',
      isFigure: true,
      narrow: 'end',
      cell: (invoice) => (
        <WhyButton
          why={texts.whyTotal(formatMoney(language, invoice.total, null))}
          onOpen={() => open(invoice, 'total')}
        >
          <Money amount={invoice.total} currency={invoice.currency} isBare />
        </WhyButton>
      ),
    },
    {
      key: 'to_pay',
      header: texts.toPay,
      width: 'minmax(96px, 0.9fr)',
      isFigure: true,
      narrow: 'hidden',
      cell: ({ invoice_status, amount_remaining, currency }) =>
        invoice_status === 'FINALIZED' ? <Money amount={amount_remaining} currency={currency} isBare /> : <Unknown />,
    },
  ];
}
