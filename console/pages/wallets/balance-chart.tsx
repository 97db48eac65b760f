/** The balance of a wallet over time, as the ledger states it after each movement. */
import type { ReactNode } from 'react';
import { TimeSeries } from '../../charts/time-series.tsx';
import { useGet } from '../../client/queries.ts';
import { Sheet } from '../../components/page.tsx';
import { Loaded } from '../../components/states.tsx';
import { formatInstant, formatQuantity } from '../../figures/format.ts';
import { useZone } from '../../figures/when.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { TEXTS } from './texts.ts';
import { listBalanceSteps, type WalletRecord } from './wallet.ts';
import styles from './wallets.module.css';

const MOVEMENTS_MAX = 200;

export function BalanceChart({ wallet }: { wallet: WalletRecord }): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const zone = useZone();
  const ledger = useGet('/wallets/{id}/transactions', {
    path: { id: wallet.id },
    query: { limit: MOVEMENTS_MAX, transaction_status: 'completed' },
  });
  return (
    <Loaded query={ledger} rows={4}>
      {({ items, pagination }) => {
        const points = listBalanceSteps(items);
        if (points.length < 4)
          return (
            <Sheet>
              <p className={styles.note}>{texts.tooFew}</p>
            </Sheet>
          );
        return (
          <>
            <TimeSeries
              label={texts.overTime}
              series={[{ key: 'balance', label: texts.credits, points }]}
              showAt={(at) => formatInstant(language, at, zone)}
              showValue={(value) => formatQuantity(language, value)}
            />
            {(pagination.total ?? 0) > MOVEMENTS_MAX && <p className="label">{texts.cut(MOVEMENTS_MAX)}</p>}
          </>
        );
      }}
    </Loaded>
  );
}
