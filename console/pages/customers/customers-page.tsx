/** All customers with their plan and the sums of what they owe and hold. */
import { TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { formatCurl, linkTo } from '../../client/client.ts';
import { usePages } from '../../client/pages.ts';
import { useMayNot } from '../../client/permission.ts';
import { useGet } from '../../client/queries.ts';
import { Button, buttonClass } from '../../components/button.tsx';
import { CodeBlock } from '../../components/copy.tsx';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { PageHead } from '../../components/page.tsx';
import { WithSheet } from '../../components/side-sheet.tsx';
import { Empty, LoadedRows } from '../../components/states.tsx';
import { useTexts } from '../../texts/texts.ts';
import { Amounts } from './amounts.tsx';
import { type CustomerRecord, type CustomerSums, findOnlyCurrency } from './customer.ts';
import { CustomerForm } from './customer-form.tsx';
import styles from './customers.module.css';
import { getListParams } from './queries.ts';
import { useSummaries } from './summaries.ts';
import { TEXTS } from './texts.ts';

const FROM = '/env/$environment_id/customers';
const FOUND_MAX = 50;

export function CustomersPage(): ReactNode {
  const texts = useTexts(TEXTS);
  const mayNot = { create: useMayNot('customer:write'), export: useMayNot('task:read') };
  const { q, view, sheet } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const list = useCustomers(q, view);
  const summaries = useSummaries(list.rows.map(({ id }) => id));
  const openSheet = (next?: 'new') => void navigate({ search: (old) => ({ ...old, sheet: next }), resetScroll: false });
  const open = ({ id }: CustomerRecord) =>
    void navigate({
      to: '/env/$environment_id/customers/$customer_id',
      params: (old) => ({ environment_id: old.environment_id!, customer_id: id }),
      search: ({ zone }) => ({ zone }),
    });
  const create = (
    <Button isPrimary blocked={mayNot.create} onClick={() => openSheet('new')}>
      {texts.newCustomer}
    </Button>
  );
  return (
    <WithSheet sheet={sheet === 'new' && <CustomerForm onClose={() => openSheet()} />}>
      <PageHead
        title={texts.title}
        actions={
          <>
            {mayNot.export === null ? (
              <a className={buttonClass} href={linkTo('/exports/customers')} title={texts.csvTitle} download>
                CSV
              </a>
            ) : (
              <Button blocked={mayNot.export}>CSV</Button>
            )}
            {create}
          </>
        }
      />
      <div className={styles.bar}>
        <CustomerFind />
        <Link
          from={FROM}
          to="."
          search={({ view: _, ...old }) => (view ? old : { ...old, view: 'archived' as const })}
          className={styles.quiet}
        >
          {view ? texts.showCurrent : texts.showArchived}
        </Link>
      </div>
      <LoadedRows list={list} rows={8}>
        {() =>
          list.rows.length > 0 ? (
            <>
              <DataTable
                label={texts.title}
                columns={listColumns(texts, summaries)}
                rows={list.rows}
                rowKey={({ id }) => id}
                total={list.total}
                onEnd={list.loadMore}
                onOpen={open}
              />
              <p className={styles.foot}>
                <span>
                  {q === undefined
                    ? texts.count(list.total)
                    : texts.found(list.rows.length, list.rows.length >= FOUND_MAX)}
                  {' · '}
                  {texts.noSum}
                </span>
                <span className={styles.keys}>{texts.keys}</span>
              </p>
            </>
          ) : q !== undefined || view !== undefined ? (
            <Empty
              title={view && q === undefined ? texts.noArchived : texts.nothing}
              action={
                <Button onClick={() => void navigate({ search: ({ zone }) => ({ zone }) })}>{texts.showAll}</Button>
              }
            >
              {q !== undefined && texts.nothingHint}
            </Empty>
          ) : (
            <Empty title={texts.emptyTitle} action={create}>
              <p>{texts.empty}</p>
              <CodeBlock
                label={texts.command}
                code={formatCurl('POST', '/customers', { external_id: 'acme', name: 'Acme' })}
              />
            </Empty>
          )
        }
      </LoadedRows>
    </WithSheet>
  );
}

type CustomerList = Pick<
  ReturnType<typeof usePages<'/customers'>>,
  'isPending' | 'error' | 'loadMore' | 'refetch' | 'total'
> & {
  rows: readonly CustomerRecord[];
};

/** All customers in pages, or the best matches of a text in the order of the search. */
function useCustomers(q: string | undefined, view: 'archived' | undefined): CustomerList {
  const pages = usePages('/customers', getListParams(view), { enabled: q === undefined });
  const found = useGet(
    '/search',
    { query: { q: q ?? '', kinds: ['customer'], limit: FOUND_MAX } },
    { enabled: q !== undefined },
  );
  const ids = (found.data?.items ?? []).map(({ id }) => id);
  const records = useGet(
    '/customers',
    { query: { customer_ids: ids, limit: FOUND_MAX, ...(view ? { status: view } : {}) } },
    { enabled: q !== undefined && ids.length > 0 },
  );
  if (q === undefined) return { ...pages, rows: pages.rows as readonly CustomerRecord[] };
  const byId = new Map((records.data?.items ?? []).map((each) => [each.id, each as CustomerRecord]));
  const rows = ids.map((id) => byId.get(id)).filter((each) => each !== undefined);
  return {
    rows,
    total: rows.length,
    isPending: found.isPending || (ids.length > 0 && records.isPending),
    error: found.error ?? records.error,
    loadMore: () => undefined,
    refetch: () => void found.refetch(),
  };
}

/** The text stands in the URL; it is written there once the reader pauses. */
function CustomerFind(): ReactNode {
  const texts = useTexts(TEXTS);
  const { q } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const [text, setText] = useState(q ?? '');
  const [shown, setShown] = useState(q);
  const [sent, setSent] = useState(q);
  // A text that comes from elsewhere, such as a link or the button "Show all", replaces the typed one; the own text does not.
  if (shown !== q) {
    setShown(q);
    setSent(q);
    if (q !== sent) setText(q ?? '');
  }
  const find = useDebouncedCallback((next: string) => {
    const wanted = next.trim();
    setSent(wanted === '' ? undefined : wanted);
    void navigate({ search: ({ q: _, ...old }) => (wanted === '' ? old : { ...old, q: wanted }), replace: true });
  }, 200);
  return (
    <TextInput
      className={styles.find}
      type="search"
      aria-label={texts.find}
      placeholder={texts.findHint}
      maxLength={200}
      value={text}
      onChange={({ currentTarget }) => {
        setText(currentTarget.value);
        find(currentTarget.value);
      }}
    />
  );
}

function listColumns(
  texts: ReturnType<typeof useTexts<typeof TEXTS.en>>,
  summaries: ReadonlyMap<string, CustomerSums>,
): Column<CustomerRecord>[] {
  const currency = findOnlyCurrency([...summaries.values()]);
  const head = (name: string) => (
    <>
      {name}
      {currency !== null && <span className={styles.code}> {currency.toUpperCase()}</span>}
    </>
  );
  const figure = (key: 'owed' | 'overdue' | 'balance', name: string): Column<CustomerRecord> => ({
    key,
    header: head(name),
    width: 'minmax(104px, 1fr)',
    isFigure: true,
    narrow: key === 'owed' ? 'end' : 'hidden',
    cell: ({ id }) => {
      const amounts = summaries.get(id)?.[key];
      if (amounts === undefined) return null;
      const isZero = key !== 'balance';
      const shown = <Amounts amounts={amounts} isBare={currency !== null} isZero={isZero} />;
      if (amounts.length === 0 || key === 'balance') return shown;
      return (
        <Link
          from={FROM}
          to="/env/$environment_id/invoices"
          search={({ zone }) => ({
            zone,
            customer: id,
            show: key === 'owed' ? ('outstanding' as const) : ('overdue' as const),
          })}
          className={`${styles.amount} ${key === 'overdue' ? styles.overdue : ''}`}
        >
          {shown}
        </Link>
      );
    },
  });
  return [
    {
      key: 'name',
      header: texts.customer,
      width: 'minmax(150px, 2.4fr)',
      narrow: 'first',
      cell: ({ name, external_id }) => <bdi>{name || external_id}</bdi>,
    },
    {
      key: 'external_id',
      header: texts.externalId,
      width: 'minmax(120px, 1.4fr)',
      cell: ({ external_id }) => <span className="mono muted">{external_id}</span>,
    },
    {
      key: 'plan',
      header: texts.plan,
      width: 'minmax(110px, 1.2fr)',
      cell: ({ id }) => {
        const names = summaries.get(id)?.plan_names;
        if (names === undefined) return null;
        return names.length === 0 ? <span className="muted">–</span> : <bdi>{names.join(', ')}</bdi>;
      },
    },
    figure('owed', texts.owed),
    figure('overdue', texts.overdue),
    figure('balance', texts.balance),
  ];
}
