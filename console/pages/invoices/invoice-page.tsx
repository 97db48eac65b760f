/** An invoice: its lines and totals, each number with its thread, what was paid and credited, and what changed. */
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense } from 'react';
import { useGet } from '../../client/queries.ts';
import { CopyId } from '../../components/copy.tsx';
import { History } from '../../components/history.tsx';
import { Facts, PageHead, Section, Sheet } from '../../components/page.tsx';
import { RecordTools } from '../../components/record-tools.tsx';
import { WithSheet } from '../../components/side-sheet.tsx';
import { Loaded } from '../../components/states.tsx';
import { formatMoney } from '../../figures/format.ts';
import { BigMoney, WhyButton } from '../../figures/money.tsx';
import { Moment, Period } from '../../figures/when.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { isZero } from './decimals.ts';
import styles from './invoice.module.css';
import type { InvoiceRecord } from './invoice.ts';
import { InvoiceActions } from './invoice-actions.tsx';
import { InvoiceCredits, InvoicePayments } from './invoice-records.tsx';
import { LineUsage } from './line-usage.tsx';
import { InvoiceLines } from './lines.tsx';
import { InvoiceStatus } from './status-chip.tsx';
import { TEXTS } from './texts.ts';
import { InvoiceTotals } from './totals.tsx';

const FROM = '/env/$environment_id/invoices/$invoice_id';

// The threads bring the verifier of invoices with them.
const LineThread = lazy(async () => ({ default: (await import('./thread/line-thread.tsx')).LineThread }));
const TotalThread = lazy(async () => ({ default: (await import('./thread/total-thread.tsx')).TotalThread }));

export function InvoicePage(): ReactNode {
  const { invoice_id } = useParams({ from: FROM });
  const invoice = useGet('/invoices/{id}', { path: { id: invoice_id } });
  return (
    <Loaded query={invoice} record_id={invoice_id} rows={10}>
      {(shown) => <InvoiceView key={invoice_id} invoice={shown as InvoiceRecord} />}
    </Loaded>
  );
}

function InvoiceView({ invoice }: { invoice: InvoiceRecord }): ReactNode {
  const texts = useTexts(TEXTS);
  const { why, event } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const ask = (next: string | undefined) =>
    void navigate({ search: ({ why: _, event: __, ...old }) => (next ? { ...old, why: next } : old), replace: true });
  const follow = (event_id: string) => void navigate({ search: (old) => ({ ...old, event: event_id }), replace: true });
  const line = (invoice.line_items ?? []).find(({ id }) => id === why);
  const close = () => ask(undefined);
  const sheet = line ? (
    <LineThread key={line.id} invoice={invoice} line={line} event={event} onFollow={follow} onClose={close} />
  ) : why === 'total' ? (
    <TotalThread invoice={invoice} onAsk={ask} onClose={close} />
  ) : null;
  return (
    <WithSheet sheet={sheet && <Suspense>{sheet}</Suspense>}>
      <InvoiceHead invoice={invoice} onAsk={() => ask('total')} />
      <InvoiceLines invoice={invoice} why={why} onAsk={ask} />
      <InvoiceTotals invoice={invoice} onAsk={() => ask('total')} />
      {line?.meter_id && <LineUsage key={line.id} line={line} />}
      {invoice.invoice_status !== 'DRAFT' && (
        <div className={styles.records}>
          <InvoicePayments invoice={invoice} />
          <InvoiceCredits invoice={invoice} />
        </div>
      )}
      <Section title={texts.activity}>
        <History entity_id={invoice.id} />
      </Section>
      <Section title={texts.record}>
        <InvoiceFacts invoice={invoice} />
        <RecordTools record={invoice} path={`/invoices/${invoice.id}`} />
      </Section>
    </WithSheet>
  );
}

function InvoiceHead({ invoice, onAsk }: { invoice: InvoiceRecord; onAsk: () => void }): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const { customer, customer_id, period_start, period_end, currency } = invoice;
  const name = customer?.name || customer?.external_id || customer_id;
  const isOwed = invoice.invoice_status === 'FINALIZED' && !isZero(invoice.amount_remaining);
  const amount = isOwed ? invoice.amount_remaining : invoice.total;
  return (
    <PageHead
      title={invoice.invoice_number ?? texts.draftOf(name)}
      status={<InvoiceStatus invoice={invoice} />}
      subtitle={
        <>
          <Link
            from={FROM}
            to="/env/$environment_id/customers/$customer_id"
            params={(old) => ({ environment_id: old.environment_id!, customer_id })}
            search={({ zone }) => ({ zone })}
          >
            <bdi>{name}</bdi>
          </Link>
          {period_start && period_end && (
            <>
              {' · '}
              <Period start={period_start} end={period_end} />
            </>
          )}
          {' · '}
          <LastStep invoice={invoice} />
        </>
      }
      figure={
        <WhyButton why={texts.whyTotal(formatMoney(language, amount, currency))} onOpen={onAsk}>
          <BigMoney amount={amount} currency={currency} />
        </WhyButton>
      }
      actions={<InvoiceActions invoice={invoice} />}
    />
  );
}

/** Last event of the invoice: computed, finalized or voided. */
function LastStep({ invoice }: { invoice: InvoiceRecord }): ReactNode {
  const texts = useTexts(TEXTS);
  const { voided_at, finalized_at, last_computed_at, created_at, recalculated_invoice_id } = invoice;
  if (voided_at)
    return (
      <>
        {texts.voided} <Moment at={voided_at} />
        {recalculated_invoice_id && (
          <>
            {', '}
            {texts.replacedBy}{' '}
            <Link
              from={FROM}
              to="/env/$environment_id/invoices/$invoice_id"
              params={(old) => ({ environment_id: old.environment_id, invoice_id: recalculated_invoice_id })}
              search={({ zone }) => ({ zone })}
              className="mono"
            >
              {recalculated_invoice_id}
            </Link>
          </>
        )}
      </>
    );
  if (finalized_at)
    return (
      <>
        {texts.finalized} <Moment at={finalized_at} />
      </>
    );
  return (
    <>
      {texts.computed} <Moment at={last_computed_at ?? created_at} />
    </>
  );
}

function InvoiceFacts({ invoice }: { invoice: InvoiceRecord }): ReactNode {
  const texts = useTexts(TEXTS);
  const { id, customer_id, subscription_id, due_date } = invoice;
  return (
    <Sheet>
      <Facts
        facts={[
          { label: texts.id, value: <CopyId id={id} /> },
          { label: texts.customerId, value: <CopyId id={customer_id} /> },
          ...(subscription_id
            ? [
                {
                  label: texts.subscription,
                  value: (
                    <Link
                      from={FROM}
                      to="/env/$environment_id/subscriptions/$subscription_id"
                      params={(old) => ({ environment_id: old.environment_id, subscription_id })}
                      search={({ zone }) => ({ zone })}
                      className="mono"
                    >
                      {subscription_id}
                    </Link>
                  ),
                },
              ]
            : []),
          ...(due_date ? [{ label: texts.due, value: <Moment at={due_date} /> }] : []),
        ]}
      />
    </Sheet>
  );
}
