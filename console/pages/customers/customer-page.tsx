/** A customer: what it owes and holds, what it uses now, the next invoice, its records, and what changed. */
import { useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { api } from '../../client/client.ts';
import { useMayNot } from '../../client/permission.ts';
import { invalidate, useGet } from '../../client/queries.ts';
import { Button, primaryButtonClass } from '../../components/button.tsx';
import { Chip } from '../../components/chip.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { CopyId } from '../../components/copy.tsx';
import { History } from '../../components/history.tsx';
import { MoreMenu } from '../../components/more-menu.tsx';
import { PageHead, Section } from '../../components/page.tsx';
import { RecordTools } from '../../components/record-tools.tsx';
import { SideSheet, WithSheet } from '../../components/side-sheet.tsx';
import { Loaded } from '../../components/states.tsx';
import { useTexts } from '../../texts/texts.ts';
import type { CustomerRecord } from './customer.ts';
import { CustomerFacts, CustomerFigures } from './customer-facts.tsx';
import { CustomerForm } from './customer-form.tsx';
import styles from './customer-page.module.css';
import { CustomerInvoices, CustomerSubscriptions, CustomerWallets } from './customer-records.tsx';
import { findExplained, isBilled, useNextInvoices } from './next-invoice.ts';
import { CARDS_MAX, NextInvoices, NextInvoiceThread } from './next-invoices.tsx';
import { PAGE_TEXTS } from './page-texts.ts';
import type { CustomerSearch } from './routes.ts';
import { UsageNow } from './usage-now.tsx';

const FROM = '/env/$environment_id/customers/$customer_id';

export function CustomerPage(): ReactNode {
  const { customer_id } = useParams({ from: FROM });
  const customer = useGet('/customers/{id}', { path: { id: customer_id } });
  return (
    <Loaded query={customer} record_id={customer_id} rows={10}>
      {(record) => <CustomerView key={customer_id} customer={record as CustomerRecord} />}
    </Loaded>
  );
}

function CustomerView({ customer }: { customer: CustomerRecord }): ReactNode {
  const texts = useTexts(PAGE_TEXTS);
  const { sheet, why, do: dialogue } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const subscriptions = useGet('/subscriptions', {
    query: { customer_id: customer.id, expand: ['plan'], limit: 50 },
  });
  const change = (next: CustomerSearch) =>
    void navigate({
      search: ({ zone }) => ({ zone, ...next }),
      replace: next.why !== undefined,
      resetScroll: false,
    });
  const close = () => change({});
  const ask = (next: string) => change({ why: next });
  const all = subscriptions.data?.items ?? [];
  const billed = all.filter(isBilled);
  const explained = findExplained(useNextInvoices(billed.slice(0, CARDS_MAX).map(({ id }) => id)), why);
  const side =
    sheet === 'edit' ? (
      <CustomerForm customer={customer} onClose={close} />
    ) : sheet === 'record' ? (
      <SideSheet title={texts.record} subtitle={<CopyId id={customer.id} />} onClose={close}>
        <RecordTools record={customer} path={`/customers/${customer.id}`} entity_id={customer.id} />
      </SideSheet>
    ) : why !== undefined && explained ? (
      <NextInvoiceThread invoice={explained} why={why} onAsk={ask} onClose={close} />
    ) : null;
  return (
    <WithSheet sheet={side}>
      <CustomerHead customer={customer} onChange={change} />
      <CustomerFigures customer={customer} />
      <NextInvoices subscriptions={billed} why={why} onAsk={ask} />
      <UsageNow customer_id={customer.id} />
      <CustomerSubscriptions customer={customer} query={subscriptions} />
      <CustomerInvoices customer={customer} />
      <CustomerWallets customer={customer} />
      <div className={styles.pair}>
        <CustomerFacts customer={customer} onEdit={() => change({ sheet: 'edit' })} />
        <Section title={texts.activity}>
          <History entity_id={customer.id} />
        </Section>
      </div>
      {dialogue === 'archive' && <ArchiveCustomer customer={customer} onClose={close} />}
    </WithSheet>
  );
}

type CustomerHeadProps = { customer: CustomerRecord; onChange: (next: CustomerSearch) => void };

function CustomerHead({ customer, onChange }: CustomerHeadProps): ReactNode {
  const texts = useTexts(PAGE_TEXTS);
  const { id, name, external_id, email, status } = customer;
  const isCurrent = status === 'published';
  const mayNot = useMayNot('customer:write');
  const mayNotSubscribe = useMayNot('subscription:write');
  return (
    <PageHead
      title={name || external_id}
      status={!isCurrent && <Chip>{texts.archived}</Chip>}
      subtitle={
        <>
          <CopyId id={external_id} /> · {email && `${email} · `}
          <CopyId id={id} />
        </>
      }
      actions={
        <>
          <MoreMenu
            actions={[
              { label: texts.record, onClick: () => onChange({ sheet: 'record' }) },
              ...(isCurrent
                ? [{ label: texts.archive, blocked: mayNot, onClick: () => onChange({ do: 'archive' }) }]
                : []),
            ]}
          />
          <Button blocked={mayNot} onClick={() => onChange({ sheet: 'edit' })}>
            {texts.edit}
          </Button>
          {mayNotSubscribe === null && isCurrent ? (
            <Link
              from={FROM}
              to="/env/$environment_id/subscriptions/new"
              search={(({ zone }: { zone?: string }) => ({ zone, customer: id })) as never}
              className={primaryButtonClass}
            >
              {texts.newSubscription}
            </Link>
          ) : (
            <Button isPrimary blocked={isCurrent ? mayNotSubscribe : texts.isArchived}>
              {texts.newSubscription}
            </Button>
          )}
        </>
      }
    />
  );
}

function ArchiveCustomer({ customer, onClose }: { customer: CustomerRecord; onClose: () => void }): ReactNode {
  const texts = useTexts(PAGE_TEXTS);
  const queries = useQueryClient();
  const name = customer.name || customer.external_id;
  return (
    <Confirm
      needs="customer:write"
      title={texts.archiveTitle(name)}
      action={texts.archiveAction}
      typed={customer.external_id}
      isDangerous
      onClose={onClose}
      onConfirm={async () => {
        await api.DELETE('/customers/{id}', { params: { path: { id: customer.id } } });
        await invalidate(queries, '/customers', '/search', '/audit-logs');
      }}
    >
      <p>{texts.archiveWords}</p>
    </Confirm>
  );
}
