/** The cost of a change before it is made: its preview, with the invoice written out, and the button that makes the change. */
import { keepPreviousData, type UseQueryResult, useQuery, useQueryClient } from '@tanstack/react-query';
import type { FormEvent, ReactNode } from 'react';
import { readData } from '../../client/client.ts';
import type { components } from '../../client/openapi.d.ts';
import { invalidate } from '../../client/queries.ts';
import { showApiText } from '../../components/api-text.ts';
import { findFieldError } from '../../components/field-errors.ts';
import { type Deed, FormFoot, useDeed } from '../../components/form.tsx';
import { SideSheet } from '../../components/side-sheet.tsx';
import { Failure, Loading } from '../../components/states.tsx';
import { Day } from '../../figures/when.tsx';
import { useTexts } from '../../texts/texts.ts';
import { CHANGE_TEXTS } from './change-texts.ts';
import { numberLines } from './subscription.ts';
import styles from './subscriptions.module.css';
import { WrittenInvoice } from './written-invoice.tsx';

/** The answer of a preview, in the type of its schema; `body` is null while the form is not complete. */
export function useCostPreview<Cost, Body>(
  path: string,
  id: string,
  body: Body | null,
  ask: (body: Body) => Promise<{ data?: unknown }>,
): UseQueryResult<Cost> {
  return useQuery({
    // A change that was made must not be previewed again: the key is none of the paths that are marked as stale.
    queryKey: ['cost', path, id, body] as const,
    queryFn: () => readData(ask(body!)) as Promise<Cost>,
    enabled: body !== null,
    placeholderData: keepPreviousData,
    retry: false,
    gcTime: 0,
  });
}

/** Changes a subscription. Afterwards the sheet closes, and the page is read again. */
export function useChange<Output>(run: () => Promise<Output>, onClose: () => void): Deed<undefined, Output> {
  const queries = useQueryClient();
  return useDeed(run, async () => {
    // The sheet closes first: another one may be opened while the page is read again.
    onClose();
    await invalidate(queries, '/subscriptions', '/invoices', '/audit-logs');
  });
}

type ChangeSheetProps<Cost> = {
  title: string;
  subtitle?: ReactNode;
  /** The fields of the form that show their errors themselves. */
  fields: readonly string[];
  preview: UseQueryResult<Cost>;
  isComplete: boolean;
  deed: Pick<Deed<undefined, unknown>, 'error' | 'isPending' | 'mutate'>;
  action: string;
  incomplete: string;
  form: ReactNode;
  onClose: () => void;
  children: (cost: Cost) => ReactNode;
};

export function ChangeSheet<Cost>(props: ChangeSheetProps<Cost>): ReactNode {
  const texts = useTexts(CHANGE_TEXTS);
  const { title, subtitle, fields, preview, isComplete, deed, action, incomplete, form, onClose, children } = props;
  const isFieldError = fields.some((field) => findFieldError(preview, field) !== undefined);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    deed.mutate(undefined);
  };
  // Nothing is changed before its cost is on the screen.
  const isShown = preview.data !== undefined && !preview.isPlaceholderData;
  const refusal = preview.isError ? showApiText(preview.error.message) : null;
  const blocked = !isComplete ? incomplete : (refusal ?? (isShown ? null : texts.computing));
  return (
    <SideSheet title={title} subtitle={subtitle} onClose={onClose}>
      <form className={styles.form} onSubmit={submit}>
        {form}
        <section className={styles.cost} aria-label={texts.cost} aria-live="polite" aria-busy={preview.isFetching}>
          {!isComplete ? (
            <p className="muted">{incomplete}</p>
          ) : preview.isError ? (
            !isFieldError && <Failure error={preview.error} onRetry={() => void preview.refetch()} />
          ) : preview.data === undefined ? (
            <Loading rows={4} />
          ) : (
            <div className={preview.isPlaceholderData ? styles.stale : undefined}>{children(preview.data)}</div>
          )}
        </section>
        <FormFoot needs="subscription:write" deed={deed} fields={fields} action={action} blocked={blocked} />
      </form>
    </SideSheet>
  );
}

type ChangeResult = components['schemas']['ChangedResources'];

/** The invoice of a change. A credit has a negative sum, which is written out, too. */
export function ChangeInvoice({ changed, at }: { changed: ChangeResult; at: string | null }): ReactNode {
  const texts = useTexts(CHANGE_TEXTS);
  const [changedInvoice] = changed.invoices;
  if (!changedInvoice?.invoice) return <p>{texts.nothingNow}</p>;
  const isCredit = changedInvoice.action === 'wallet_credit';
  const invoice = numberLines(changedInvoice.invoice as never);
  return (
    <>
      <WrittenInvoice
        invoice={isCredit ? { ...invoice, total: invoice.subtotal } : invoice}
        title={
          isCredit ? (
            texts.credited
          ) : at === null ? (
            texts.chargedNow
          ) : (
            <>
              {texts.chargedOn} <Day at={at} />
            </>
          )
        }
      />
      {isCredit && <p className={styles.hint}>{texts.creditHint}</p>}
    </>
  );
}

/** Sentences of the service about effects that one may not expect. */
export function Warnings({ warnings }: { warnings: readonly string[] }): ReactNode {
  return warnings.map((warning) => (
    <p key={warning} className={styles.warning} lang="en">
      {warning}
    </p>
  ));
}
