/** All movements of a wallet, newest first: in, out, the balance after each, and when added credits expire. */
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { usePages } from '../../client/pages.ts';
import { Chip } from '../../components/chip.tsx';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { Section, Sheet } from '../../components/page.tsx';
import { LoadedRows } from '../../components/states.tsx';
import { Quantity } from '../../figures/money.tsx';
import { Day, Moment } from '../../figures/when.tsx';
import { useTexts } from '../../texts/texts.ts';
import { TEXTS } from './texts.ts';
import { findOwnDescription, type TransactionRecord, type WalletRecord } from './wallet.ts';
import styles from './wallets.module.css';

const FROM = '/env/$environment_id/wallets/$wallet_id';
const FILTERS = ['all', 'in', 'out'] as const;

type LedgerProps = { wallet: WalletRecord; movements: 'in' | 'out' | undefined };

export function Ledger({ wallet, movements }: LedgerProps): ReactNode {
  const texts = useTexts(TEXTS);
  const type = movements === undefined ? {} : { type: movements === 'in' ? ('credit' as const) : ('debit' as const) };
  const list = usePages('/wallets/{id}/transactions', { path: { id: wallet.id }, query: type });
  const rows = list.rows as readonly TransactionRecord[];
  return (
    <Section
      title={texts.ledger}
      hint={texts.ledgerHint}
      end={
        <span className={styles.quickFilters}>
          {FILTERS.map((filter) => (
            <Link
              key={filter}
              from={FROM}
              to="."
              search={({ movements: _, ...old }) => (filter === 'all' ? old : { ...old, movements: filter })}
              resetScroll={false}
              aria-current={filter === (movements ?? 'all') ? 'page' : 'false'}
              className={styles.quickFilter}
            >
              {texts[filter]}
            </Link>
          ))}
        </span>
      }
    >
      <LoadedRows list={list} rows={4}>
        {() =>
          rows.length === 0 ? (
            <Sheet>
              <p className={styles.note}>{texts.noMovements}</p>
            </Sheet>
          ) : (
            <DataTable
              label={texts.ledger}
              columns={listLedgerColumns(texts)}
              rows={rows}
              rowKey={({ id }) => id}
              total={list.total}
              onEnd={list.loadMore}
            />
          )
        }
      </LoadedRows>
    </Section>
  );
}

type WalletTexts = ReturnType<typeof useTexts<typeof TEXTS.en>>;

function listLedgerColumns(texts: WalletTexts): Column<TransactionRecord>[] {
  return [
    {
      key: 'at',
      header: texts.when,
      width: 'minmax(136px, 1fr)',
      cell: ({ created_at }) => <Moment at={created_at} />,
    },
    {
      key: 'reason',
      header: texts.reason,
      width: 'minmax(180px, 2.4fr)',
      narrow: 'first',
      cell: (entry) => <Reason entry={entry} />,
    },
    {
      key: 'in',
      header: texts.in,
      width: 'minmax(88px, 1fr)',
      isFigure: true,
      narrow: 'end',
      cell: ({ type, credit_amount }) => type === 'credit' && <Quantity value={credit_amount} />,
    },
    {
      key: 'out',
      header: texts.out,
      width: 'minmax(88px, 1fr)',
      isFigure: true,
      narrow: 'end',
      cell: ({ type, credit_amount }) => type === 'debit' && <Quantity value={`-${credit_amount}`} />,
    },
    {
      key: 'balance',
      header: texts.balance,
      width: 'minmax(88px, 1fr)',
      isFigure: true,
      cell: ({ transaction_status, credit_balance_after }) => (
        <Quantity value={transaction_status === 'completed' ? credit_balance_after : null} />
      ),
    },
    {
      key: 'expires',
      header: texts.expires,
      width: 'minmax(100px, 0.8fr)',
      isFigure: true,
      narrow: 'hidden',
      cell: ({ type, expiry_date }) => type === 'credit' && expiry_date && <Day at={expiry_date} />,
    },
  ];
}

/** Why credits moved, with the invoice that moved them. */
function Reason({ entry }: { entry: TransactionRecord }): ReactNode {
  const texts = useTexts(TEXTS);
  const { transaction_reason, transaction_status, reference_type, reference_id } = entry;
  const description = findOwnDescription(entry);
  return (
    <>
      {texts[transaction_reason]}
      {transaction_status === 'pending' && (
        <>
          {' '}
          <Chip tone="warn">{texts.pending}</Chip>
        </>
      )}
      {transaction_status === 'failed' && (
        <>
          {' '}
          <Chip tone="bad">{texts.failed}</Chip>
        </>
      )}
      {description && (
        <span className="label">
          {' · '}
          <bdi>{description}</bdi>
        </span>
      )}
      {reference_type === 'INVOICE' && reference_id && (
        <>
          {' '}
          <Link
            from={FROM}
            to="/env/$environment_id/invoices/$invoice_id"
            params={(old) => ({ environment_id: old.environment_id, invoice_id: reference_id })}
            search={({ zone }) => ({ zone })}
            className="label"
          >
            {texts.showInvoice}
          </Link>
        </>
      )}
    </>
  );
}
