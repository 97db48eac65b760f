/** Credits that are left, by the top-up that brought them, with the day on which each lot expires. */
import type { ReactNode } from 'react';
import { useGet } from '../../client/queries.ts';
import { Chip } from '../../components/chip.tsx';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { Section, Sheet } from '../../components/page.tsx';
import { Loaded } from '../../components/states.tsx';
import { Quantity } from '../../figures/money.tsx';
import { Day } from '../../figures/when.tsx';
import { useTexts } from '../../texts/texts.ts';
import { useNow } from '../invoices/now.ts';
import { TEXTS } from './texts.ts';
import { countDaysLeft, sortLots, type TransactionRecord, type WalletRecord } from './wallet.ts';
import styles from './wallets.module.css';

const LOTS_MAX = 100;
const SOON_DAYS = 14;

export function Lots({ wallet }: { wallet: WalletRecord }): ReactNode {
  const texts = useTexts(TEXTS);
  const now_ms = useNow();
  const lots = useGet('/wallets/{id}/transactions', {
    path: { id: wallet.id },
    query: { type: 'credit', transaction_status: 'completed', credits_available_gt: '0', limit: LOTS_MAX },
  });
  return (
    <Section title={texts.lots} hint={texts.lotsHint}>
      <Loaded query={lots} rows={2}>
        {({ items }) =>
          items.length === 0 ? (
            <Sheet>
              <p className={styles.note}>{texts.noLots}</p>
            </Sheet>
          ) : (
            <DataTable
              label={texts.lots}
              columns={listLotColumns(texts, now_ms)}
              rows={sortLots(items as readonly TransactionRecord[])}
              rowKey={({ id }) => id}
            />
          )
        }
      </Loaded>
    </Section>
  );
}

function listLotColumns(
  texts: ReturnType<typeof useTexts<typeof TEXTS.en>>,
  now_ms: number,
): Column<TransactionRecord>[] {
  return [
    {
      key: 'reason',
      header: texts.origin,
      width: 'minmax(150px, 2fr)',
      narrow: 'first',
      cell: ({ transaction_reason, description }) => (
        <>
          {texts[transaction_reason]}
          {description && (
            <span className="label">
              {' · '}
              <bdi>{description}</bdi>
            </span>
          )}
        </>
      ),
    },
    {
      key: 'since',
      header: texts.since,
      width: 'minmax(104px, 1fr)',
      narrow: 'hidden',
      cell: ({ created_at }) => <Day at={created_at} />,
    },
    {
      key: 'expires',
      header: texts.expires,
      width: 'minmax(170px, 1.4fr)',
      cell: ({ expiry_date }) => {
        const days = countDaysLeft(expiry_date, now_ms);
        if (days === null) return <span className="muted">{texts.never}</span>;
        return (
          <>
            <Day at={expiry_date} /> <Chip tone={days <= SOON_DAYS ? 'warn' : 'plain'}>{texts.inDays(days)}</Chip>
          </>
        );
      },
    },
    {
      key: 'priority',
      header: texts.priority,
      width: '88px',
      isFigure: true,
      narrow: 'hidden',
      cell: ({ priority }) => (
        <Quantity value={priority === null || priority === undefined ? null : String(priority)} />
      ),
    },
    {
      key: 'added',
      header: texts.added,
      width: 'minmax(90px, 1fr)',
      isFigure: true,
      narrow: 'hidden',
      cell: ({ credit_amount }) => <Quantity value={credit_amount} />,
    },
    {
      key: 'left',
      header: texts.left,
      width: 'minmax(90px, 1fr)',
      isFigure: true,
      narrow: 'end',
      cell: ({ credits_available }) => <Quantity value={credits_available} />,
    },
  ];
}
