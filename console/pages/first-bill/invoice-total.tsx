import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { formatMoney } from '../../figures/format.ts';
import { Money } from '../../figures/money.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import styles from './first-bill.module.css';
import { TEXTS } from './texts.ts';

type InvoiceTotalProps = {
  environment_id: string;
  invoice: { readonly id: string; readonly total: string; readonly currency: string };
};

/** The total of an invoice; it leads to its thread, in the environment of the invoice. */
export function InvoiceTotal({ environment_id, invoice }: InvoiceTotalProps): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const { id, total, currency } = invoice;
  const why = texts.why(formatMoney(language, total, currency));
  return (
    <Link
      to="/env/$environment_id/invoices/$invoice_id"
      params={{ environment_id, invoice_id: id }}
      search={{ why: 'total' }}
      title={why}
      className={styles.whyLink}
      data-why
    >
      <Money amount={total} currency={currency} />
      <span className="visually-hidden">, {why}</span>
    </Link>
  );
}
