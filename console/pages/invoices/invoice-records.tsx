/** Payments and credit notes of an invoice. */
import type { ReactNode } from 'react';
import { usePages } from '../../client/pages.ts';
import { Chip } from '../../components/chip.tsx';
import { DataTable } from '../../components/data-table.tsx';
import { Section, Sheet } from '../../components/page.tsx';
import { Failure, Loading } from '../../components/states.tsx';
import type { Tone } from '../../components/tone.ts';
import { Money } from '../../figures/money.tsx';
import { Day } from '../../figures/when.tsx';
import { defineTexts, useLanguage, useTexts } from '../../texts/texts.ts';
import styles from './invoice.module.css';
import type { InvoiceRecord } from './invoice.ts';
import { TEXTS } from './texts.ts';

const TONES: Record<string, Tone> = {
  SUCCEEDED: 'ok',
  OVERPAID: 'ok',
  FINALIZED: 'ok',
  FAILED: 'bad',
  PENDING: 'warn',
  PROCESSING: 'info',
  INITIATED: 'info',
};

/** A value of an enumeration of the API in the words of the language; one that is not known stands as it is. */
function useValueName(): (value: string) => string {
  const names: Record<string, string> = VALUE_NAMES[useLanguage()];
  return (value) => names[value] ?? value.toLowerCase().replaceAll('_', ' ');
}

export function InvoicePayments({ invoice }: { invoice: InvoiceRecord }): ReactNode {
  const texts = useTexts(TEXTS);
  const nameOf = useValueName();
  const payments = usePages('/payments', { query: { destination_id: invoice.id } });
  return (
    <Section title={texts.payments}>
      <Records list={payments} none={texts.noPayments}>
        <DataTable
          label={texts.payments}
          rows={payments.rows}
          rowKey={({ id }) => id}
          total={payments.total}
          onEnd={payments.loadMore}
          columns={[
            {
              key: 'when',
              header: texts.when,
              width: '124px',
              cell: (row) => <Day at={row.succeeded_at ?? row.created_at} />,
            },
            {
              key: 'method',
              header: texts.method,
              narrow: 'first',
              cell: ({ payment_method_type, metadata }) => (
                <>
                  {nameOf(payment_method_type)}
                  {metadata?.['reference'] && <span className="label"> · {String(metadata['reference'])}</span>}
                </>
              ),
            },
            {
              key: 'status',
              header: texts.status,
              width: '124px',
              cell: ({ payment_status }) => (
                <Chip tone={TONES[payment_status] ?? 'plain'}>{nameOf(payment_status)}</Chip>
              ),
            },
            {
              key: 'amount',
              header: texts.amount,
              width: '104px',
              isFigure: true,
              narrow: 'end',
              cell: ({ amount, currency }) => <Money amount={amount} currency={currency} />,
            },
          ]}
        />
      </Records>
    </Section>
  );
}

export function InvoiceCredits({ invoice }: { invoice: InvoiceRecord }): ReactNode {
  const texts = useTexts(TEXTS);
  const nameOf = useValueName();
  const notes = usePages('/creditnotes', { query: { invoice_id: invoice.id } });
  return (
    <Section title={texts.creditNotes}>
      <Records list={notes} none={texts.noCreditNotes}>
        <DataTable
          label={texts.creditNotes}
          rows={notes.rows}
          rowKey={({ id }) => id}
          total={notes.total}
          onEnd={notes.loadMore}
          columns={[
            {
              key: 'number',
              header: texts.number,
              width: 'minmax(110px, 1.4fr)',
              narrow: 'first',
              cell: ({ credit_note_number }) => <span className="mono">{credit_note_number}</span>,
            },
            { key: 'reason', header: texts.reason, cell: ({ reason }) => nameOf(reason) },
            {
              key: 'status',
              header: texts.status,
              width: '110px',
              cell: ({ credit_note_status }) => (
                <Chip tone={TONES[credit_note_status] ?? 'plain'}>{nameOf(credit_note_status)}</Chip>
              ),
            },
            {
              key: 'amount',
              header: texts.amount,
              width: '104px',
              isFigure: true,
              narrow: 'end',
              cell: ({ total_amount, currency }) => <Money amount={total_amount} currency={currency} />,
            },
          ]}
        />
      </Records>
    </Section>
  );
}

type RecordsProps = {
  list: { rows: readonly unknown[]; error: Error | null; isPending: boolean; refetch: () => void };
  none: string;
  children: ReactNode;
};

function Records({ list, none, children }: RecordsProps): ReactNode {
  if (list.error) return <Failure error={list.error} onRetry={list.refetch} />;
  if (list.isPending) return <Loading rows={2} />;
  if (list.rows.length > 0) return children;
  return (
    <Sheet>
      <p className={styles.none}>{none}</p>
    </Sheet>
  );
}

const VALUE_NAMES = defineTexts(
  {
    OFFLINE: 'Transfer',
    CARD: 'Card',
    ACH: 'Bank debit',
    CREDITS: 'Credits',
    PAYMENT_LINK: 'Payment page',
    SUCCEEDED: 'Succeeded',
    OVERPAID: 'Overpaid',
    FAILED: 'Failed',
    PENDING: 'Pending',
    PROCESSING: 'Processing',
    INITIATED: 'Begun',
    REFUNDED: 'Refunded',
    PARTIALLY_REFUNDED: 'Partly refunded',
    VOIDED: 'Void',
    DRAFT: 'Draft',
    FINALIZED: 'Final',
    DUPLICATE: 'Duplicate',
    FRAUDULENT: 'Fraudulent',
    ORDER_CHANGE: 'Changed order',
    UNSATISFACTORY: 'Unsatisfactory',
    SERVICE_ISSUE: 'Service issue',
    BILLING_ERROR: 'Billing error',
    SUBSCRIPTION_CANCELLATION: 'Cancellation',
  },
  {
    de: {
      OFFLINE: 'Überweisung',
      CARD: 'Karte',
      ACH: 'Lastschrift',
      CREDITS: 'Guthaben',
      PAYMENT_LINK: 'Zahlungsseite',
      SUCCEEDED: 'Erfolgt',
      OVERPAID: 'Überzahlt',
      FAILED: 'Fehlgeschlagen',
      PENDING: 'Ausstehend',
      PROCESSING: 'In Arbeit',
      INITIATED: 'Begonnen',
      REFUNDED: 'Erstattet',
      PARTIALLY_REFUNDED: 'Teilweise erstattet',
      VOIDED: 'Storniert',
      DRAFT: 'Entwurf',
      FINALIZED: 'Endgültig',
      DUPLICATE: 'Doppelt',
      FRAUDULENT: 'Betrug',
      ORDER_CHANGE: 'Geänderter Auftrag',
      UNSATISFACTORY: 'Nicht zufrieden',
      SERVICE_ISSUE: 'Störung',
      BILLING_ERROR: 'Fehler der Abrechnung',
      SUBSCRIPTION_CANCELLATION: 'Kündigung',
    },
  },
);
