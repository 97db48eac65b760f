/** Subscriptions, invoices and wallets of a customer. */
import type { UseQueryResult } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useGet } from '../../client/queries.ts';
import { Chip } from '../../components/chip.tsx';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { Section, Sheet } from '../../components/page.tsx';
import { Loaded } from '../../components/states.tsx';
import type { Tone } from '../../components/tone.ts';
import { formatMoney } from '../../figures/format.ts';
import { Money, Unknown, WhyButton } from '../../figures/money.tsx';
import { Period } from '../../figures/when.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import type { InvoiceRecord } from '../invoices/invoice.ts';
import { InvoiceStatus } from '../invoices/status-chip.tsx';
import { formatWalletName, type WalletRecord } from '../wallets/wallet.ts';
import { WalletStatus } from '../wallets/wallet-status.tsx';
import type { CustomerRecord } from './customer.ts';
import styles from './customer-page.module.css';
import type { CustomerSubscription } from './next-invoice.ts';
import { PAGE_TEXTS } from './page-texts.ts';

const FROM = '/env/$environment_id/customers/$customer_id';
const INVOICES_SHOWN = 6;

type PageTexts = ReturnType<typeof useTexts<typeof PAGE_TEXTS.en>>;

const SUBSCRIPTION_TONES: Record<string, Tone> = {
  active: 'ok',
  trialing: 'info',
  incomplete: 'warn',
  paused: 'warn',
};

type SubscriptionsProps = { customer: CustomerRecord; query: UseQueryResult<{ items: CustomerSubscription[] }> };

export function CustomerSubscriptions({ customer, query }: SubscriptionsProps): ReactNode {
  const texts = useTexts(PAGE_TEXTS);
  const navigate = useNavigate({ from: FROM });
  return (
    <Section title={texts.subscriptions}>
      <Loaded query={query} rows={2}>
        {({ items }) =>
          items.length === 0 ? (
            <Nothing>
              {texts.noSubscriptions}{' '}
              <Link
                from={FROM}
                to="/env/$environment_id/subscriptions/new"
                search={(({ zone }: { zone?: string }) => ({ zone, customer: customer.id })) as never}
              >
                {texts.newSubscription}
              </Link>
            </Nothing>
          ) : (
            <DataTable
              label={texts.subscriptions}
              columns={listSubscriptionColumns(texts)}
              rows={items}
              rowKey={({ id }) => id}
              onOpen={({ id }) =>
                void navigate({
                  to: '/env/$environment_id/subscriptions/$subscription_id',
                  params: ({ environment_id }) => ({ environment_id: environment_id!, subscription_id: id }),
                  search: ({ zone }) => ({ zone }),
                })
              }
            />
          )
        }
      </Loaded>
    </Section>
  );
}

