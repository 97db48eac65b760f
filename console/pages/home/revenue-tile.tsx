/** Revenue of the running month and the month before it. Each currency stands for itself. */
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { can, useSession } from '../../client/session.ts';
import { Failure, Loading } from '../../components/states.tsx';
import { BigMoney, Money } from '../../figures/money.tsx';
import { Period } from '../../figures/when.tsx';
import { useTexts } from '../../texts/texts.ts';
import styles from './home.module.css';
import { revenuesQuery } from './queries.ts';
import { TEXTS } from './texts.ts';

export function RevenueTile(): ReactNode {
  const texts = useTexts(TEXTS);
  const session = useSession();
  const isAllowed = can(session, 'invoice', 'read');
  const revenues = useQuery({ ...revenuesQuery, enabled: isAllowed });
  const currencies = Object.entries(revenues.data?.revenue_trend?.currency_revenue_windows ?? {});
  return (
    <section className={styles.tile} aria-label={texts.revenue}>
      <div className={styles.tileHead}>
        <h2>{texts.revenue}</h2>
        {currencies[0] && (
          <span className="label">
            <Period
              start={currencies[0][1].windows.at(-1)?.window_start}
              end={currencies[0][1].windows.at(-1)?.window_end}
            />
          </span>
        )}
      </div>
      {!isAllowed ? (
        <p className="muted">{texts.mayNot}</p>
      ) : revenues.error ? (
        <Failure error={revenues.error} />
      ) : !revenues.data ? (
        <Loading rows={2} />
      ) : currencies.length === 0 ? (
        <p className="muted">{texts.noRevenue}</p>
      ) : (
        <div className={styles.currencies}>
          {currencies.map(([currency, { windows }]) => (
            <div key={currency}>
              <BigMoney amount={windows.at(-1)?.total_revenue} currency={currency} />
              <p className={styles.before}>
                <Money amount={windows.at(-2)?.total_revenue} currency={currency} /> {texts.monthBefore}
                {revenues.data.mrr?.[currency] && (
                  <>
                    {' · '}
                    <Money amount={revenues.data.mrr[currency].mrr} currency={currency} /> {texts.recurring}
                  </>
                )}
              </p>
            </div>
          ))}
        </div>
      )}
    </section>
  );
}
