/** The invoices that a new subscription would have: at its start, and after its first period. */
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { components } from '../../client/openapi.d.ts';
import { showApiText } from '../../components/api-text.ts';
import { Section, Sheet } from '../../components/page.tsx';
import { Failure, Loading } from '../../components/states.tsx';
import { Day } from '../../figures/when.tsx';
import { useTexts } from '../../texts/texts.ts';
import type { InvoiceRecord } from '../invoices/invoice.ts';
import { NEW_TEXTS } from './new-texts.ts';
import { numberLines } from './subscription.ts';
import styles from './subscriptions.module.css';
import { WrittenInvoice } from './written-invoice.tsx';

export type SubscriptionPreview = components['schemas']['PreviewSubscriptionResponse'];

type FirstInvoiceProps = {
  preview: UseQueryResult<SubscriptionPreview>;
  /** The term that the form lacks; null if it is complete. */
  missing: string | null;
  /** The subscription starts on a chosen day. */
  isLater: boolean;
  /** The error stands at a field of the form already. */
  isFieldError: boolean;
};

export function FirstInvoice({ preview, missing, isLater, isFieldError }: FirstInvoiceProps): ReactNode {
  const texts = useTexts(NEW_TEXTS);
  const { data, error, isError, isPlaceholderData } = preview;
  return (
    <Section title={texts.first}>
      <Sheet padded>
        <div aria-live="polite" aria-busy={preview.isFetching}>
          {missing !== null ? (
            <p className="muted">{missing}</p>
          ) : isError ? (
            isFieldError ? (
              <p className={styles.error}>{showApiText(error.message)}</p>
            ) : (
              <Failure error={error} />
            )
          ) : data === undefined ? (
            <Loading rows={5} />
          ) : (
            <div className={isPlaceholderData ? styles.stale : undefined}>
              <Invoices data={data} isLater={isLater} />
            </div>
          )}
        </div>
      </Sheet>
    </Section>
  );
}

function Invoices({ data, isLater }: { data: SubscriptionPreview; isLater: boolean }): ReactNode {
  const texts = useTexts(NEW_TEXTS);
  const { latest_invoice, next_invoice, warnings, current_period_end } = data;
  return (
    <>
      {latest_invoice ? (
        <WrittenInvoice invoice={numberLines(latest_invoice as unknown as InvoiceRecord)} title={texts.firstNow} />
      ) : (
        <p className="muted">{isLater ? texts.laterStart : texts.noFirst}</p>
      )}
      {next_invoice && (
        <div className={styles.cost}>
          <WrittenInvoice
            invoice={numberLines(next_invoice as unknown as InvoiceRecord)}
            title={
              <>
                {texts.next} {texts.on} <Day at={next_invoice.period_end ?? current_period_end} />
              </>
            }
          />
          <p className={styles.hint}>{texts.usageHint}</p>
        </div>
      )}
      {(warnings ?? []).map(({ message }) => (
        <p key={message} className={styles.warning} lang="en">
          {message}
        </p>
      ))}
    </>
  );
}
