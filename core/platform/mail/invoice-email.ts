/** E-mails with an invoice: the events that send one, and the text (docs/rules/documents.md, "By e-mail"). */
import { Decimal } from '../../foundation/decimal.ts';
import { toInstant } from '../../foundation/time/instant.ts';
import { type DocumentLanguage, selectTranslations, showDay, showMoney } from '../../invoicing/document/language.ts';
import type { Invoice } from '../../invoicing/invoice/record.ts';
import type { SystemEventName } from '../system-event/catalogue.ts';

export const INVOICE_EMAIL_KINDS = ['new', 'reminder'] as const;
export type InvoiceEmailKind = (typeof INVOICE_EMAIL_KINDS)[number];

const EMAIL_KIND_BY_EVENT: Partial<Record<SystemEventName, InvoiceEmailKind>> = {
  'invoice.finalized': 'new',
  'invoice.communication.triggered': 'new',
  'invoice.payment.overdue': 'reminder',
};

/** Finds the kind of e-mail that an event sends; null if it sends none. */
export function findEmailKind(event_name: SystemEventName): InvoiceEmailKind | null {
  return EMAIL_KIND_BY_EVENT[event_name] ?? null;
}

/** The invoice may have changed since the event. A void invoice is not sent, and a paid one needs no reminder. */
export function isEmailDue(
  invoice: Pick<Invoice, 'invoice_status' | 'amount_remaining'>,
  kind: InvoiceEmailKind,
): boolean {
  if (invoice.invoice_status !== 'FINALIZED') return false;
  return kind === 'new' || new Decimal(invoice.amount_remaining).gt(0);
}

type InvoiceEmail = { readonly subject: string; readonly text: string };

export function composeInvoiceEmail(
  invoice: Pick<Invoice, 'invoice_number' | 'id' | 'currency' | 'amount_remaining' | 'due_date'>,
  {
    kind,
    language,
    timezone,
    seller,
    notes,
  }: { kind: InvoiceEmailKind; language: DocumentLanguage; timezone: string; seller: string; notes: readonly string[] },
): InvoiceEmail {
  const words = selectTranslations(language);
  const number = invoice.invoice_number ?? invoice.id;
  const opening = kind === 'new' ? words.letter_new : words.letter_reminder;
  const lines = [opening.replace('{}', number), formatPaymentRequest(), ...notes, seller];
  return {
    subject: [`${words.invoice} ${number}`, seller].filter(Boolean).join(' – '),
    text: `${lines.filter(Boolean).join('\n\n')}\n`,
  };

  function formatPaymentRequest(): string {
    if (!new Decimal(invoice.amount_remaining).gt(0)) return words.letter_nothing;
    const amount = showMoney(invoice.amount_remaining, invoice.currency, language);
    const due = invoice.due_date ? showDay(toInstant(invoice.due_date), timezone, language) : '';
    return words.letter_pay_until.replace('{amount}', amount).replace('{due}', due);
  }
}
