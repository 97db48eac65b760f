/** The next invoice of the newest subscription. It is read again whenever events arrive, and every number opens its sum. */
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { api } from '../../client/client.ts';
import { postQuery, useGet } from '../../client/queries.ts';
import { Chip } from '../../components/chip.tsx';
import { Failure, Loading } from '../../components/states.tsx';
import { formatMoney } from '../../figures/format.ts';
import { BigMoney, Money, WhyButton } from '../../figures/money.tsx';
import { Day, ExactTime } from '../../figures/when.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { EventBars } from '../home/event-bars.tsx';
import styles from './first-bill.module.css';
import { TEXTS } from './texts.ts';
import type { FirstBill } from './use-first-bill.ts';

const POLL_MS = 5_000;

export function useNextInvoice(subscription_id: string | undefined) {
  return useQuery({
    ...postQuery('/invoices/preview', { subscription_id }, () =>
      api.POST('/invoices/preview', { body: { subscription_id: subscription_id! } }),
    ),
    enabled: subscription_id !== undefined,
    refetchInterval: POLL_MS,
  });
}

type LiveInvoiceProps = {
  subscription: FirstBill['subscription'];
  next: ReturnType<typeof useNextInvoice>;
  onWhy: (price_id: string) => void;
};

export function LiveInvoice({ subscription, next, onWhy }: LiveInvoiceProps): ReactNode {
  const texts = useTexts(TEXTS);
  return (
    <>
      <section className={styles.card} aria-label={texts.nextInvoice}>
        {!subscription ? (
          <>
            <p className="label">{texts.nextInvoice}</p>
            <p className={styles.placeholder}>{texts.nextEmpty}</p>
          </>
        ) : next.error ? (
          <Failure error={next.error} />
        ) : next.data ? (
          <NextInvoice invoice={next.data} subscription={subscription} onWhy={onWhy} />
        ) : (
          <Loading />
        )}
        <EventBars label={texts.lastHour} />
      </section>
      {subscription && <p className={styles.under}>{texts.sameAggregate}</p>}
    </>
  );
}

type NextInvoiceProps = {
  invoice: NonNullable<ReturnType<typeof useNextInvoice>['data']>;
  subscription: NonNullable<FirstBill['subscription']>;
  onWhy: (price_id: string) => void;
};

function NextInvoice({ invoice, subscription, onWhy }: NextInvoiceProps): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const customer = useGet('/customers/{id}', { path: { id: subscription.customer_id } });
  const lines = invoice.line_items ?? [];
  return (
    <>
      <div className={styles.cardHead}>
        <div>
          <p className="label">{texts.nextInvoice}</p>
          <h2>
            <bdi>{customer.data?.name ?? subscription.customer_id}</bdi>
          </h2>
        </div>
        <Chip>
          <Day at={invoice.period_end} />
        </Chip>
      </div>
      <div key={invoice.total} className={styles.live}>
        <BigMoney amount={invoice.total} currency={invoice.currency} />
      </div>
      <p className="label">
        {texts.asOf} <ExactTime at={invoice.last_computed_at} />
      </p>
      <ul className={styles.lines}>
        {lines.map((line, index) => (
          <li key={`${line.price_id}/${index}`}>
            <bdi>{line.display_name || line.meter_display_name}</bdi>
            {/* A changed amount is a new element, so that it fades its background once. */}
            <span key={line.amount} className={styles.live}>
              {line.price_id ? (
                <WhyButton
                  why={texts.why(formatMoney(language, line.amount, line.currency))}
                  onOpen={() => onWhy(line.price_id!)}
                >
                  <Money amount={line.amount} />
                </WhyButton>
              ) : (
                <Money amount={line.amount} />
              )}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}
