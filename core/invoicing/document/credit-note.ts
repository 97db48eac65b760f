/** Content of a credit note on paper (docs/rules/documents.md, "Credit notes"). It shows stored data, like an invoice. */
import { Decimal } from '../../foundation/decimal.ts';
import { toInstant } from '../../foundation/time/instant.ts';
import type { CreditNote, CreditNoteLineItem } from '../credit-note/record.ts';
import type { Invoice } from '../invoice/record.ts';
import { buildPageParts, findReverseChargeNote, type PrintedDocument } from './document.ts';
import { type DocumentLanguage, selectTranslations, showAmount, showDay, showMoney } from './language.ts';
import { buildReceiver, type DocumentCustomer } from './party.ts';
import type { InvoicePdfConfig } from './setting.ts';
import type { DocumentTax } from './tax.ts';
import type { Translations } from './translations.ts';

export type CreditNoteDocumentInput = {
  readonly note: CreditNote;
  readonly lines: readonly CreditNoteLineItem[];
  readonly invoice: Pick<Invoice, 'id' | 'invoice_number' | 'total_tax'>;
  /** Taxes of the credited invoice. */
  readonly taxes: readonly DocumentTax[];
  /** Tax that the credited amounts include. */
  readonly included_tax: Decimal;
  readonly customer: DocumentCustomer;
  readonly seller: { readonly name: string; readonly lines: readonly string[] };
  readonly settings: InvoicePdfConfig;
  readonly timezone: string;
};

export function buildCreditNoteDocument(input: CreditNoteDocumentInput): PrintedDocument {
  const { note, lines, invoice, settings } = input;
  const { language } = settings;
  const words = selectTranslations(language);
  return {
    title: words.credit_note,
    mark: deriveMark(note, words),
    facts: buildFacts(input, words),
    from: { label: words.from, ...input.seller },
    to: buildReceiver(input.customer, words, language),
    columns: [words.description, `${words.amount} (${note.currency.toUpperCase()})`],
    rows: lines.map(({ display_name, amount, currency }) => ({
      text: display_name,
      details: [],
      quantity: null,
      unit_price: null,
      amount: showAmount(amount, currency, language),
    })),
    sums: buildSums(input, words, language),
    notes: [findReverseChargeNote(input.customer, { ...invoice, ...input }, words), note.memo, settings.notes].flatMap(
      (text) => text || [],
    ),
    ...buildPageParts(input, words, note.credit_note_number),
    dated_ms: toInstant(deriveIssueDate(note)),
  };
}

function deriveMark({ credit_note_status }: CreditNote, words: Translations): string | null {
  if (credit_note_status === 'VOIDED') return words.voided;
  return credit_note_status === 'DRAFT' ? words.draft : null;
}

function deriveIssueDate({ finalized_at, created_at }: CreditNote): string {
  return finalized_at ?? created_at;
}

function buildFacts({ note, invoice, settings, timezone }: CreditNoteDocumentInput, words: Translations) {
  return [
    { label: words.credit_note_number, value: note.credit_note_number },
    { label: words.issued, value: showDay(toInstant(deriveIssueDate(note)), timezone, settings.language) },
    { label: words.number, value: invoice.invoice_number ?? invoice.id },
  ];
}

function buildSums(
  { note, taxes, included_tax }: CreditNoteDocumentInput,
  words: Translations,
  language: DocumentLanguage,
): PrintedDocument['sums'] {
  const sum = (label: string, amount: Decimal | string, strong = false) => ({
    label,
    value: showMoney(amount, note.currency, language),
    strong,
  });
  const buildPart = (label: string, amount: Decimal | string) =>
    new Decimal(amount).isZero() ? [] : [sum(label, amount)];
  const labelTax = (some: readonly DocumentTax[]) => (some.length === 1 ? some[0]!.label : words.tax);
  const added = taxes.filter(({ is_included }) => !is_included);
  const included = taxes.filter(({ is_included }) => is_included);
  const prepaid = new Decimal(note.total_prepaid_credits_returned);
  const rest = new Decimal(note.total_amount).minus(prepaid);
  return [
    sum(words.subtotal, note.subtotal),
    ...buildPart(labelTax(added), note.total_tax),
    sum(words.credited, note.total_amount, true),
    ...buildPart(`${words.included} ${labelTax(included)}`, included_tax),
    ...buildPart(words.credits_returned, prepaid),
    ...buildPart(note.credit_note_type === 'REFUND' ? words.to_balance : words.off_invoice, rest),
  ];
}
