/** All wallets with their customers and balances. */
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { usePages } from '../../client/pages.ts';
import { useMayNot } from '../../client/permission.ts';
import { Button } from '../../components/button.tsx';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { PageHead } from '../../components/page.tsx';
import { WithSheet } from '../../components/side-sheet.tsx';
import { Empty, LoadedRows } from '../../components/states.tsx';
import { Money, Quantity, Unknown } from '../../figures/money.tsx';
import { Day } from '../../figures/when.tsx';
import { useTexts } from '../../texts/texts.ts';
import { useCustomerNames } from './customer-names.ts';
import { TEXTS } from './texts.ts';
import { formatWalletName, isMoneyWallet, type WalletRecord } from './wallet.ts';
import { WalletForm } from './wallet-form.tsx';
import { WalletStatus } from './wallet-status.tsx';
import styles from './wallets.module.css';

const FROM = '/env/$environment_id/wallets';
const FILTERS = ['all', 'active', 'closed'] as const;

export function WalletsPage(): ReactNode {
  const texts = useTexts(TEXTS);
  const mayNot = useMayNot('wallet:write');
  const { show, sheet, customer } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const list = usePages('/wallets', { query: { ...(show ? { status: show } : {}) } });
  const rows = list.rows as readonly WalletRecord[];
  const names = useCustomerNames(rows.map(({ customer_id }) => customer_id));
  const openSheet = (next?: 'new') =>
    void navigate({
      search: ({ customer: _, ...old }) => ({ ...old, sheet: next }),
      resetScroll: false,
    });
  const create = (
    <Button isPrimary blocked={mayNot} onClick={() => openSheet('new')}>
      {texts.newWallet}
    </Button>
  );
  return (
    <WithSheet sheet={sheet === 'new' && <WalletForm customer_id={customer} onClose={() => openSheet()} />}>
      <PageHead title={texts.title} actions={create} />
      <nav aria-label={texts.filters}>
        <ul className={styles.tabs}>
          {FILTERS.map((filter) => (
            <li key={filter}>
              <Link
                from={FROM}
                to="."
                search={({ show: _, ...old }) => (filter === 'all' ? old : { ...old, show: filter })}
                className={styles.tab}
                aria-current={filter === (show ?? 'all') ? 'page' : 'false'}
              >
                {texts[filter]}
              </Link>
            </li>
          ))}
        </ul>
      </nav>
      <LoadedRows list={list} rows={6}>
        {() =>
          rows.length > 0 ? (
            <DataTable
              label={texts.title}
              columns={listColumns(texts, names)}
              rows={rows}
              rowKey={({ id }) => id}
              total={list.total}
              onEnd={list.loadMore}
              onOpen={({ id }) =>
                void navigate({
                  to: '/env/$environment_id/wallets/$wallet_id',
                  params: (old) => ({ environment_id: old.environment_id!, wallet_id: id }),
                  search: ({ zone }) => ({ zone }),
                })
              }
              footer={<p className={styles.foot}>{texts.footer(list.total)}</p>}
            />
          ) : show ? (
            <Empty
              title={texts.nothing}
              action={
                <Button onClick={() => void navigate({ search: ({ zone }) => ({ zone }) })}>{texts.showAll}</Button>
              }
            />
          ) : (
            <Empty title={texts.emptyTitle} action={create}>
              {texts.empty}
            </Empty>
          )
        }
      </LoadedRows>
    </WithSheet>
  );
}

function listColumns(
  texts: ReturnType<typeof useTexts<typeof TEXTS.en>>,
  names: ReadonlyMap<string, string>,
): Column<WalletRecord>[] {
  return [
    {
      key: 'customer',
      header: texts.customer,
      width: 'minmax(150px, 2fr)',
      narrow: 'first',
      cell: ({ customer_id }) =>
        names.has(customer_id) ? <bdi>{names.get(customer_id)}</bdi> : <span className="mono">{customer_id}</span>,
    },
    {
      key: 'name',
      header: texts.wallet,
      width: 'minmax(130px, 1.6fr)',
      cell: (wallet) => <bdi>{formatWalletName(wallet)}</bdi>,
    },
    {
      key: 'status',
      header: texts.status,
      width: 'minmax(116px, 1fr)',
      cell: (wallet) => <WalletStatus wallet={wallet} />,
    },
    {
      key: 'created',
      header: texts.created,
      width: 'minmax(104px, 1fr)',
      narrow: 'hidden',
      cell: ({ created_at }) => <Day at={created_at} />,
    },
    {
      key: 'credits',
      header: texts.credits,
      width: 'minmax(96px, 1fr)',
      isFigure: true,
      narrow: 'hidden',
      cell: (wallet) => (isMoneyWallet(wallet) ? <Unknown /> : <Quantity value={wallet.credit_balance} />),
    },
    {
      key: 'balance',
      header: texts.balance,
      width: 'minmax(110px, 1fr)',
      isFigure: true,
      narrow: 'end',
      cell: ({ balance, currency }) => <Money amount={balance} currency={currency} />,
    },
  ];
}
