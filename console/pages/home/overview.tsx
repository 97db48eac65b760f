/** The environment at a glance: events that arrive, revenue of the period, what needs attention, recent invoices. */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { GetData } from '../../client/queries.ts';
import { can, useSession } from '../../client/session.ts';
import { buttonClass } from '../../components/button.tsx';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { PageHead, Section } from '../../components/page.tsx';
import { Failure, Loading } from '../../components/states.tsx';
import { Unknown } from '../../figures/money.tsx';
import { Period } from '../../figures/when.tsx';
import { useTexts } from '../../texts/texts.ts';
import { useEnvironment } from '../first-bill/environment.ts';
import { InvoiceTotal } from '../first-bill/invoice-total.tsx';
import { useEventStream } from '../first-bill/use-first-bill.ts';
import { InvoiceStatus } from '../invoices/status-chip.tsx';
import { Attention } from './attention.tsx';
import { EventsTile } from './events-tile.tsx';
import styles from './home.module.css';
import { recentInvoicesQuery } from './queries.ts';
import { RevenueTile } from './revenue-tile.tsx';
import { TEXTS } from './texts.ts';

export function Overview(): ReactNode {
  const texts = useTexts(TEXTS);
  const session = useSession();
  const environment = useEnvironment();
  useEventStream();
  return (
    <>
      <PageHead
        title={environment.name}
        subtitle={<bdi>{session.tenant.name}</bdi>}
        actions={
          <Link from="/env/$environment_id" to="/env/$environment_id/first-bill" className={buttonClass}>
            {texts.firstBill}
          </Link>
        }
      />
      <div className={styles.top}>
        <EventsTile />
        <RevenueTile />
      </div>
      <Section title={texts.attention}>
        <Attention />
      </Section>
      {can(session, 'invoice', 'read') && <RecentInvoices />}
    </>
  );
}

function RecentInvoices(): ReactNode {
  const texts = useTexts(TEXTS);
  const navigate = useNavigate({ from: '/env/$environment_id' });
  const invoices = useQuery(recentInvoicesQuery);
  return (
    <Section
      title={texts.invoices}
      end={
        <Link from="/env/$environment_id" to="/env/$environment_id/invoices">
          {texts.allInvoices}
        </Link>
      }
    >
      {invoices.error ? (
        <Failure error={invoices.error} onRetry={() => void invoices.refetch()} />
      ) : invoices.data ? (
        <DataTable
          label={texts.invoices}
          columns={listInvoiceColumns(texts)}
          rows={invoices.data.items ?? []}
          rowKey={({ id }) => id}
          onOpen={({ id }) =>
            void navigate({ to: '/env/$environment_id/invoices/$invoice_id', params: { invoice_id: id } })
          }
        />
      ) : (
        <Loading />
      )}
    </Section>
  );
}

type RecentInvoice = NonNullable<GetData<'/invoices'>['items']>[number];

function listInvoiceColumns(texts: ReturnType<typeof useTexts<typeof TEXTS.en>>): Column<RecentInvoice>[] {
  return [
    {
      key: 'customer',
      header: texts.customer,
      width: 'minmax(140px, 2fr)',
      narrow: 'first',
      cell: ({ customer }) => (customer ? <bdi>{customer.name ?? customer.external_id}</bdi> : <Unknown />),
    },
    {
      key: 'number',
      header: texts.number,
      width: '160px',
      cell: ({ id, invoice_number }) => (
        <Link from="/env/$environment_id" to="/env/$environment_id/invoices/$invoice_id" params={{ invoice_id: id }}>
          {invoice_number ?? texts.draft}
        </Link>
      ),
    },
    {
      key: 'period',
      header: texts.period,
      width: 'minmax(140px, 1fr)',
      narrow: 'hidden',
      cell: ({ period_start, period_end }) => <Period start={period_start} end={period_end} />,
    },
    { key: 'status', header: texts.status, width: '140px', cell: (invoice) => <InvoiceStatus invoice={invoice} /> },
    {
      key: 'total',
      header: texts.total,
      isFigure: true,
      width: '140px',
      narrow: 'end',
      cell: (invoice) => <InvoiceTotal environment_id={invoice.environment_id} invoice={invoice} />,
    },
  ];
}