function listSubscriptionColumns(texts: PageTexts): Column<CustomerSubscription>[] {
  return [
    {
      key: 'plan',
      header: texts.plan,
      width: 'minmax(130px, 2fr)',
      narrow: 'first',
      cell: ({ plan, plan_id }) => (plan ? <bdi>{plan.name}</bdi> : <span className="mono">{plan_id}</span>),
    },
    {
      key: 'status',
      header: texts.status,
      width: 'minmax(110px, 1fr)',
      narrow: 'end',
      cell: ({ subscription_status: status, cancel_at_period_end }) => (
        <Chip tone={cancel_at_period_end ? 'warn' : (SUBSCRIPTION_TONES[status] ?? 'plain')}>
          {cancel_at_period_end ? texts.endsWithPeriod : texts.subscriptionStatus(status)}
        </Chip>
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
      key: 'id',
      header: texts.id,
      width: 'minmax(140px, 2fr)',
      narrow: 'hidden',
      cell: ({ id }) => <span className="mono muted">{id}</span>,
    },
  ];
}

export function CustomerInvoices({ customer }: { customer: CustomerRecord }): ReactNode {
  const texts = useTexts(PAGE_TEXTS);
  const language = useLanguage();
  const navigate = useNavigate({ from: FROM });
  const invoices = useGet('/invoices', {
    query: { customer_id: customer.id, limit: INVOICES_SHOWN, skip_line_items: true },
  });
  const open = (id: string, why?: 'total') =>
    void navigate({
      to: '/env/$environment_id/invoices/$invoice_id',
      params: ({ environment_id }) => ({ environment_id: environment_id!, invoice_id: id }),
      search: ({ zone }) => ({ zone, ...(why ? { why } : {}) }),
    });
  const columns: Column<InvoiceRecord>[] = [
    {
      key: 'number',
      header: texts.number,
      width: 'minmax(142px, 1.2fr)',
      narrow: 'first',
      cell: ({ invoice_number }) =>
        invoice_number ? <span className="mono">{invoice_number}</span> : <span className="muted">{texts.draft}</span>,
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
      width: 'minmax(130px, 1.2fr)',
      cell: (invoice) => <InvoiceStatus invoice={invoice} />,
    },
    {
      key: 'total',
      header: texts.total,
      width: 'minmax(100px, 1fr)',
      isFigure: true,
      narrow: 'end',
      cell: ({ id, total, currency }) => (
        <WhyButton why={texts.why(formatMoney(language, total, currency))} onOpen={() => open(id, 'total')}>
          <Money amount={total} currency={currency} />
        </WhyButton>
      ),
    },
    {
      key: 'to_pay',
      header: texts.toPay,
      width: 'minmax(100px, 1fr)',
      isFigure: true,
      narrow: 'hidden',
      cell: ({ invoice_status, amount_remaining, currency }) =>
        invoice_status === 'FINALIZED' ? <Money amount={amount_remaining} currency={currency} /> : <Unknown />,
    },
  ];
  return (
    <Section
      title={texts.invoices}
      end={
        <Link
          from={FROM}
          to="/env/$environment_id/invoices"
          params={({ environment_id }) => ({ environment_id })}
          search={({ zone }) => ({ zone, customer: customer.id })}
          className="label"
        >
          {texts.allInvoices(invoices.data?.pagination?.total ?? 0)}
        </Link>
      }
    >
      <Loaded query={invoices} rows={3}>
        {({ items }) =>
          items.length === 0 ? (
            <Nothing>{texts.noInvoices}</Nothing>
          ) : (
            <DataTable
              label={texts.invoices}
              columns={columns}
              rows={items as readonly InvoiceRecord[]}
              rowKey={({ id }) => id}
              onOpen={({ id }) => open(id)}
            />
          )
        }
      </Loaded>
    </Section>
  );
}

export function CustomerWallets({ customer }: { customer: CustomerRecord }): ReactNode {
  const texts = useTexts(PAGE_TEXTS);
  const language = useLanguage();
  const navigate = useNavigate({ from: FROM });
  const wallets = useGet('/customers/wallets', { query: { id: customer.id, include_real_time_balance: true } });
  const open = (id: string, why?: 'balance') =>
    void navigate({
      to: '/env/$environment_id/wallets/$wallet_id',
      params: ({ environment_id }) => ({ environment_id: environment_id!, wallet_id: id }),
      search: (({ zone }: { zone?: string }) => ({ zone, ...(why ? { why } : {}) })) as never,
    });
  const columns: Column<WalletRecord>[] = [
    {
      key: 'name',
      header: texts.wallet,
      width: 'minmax(140px, 2fr)',
      narrow: 'first',
      cell: (wallet) => <bdi>{formatWalletName(wallet)}</bdi>,
    },
    {
      key: 'status',
      header: texts.status,
      width: 'minmax(110px, 1fr)',
      cell: (wallet) => <WalletStatus wallet={wallet} />,
    },
    {
      key: 'balance',
      header: texts.balanceNow,
      width: 'minmax(110px, 1fr)',
      isFigure: true,
      narrow: 'end',
      cell: ({ balance, currency }) => <Money amount={balance} currency={currency} />,
    },
    {
      key: 'after',
      header: texts.balanceAfter,
      width: 'minmax(130px, 1fr)',
      isFigure: true,
      cell: ({ id, real_time_balance, currency, wallet_status }) =>
        real_time_balance && wallet_status === 'active' ? (
          <WhyButton
            why={texts.why(formatMoney(language, real_time_balance, currency))}
            onOpen={() => open(id, 'balance')}
          >
            <Money amount={real_time_balance} currency={currency} />
          </WhyButton>
        ) : (
          <Unknown />
        ),
    },
  ];
  return (
    <Section title={texts.wallets}>
      <Loaded query={wallets} rows={2}>
        {(rows) =>
          rows.length === 0 ? (
            <Nothing>
              {texts.noWallets}{' '}
              <Link
                from={FROM}
                to="/env/$environment_id/wallets"
                search={(({ zone }: { zone?: string }) => ({ zone, sheet: 'new', customer: customer.id })) as never}
              >
                {texts.newWallet}
              </Link>
            </Nothing>
          ) : (
            <DataTable
              label={texts.wallets}
              columns={columns}
              rows={rows as readonly WalletRecord[]}
              rowKey={({ id }) => id}
              onOpen={({ id }) => open(id)}
            />
          )
        }
      </Loaded>
    </Section>
  );
}

function Nothing({ children }: { children: ReactNode }): ReactNode {
  return (
    <Sheet>
      <p className={styles.note}>{children}</p>
    </Sheet>
  );
}
