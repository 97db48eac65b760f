/** The next invoice of each subscription, updated as events arrive. Each number opens its thread. */
import { Link } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense } from 'react';
import { Section, Sheet } from '../../components/page.tsx';
import { Loaded } from '../../components/states.tsx';
import { formatMoney, formatQuantity } from '../../figures/format.ts';
import { BigMoney, Money, Quantity, WhyButton } from '../../figures/money.tsx';
import { Day, ExactTime } from '../../figures/when.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { isZero } from '../invoices/decimals.ts';
import type { InvoiceLine, InvoiceRecord } from '../invoices/invoice.ts';
import { PriceLabel } from '../invoices/price-label.tsx';
import { TEXTS as INVOICE_TEXTS } from '../invoices/texts.ts';
import { listTotals } from '../invoices/totals.tsx';
import styles from './customer-page.module.css';
import { type CustomerSubscription, useNextInvoice } from './next-invoice.ts';
import { PAGE_TEXTS } from './page-texts.ts';

const LineThread = lazy(async () => ({
  default: (await import('../invoices/thread/line-thread.tsx')).LineThread,
}));
const TotalThread = lazy(async () => ({
  default: (await import('../invoices/thread/total-thread.tsx')).TotalThread,
}));

/** Live cards cost a request each; further subscriptions show theirs on their own pages. */
export const CARDS_MAX = 3;

type NextInvoicesProps = {
  subscriptions: readonly CustomerSubscription[];
  why: string | undefined;
  onAsk: (why: string) => void;
};

export function NextInvoices({ subscriptions, why, onAsk }: NextInvoicesProps): ReactNode {
  const texts = useTexts(PAGE_TEXTS);
  if (subscriptions.length === 0) return null;
  return (
    <Section title={texts.nextInvoice} hint={texts.nextHint}>
      <div className={styles.cards}>
        {subscriptions.slice(0, CARDS_MAX).map((subscription) => (
          <NextInvoiceCard key={subscription.id} subscription={subscription} why={why} onAsk={onAsk} />
        ))}
      </div>
      {subscriptions.length > CARDS_MAX && <p className="label">{texts.moreCards(subscriptions.length - CARDS_MAX)}</p>}
    </Section>
  );
}

type CardProps = { subscription: CustomerSubscription; why: string | undefined; onAsk: (why: string) => void };

function NextInvoiceCard({ subscription, why, onAsk }: CardProps): ReactNode {
  const preview = useNextInvoice(subscription.id);
  return (
    <Sheet>
      <Loaded query={preview} rows={4}>
        {(invoice) => <NextInvoiceView subscription={subscription} invoice={invoice} why={why} onAsk={onAsk} />}
      </Loaded>
    </Sheet>
  );
}

function NextInvoiceView({ subscription, invoice, why, onAsk }: CardProps & { invoice: InvoiceRecord }): ReactNode {
  const texts = useTexts(PAGE_TEXTS);
  const invoiceTexts = useTexts(INVOICE_TEXTS);
  const language = useLanguage();
  const { currency, total, period_end, last_computed_at } = invoice;
  const lines = invoice.line_items ?? [];
  const totals = listTotals(invoice, invoiceTexts, language);
  return (
    <>
      <div className={styles.cardHead}>
        <div>
          <h3>
            <Link
              from="/env/$environment_id"
              to="/env/$environment_id/subscriptions/$subscription_id"
              params={({ environment_id }) => ({ environment_id, subscription_id: subscription.id })}
              search={({ zone }) => ({ zone })}
            >
              <bdi>{subscription.plan?.name ?? texts.subscription}</bdi>
            </Link>
          </h3>
          <p className="label">
            {texts.billedOn} <Day at={period_end} />
            {last_computed_at && (
              <>
                {' · '}
                {texts.asOf} <ExactTime at={last_computed_at} />
              </>
            )}
          </p>
        </div>
        <WhyButton why={texts.why(formatMoney(language, total, currency))} onOpen={() => onAsk(subscription.id)}>
          <BigMoney amount={total} currency={currency} />
        </WhyButton>
      </div>
      {lines.length === 0 ? (
        <p className={styles.note}>{texts.noLines}</p>
      ) : (
        <table className={styles.lines}>
          <caption className="visually-hidden">{texts.linesOf(subscription.plan?.name ?? subscription.id)}</caption>
          <thead className="visually-hidden">
            <tr>
              <th scope="col">{texts.line}</th>
              <th scope="col">{texts.quantity}</th>
              <th scope="col">{texts.price}</th>
              <th scope="col">{texts.amount}</th>
            </tr>
          </thead>
          <tbody>
            {lines.map((line) => (
              <NextInvoiceLine key={line.id} line={line} isOn={why === line.id} onAsk={onAsk} />
            ))}
          </tbody>
          {totals.length > 1 && (
            <tfoot>
              {totals.map(({ key, label, amount }) => (
                <tr key={key}>
                  <th scope="row" colSpan={3}>
                    {label}
                  </th>
                  <td>
                    <Money amount={amount} currency={currency} isBare />
                  </td>
                </tr>
              ))}
            </tfoot>
          )}
        </table>
      )}
    </>
  );
}

type LineProps = { line: InvoiceLine; isOn: boolean; onAsk: (why: string) => void };

function NextInvoiceLine({ line, isOn, onAsk }: LineProps): ReactNode {
  const texts = useTexts(PAGE_TEXTS);
  const language = useLanguage();
  const { id, display_name, meter_display_name, quantity, amount, currency, meter_id } = line;
  return (
    <tr className={isOn ? styles.on : undefined}>
      <th scope="row">
        <bdi>{display_name || meter_display_name || id}</bdi>
      </th>
      <td>
        {meter_id ? (
          <WhyButton why={texts.why(formatQuantity(language, quantity))} onOpen={() => onAsk(id)}>
            <Quantity value={quantity} />
          </WhyButton>
        ) : (
          !isZero(quantity) && <Quantity value={quantity} />
        )}
      </td>
      <td>
        <PriceLabel line={line} />
      </td>
      <td>
        <WhyButton why={texts.why(formatMoney(language, amount, null))} onOpen={() => onAsk(id)}>
          <Money amount={amount} currency={currency} isBare />
        </WhyButton>
      </td>
    </tr>
  );
}

type ThreadProps = { invoice: InvoiceRecord; why: string; onAsk: (why: string) => void; onClose: () => void };

/** The thread of a number of a next invoice: a line, or the total. */
export function NextInvoiceThread({ invoice, why, onAsk, onClose }: ThreadProps): ReactNode {
  const line = (invoice.line_items ?? []).find(({ id }) => id === why);
  return (
    <Suspense>
      {line ? (
        <LineThread
          key={line.id}
          invoice={invoice}
          line={line}
          event={undefined}
          onFollow={() => undefined}
          onClose={onClose}
        />
      ) : (
        <TotalThread invoice={invoice} onAsk={onAsk} onClose={onClose} />
      )}
    </Suspense>
  );
}
