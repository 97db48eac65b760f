/** The end of the thread of an event: the final invoice that bills it, the next invoice that charges it, or why no invoice does. */
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Chip } from '../../components/chip.tsx';
import { Knot } from '../../components/thread.tsx';
import { Money } from '../../figures/money.tsx';
import { Day } from '../../figures/when.tsx';
import { useTexts } from '../../texts/texts.ts';
import type { EventThreadData } from './event-queries.ts';
import { EVENT_TEXTS } from './event-texts.ts';

const FROM = '/env/$environment_id/events';

export function InvoiceKnots({ thread }: { thread: EventThreadData }): ReactNode {
  const { invoice, next_invoice, event } = thread;
  if (!invoice && !next_invoice) return <NoInvoice thread={thread} />;
  return (
    <>
      {invoice && <BillingInvoice invoice={invoice} event_id={event?.id} />}
      {next_invoice && <NextInvoice invoice={next_invoice} hasDifference={invoice !== null} />}
    </>
  );
}

type BillingInvoiceProps = { invoice: NonNullable<EventThreadData['invoice']>; event_id: string | undefined };

function BillingInvoice({ invoice, event_id }: BillingInvoiceProps): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  const { amount, currency, invoice_id, invoice_number, invoice_line_item_id, period_end } = invoice;
  return (
    <Knot title={texts.billedOn} value={<Money amount={amount} currency={currency} />} isFilled>
      <Link
        from={FROM}
        to="/env/$environment_id/invoices/$invoice_id"
        params={{ invoice_id }}
        search={{ why: invoice_line_item_id, ...(event_id === undefined ? {} : { event: event_id }) }}
      >
        <bdi>{invoice_number ?? texts.openInvoice}</bdi>
      </Link>
      {period_end && (
        <>
          , <Day at={period_end} />
        </>
      )}
    </Knot>
  );
}

type NextInvoiceKnotProps = { invoice: NonNullable<EventThreadData['next_invoice']>; hasDifference: boolean };

function NextInvoice({ invoice, hasDifference }: NextInvoiceKnotProps): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  const { amount, currency, invoice_id, period_end, subscription_id } = invoice;
  return (
    <Knot
      title={invoice_id === null ? texts.nextInvoice : texts.openDraft}
      value={<Money amount={amount} currency={currency} />}
      isFilled
    >
      {invoice_id === null ? (
        <>
          {period_end && (
            <>
              {texts.draftOn} <Day at={period_end} />,{' '}
            </>
          )}
          <Link from={FROM} to="/env/$environment_id/subscriptions/$subscription_id" params={{ subscription_id }}>
            {texts.subscription}
          </Link>
        </>
      ) : (
        <Link from={FROM} to="/env/$environment_id/invoices/$invoice_id" params={{ invoice_id }} search={{}}>
          {texts.openInvoice}
        </Link>
      )}
      {hasDifference && <div>{texts.hasDifference}</div>}
    </Knot>
  );
}

/** Why no invoice has the event. */
function NoInvoice({ thread }: { thread: EventThreadData }): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  const { reason, status, detail } = thread;
  return (
    <Knot title={texts.nextInvoice} value={reason && <Chip tone="warn">{texts[reason]}</Chip>} isFilled>
      {status === 'processing'
        ? texts.processingHint
        : status === 'voided'
          ? texts.isVoided
          : (detail ?? texts.noInvoice)}
    </Knot>
  );
}
