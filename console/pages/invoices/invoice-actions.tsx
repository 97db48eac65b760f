/** Actions that the state of an invoice allows. The open dialogue stands in the URL. */
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { api, linkTo, readData } from '../../client/client.ts';
import { useMayNot } from '../../client/permission.ts';
import { invalidate } from '../../client/queries.ts';
import { showApiText } from '../../components/api-text.ts';
import { Button, buttonClass } from '../../components/button.tsx';
import { useDeed } from '../../components/form.tsx';
import { useShowMessage } from '../../components/message.ts';
import { useTexts } from '../../texts/texts.ts';
import { isZero } from './decimals.ts';
import styles from './invoice.module.css';
import type { InvoiceRecord } from './invoice.ts';
import { FinalizeInvoice, SendInvoice, VoidInvoice } from './invoice-dialogues.tsx';
import { RecordPayment } from './record-payment.tsx';
import type { InvoiceDialogue } from './routes.ts';
import { TEXTS } from './texts.ts';

const FROM = '/env/$environment_id/invoices/$invoice_id';

export function InvoiceActions({ invoice }: { invoice: InvoiceRecord }): ReactNode {
  const texts = useTexts(TEXTS);
  const showMessage = useShowMessage();
  const queries = useQueryClient();
  const { do: dialogue } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const open = (next?: InvoiceDialogue) =>
    void navigate({ search: ({ do: _, ...old }) => (next ? { ...old, do: next } : old), replace: true });
  const refresh = () => invalidate(queries, '/invoices', '/payments', '/creditnotes', '/audit-logs');
  const recompute = useDeed(
    () =>
      readData(
        api.POST('/invoices/{id}/compute', {
          params: { path: { id: invoice.id }, query: { sync: 'true' } },
          body: null,
        }),
      ),
    async () => {
      await refresh();
      showMessage(texts.recomputed);
    },
  );
  const { invoice_status: status } = invoice;
  const mayNot = useMayNot('invoice:write');
  const mayNotPay = useMayNot('payment:write');
  const isOwed = status === 'FINALIZED' && !isZero(invoice.amount_remaining);
  // A link to a dialogue opens nothing that the role may not do.
  const permitted = mayNot === null ? dialogue : undefined;
  const close = () => open();
  return (
    <>
      <a
        className={`${buttonClass} ${styles.side}`}
        href={linkTo(`/invoices/${encodeURIComponent(invoice.id)}/pdf`)}
        target="_blank"
        rel="noopener"
      >
        {texts.pdf}
        <span className="visually-hidden">, {texts.newTab}</span>
      </a>
      {status === 'FINALIZED' && (
        <Button className={styles.side} blocked={mayNot} onClick={() => open('send')}>
          {texts.send}
        </Button>
      )}
      {(status === 'FINALIZED' || status === 'DRAFT') && (
        <Button className={styles.side} blocked={mayNot} onClick={() => open('void')}>
          {texts.voidIt}
        </Button>
      )}
      {status === 'DRAFT' && (
        <Button
          className={styles.side}
          blocked={mayNot ?? (invoice.is_manually_edited ? texts.edited : null)}
          isBusy={recompute.isPending}
          onClick={() => recompute.mutate(undefined)}
        >
          {texts.recompute}
        </Button>
      )}
      {status === 'DRAFT' && (
        <Button isPrimary className={styles.main} blocked={mayNot} onClick={() => open('finalize')}>
          {texts.finalize}
        </Button>
      )}
      {isOwed && (
        <Button isPrimary className={styles.main} blocked={mayNotPay} onClick={() => open('pay')}>
          {texts.pay}
        </Button>
      )}
      {recompute.error && (
        <p role="alert" className="muted">
          {showApiText(recompute.error.message)}
        </p>
      )}
      {dialogue === 'pay' && isOwed && mayNotPay === null && (
        <RecordPayment invoice={invoice} onDone={refresh} onClose={close} />
      )}
      {permitted === 'void' && status !== 'VOIDED' && (
        <VoidInvoice invoice={invoice} onDone={refresh} onClose={close} />
      )}
      {permitted === 'finalize' && status === 'DRAFT' && (
        <FinalizeInvoice invoice={invoice} onDone={refresh} onClose={close} />
      )}
      {permitted === 'send' && status === 'FINALIZED' && (
        <SendInvoice invoice={invoice} onDone={refresh} onClose={close} />
      )}
    </>
  );
}
