/**
 * Content of an invoice on paper: its texts and numbers in order, without layout, which integrations/pdf adds. It shows
 * stored data and computes no amount (docs/rules/documents.md, "What it says").
 */

import { Decimal, sumDecimals } from '../../foundation/decimal.ts';
import { toInstant } from '../../foundation/time/instant.ts';
import type { Period } from '../../foundation/time/period.ts';
import { sumDiscounts } from '../../rating/adjustment-fields.ts';
import type { Invoice, InvoiceLineItem } from '../invoice/record.ts';
import { explainAmount } from './explained.ts';
import {
  type DocumentLanguage,
  selectTranslations,
  showAmount,
  showDay,
  showMoney,
  showNumber,
  showPeriod,
} from './language.ts';
import { buildReceiver, type DocumentCustomer, type DocumentParty } from './party.ts';
import type { InvoicePdfConfig } from './setting.ts';
import type { DocumentTax } from './tax.ts';
import type { Translations } from './translations.ts';

export type DocumentRow = {
  readonly text: string;
  /** Lines of smaller text below the row: the charged period, the steps of the amount and the discounts. */
  readonly details: readonly string[];
  /** Null in a document without this column. */
  readonly quantity: string | null;
  readonly unit_price: string | null;
  readonly amount: string;
};
type DocumentSum = { readonly label: string; readonly value: string; readonly strong: boolean };

export type PrintedDocument = {
  readonly title: string;
  /** Watermark of a draft, skipped or void invoice; null for any other. */
  readonly mark: string | null;
  readonly facts: readonly { readonly label: string; readonly value: string }[];
  readonly from: DocumentParty;
  readonly to: DocumentParty;
  /** Column headings: description, amount, and between them quantity and unit price if the rows have them. */
  readonly columns: readonly string[];
  readonly rows: readonly DocumentRow[];
  readonly sums: readonly DocumentSum[];
  readonly notes: readonly string[];
  /** Footer of each page, before the page number. */
  readonly foot: string;
  readonly page: { readonly word: string; readonly of: string };
  /** Note that is printed if the fonts of the service lack a character of the invoice. */
  readonly not_shown: string;
  readonly language: DocumentLanguage;
  /** Code of the receiver's country; null if unknown. It decides the form of Chinese characters. */
  readonly country: string | null;
  readonly look: { readonly color: string; readonly page_size: 'A4' | 'LETTER'; readonly logo: string | null };
  /**
   * Milliseconds since 1970, for the file properties. It is derived from the invoice, so a repeated rendering has equal
   * bytes.
   */
  readonly dated_ms: number;
};

/** Usage of one group of a line, and its share of the amount. */
export type DocumentGroup = { readonly label: string; readonly usage: string; readonly cost: string };

/** Fields of an invoice that its document shows. */
type PrintedInvoice = Pick<
  Invoice,
  | 'invoice_type'
  | 'invoice_status'
  | 'invoice_number'
  | 'currency'
  | 'description'
  | 'period_start'
  | 'period_end'
  | 'created_at'
  | 'issue_date'
  | 'finalized_at'
  | 'due_date'
  | 'subtotal'
  | 'total_discount'
  | 'total_prepaid_credits_applied'
  | 'total_tax'
  | 'total'
  | 'adjustment_amount'
  | 'total_credits_applied_after_tax'
  | 'amount_paid'
  | 'refunded_amount'
  | 'amount_remaining'
>;
type PrintedLine = Pick<
  InvoiceLineItem,
  | 'id'
  | 'display_name'
  | 'meter_display_name'
  | 'plan_display_name'
  | 'price_id'
  | 'computed_from'
  | 'period_start'
  | 'period_end'
  | 'quantity'
  | 'amount'
  | 'currency'
  | 'line_item_discount'
  | 'invoice_level_discount'
>;

export type InvoiceDocumentInput = {
  readonly invoice: PrintedInvoice;
  readonly lines: readonly PrintedLine[];
  readonly taxes: readonly DocumentTax[];
  /** Groups by line id, the largest first. Absent if the settings name no groups. */
  readonly groups?: ReadonlyMap<string, readonly DocumentGroup[]>;
  readonly customer: DocumentCustomer;
  readonly seller: { readonly name: string; readonly lines: readonly string[] };
  readonly settings: InvoicePdfConfig;
  readonly timezone: string;
};
type DocumentContext = InvoiceDocumentInput & { readonly words: Translations; readonly language: DocumentLanguage };

export function buildInvoiceDocument(input: InvoiceDocumentInput): PrintedDocument {
  const { invoice, settings } = input;
  const { language } = settings;
  const words = selectTranslations(language);
  const context = { ...input, words, language };
  return {
    title: invoice.invoice_type === 'CREDIT' ? words.credit_invoice : words.invoice,
    mark: deriveMark(invoice, words),
    facts: buildFacts(context),
    from: { label: words.from, ...input.seller },
    to: buildReceiver(input.customer, words, language),
    columns: [
      words.description,
      words.quantity,
      words.unit_price,
      `${words.amount} (${invoice.currency.toUpperCase()})`,
    ],
    rows: input.lines.map((line) => buildRow(line, context)),
    sums: buildSums(context),
    notes: [
      findReverseChargeNote(input.customer, { ...input, ...invoice }, words),
      invoice.description,
      settings.payment_instructions,
      settings.notes,
    ].flatMap((note) => note || []),
    ...buildPageParts(input, words, invoice.invoice_number),
    dated_ms: toInstant(deriveIssueDate(invoice)),
  };
}

/** Builds the parts of the pages that are the same in each kind of document. */
export function buildPageParts(
  { seller, customer, settings }: Pick<InvoiceDocumentInput, 'seller' | 'customer' | 'settings'>,
  words: Translations,
  number: string | null | undefined,
) {
  const { language, color, page_size, logo } = settings;
  return {
    foot: [seller.name, number].filter(Boolean).join(' · '),
    page: { word: words.page, of: words.of },
    not_shown: words.not_shown,
    language,
    country: customer.address_country || null,
    look: { color, page_size, logo },
  };
}

/** A void invoice shows no amount due and no due date. */
function isVoid({ invoice_status }: PrintedInvoice): boolean {
  return invoice_status === 'VOIDED';
}

function deriveMark(invoice: PrintedInvoice, words: Translations): string | null {
  const { invoice_status } = invoice;
  if (isVoid(invoice)) return words.voided;
  return invoice_status === 'DRAFT' || invoice_status === 'SKIPPED' ? words.draft : null;
}

/**
 * Derives the printed date: `issue_date` replaces the date of finalization (docs/rules/documents.md, "The date of
 * issue").
 */
function deriveIssueDate({ issue_date, finalized_at, created_at }: PrintedInvoice): string {
  return issue_date ?? finalized_at ?? created_at;
}

function buildFacts({ invoice, lines, words, language, timezone }: DocumentContext): PrintedDocument['facts'] {
  const day = (instant: string) => showDay(toInstant(instant), timezone, language);
  const { due_date, invoice_number } = invoice;
  const facts = [{ label: words.date, value: day(deriveIssueDate(invoice)) }];
  if (invoice_number) facts.unshift({ label: words.number, value: invoice_number });
  if (due_date && !isVoid(invoice)) facts.push({ label: words.due, value: day(due_date) });
  const period = derivePrintedPeriod(invoice, lines);
  if (period) facts.push({ label: words.period, value: showPeriod(period, timezone, language) });
  return facts;
}

/**
 * Derives the printed period. The invoice at the end of a period also charges the next one in advance, so the period of a subscription's
 * invoice is printed from the first to the last of its lines.
 */
function derivePrintedPeriod(
  { invoice_type, period_start, period_end }: PrintedInvoice,
  lines: readonly PrintedLine[],
): Period | null {
  if (!period_start || !period_end) return null;
  const own = { start: toInstant(period_start), end: toInstant(period_end) };
  if (invoice_type !== 'SUBSCRIPTION') return own;
  const charged = lines.filter((line) => line.period_start && line.period_end);
  if (charged.length === 0) return own;
  return {
    start: Math.min(...charged.map((line) => toInstant(line.period_start!))),
    end: Math.max(...charged.map((line) => toInstant(line.period_end!))),
  };
}

function buildRow(line: PrintedLine, { words, language, timezone, groups }: DocumentContext): DocumentRow {
  const { computed_from: from, period_start, period_end, plan_display_name: plan } = line;
  const text = line.display_name || line.meter_display_name || plan || line.price_id || '';
  const { unit_price, steps } = explainAmount(line, { words, language });
  const taken = sumDiscounts(line);
  const period =
    period_start && period_end
      ? [showPeriod({ start: toInstant(period_start), end: toInstant(period_end) }, timezone, language)]
      : [];
  return {
    text: from?.reason ? `${words.correction}: ${text}` : text,
    details: [
      ...(plan && plan !== text ? [plan] : []),
      ...period,
      ...steps,
      ...showGroups(groups?.get(line.id) ?? [], line, { words, language }),
      ...(taken.isZero() ? [] : [`${words.discount}: ${showAmount(taken.negated(), line.currency, language)}`]),
    ],
    quantity: showNumber(line.quantity, language),
    unit_price,
    amount: showAmount(line.amount, line.currency, language),
  };
}

/** Number of groups that are listed individually. A property may have as many values as there are events. */
const GROUPS_SHOWN = 20;

function showGroups(
  groups: readonly DocumentGroup[],
  { currency }: PrintedLine,
  { words, language }: { words: Translations; language: DocumentLanguage },
): string[] {
  const shown = groups.slice(0, GROUPS_SHOWN);
  const others = groups.slice(GROUPS_SHOWN);
  const texts = shown.map(
    ({ label, usage, cost }) =>
      `${label || '–'}: ${showNumber(usage, language)} ${words.units}, ${showAmount(cost, currency, language)}`,
  );
  if (others.length === 0) return texts;
  const rest = sumDecimals(others.map(({ cost }) => new Decimal(cost)));
  return [...texts, `${others.length} ${words.others}: ${showAmount(rest, currency, language)}`];
}

/** If the customer owes the tax to the state, the document must state it (docs/rules/taxes.md, "Which rates"). */
export function findReverseChargeNote(
  { tax_exempt }: DocumentCustomer,
  { taxes, total_tax }: { taxes: readonly DocumentTax[]; total_tax: string },
  words: Translations,
): string | null {
  const isTaxed = taxes.length > 0 || !new Decimal(total_tax).isZero();
  return tax_exempt === 'reverse' && !isTaxed ? words.reverse_charge : null;
}

function buildSums({ invoice, taxes, words, language }: DocumentContext): DocumentSum[] {
  const { currency } = invoice;
  const money = (amount: Decimal | string) => showMoney(amount, currency, language);
  const sum = (label: string, amount: Decimal | string, strong = false) => ({ label, value: money(amount), strong });
  const credited = invoice.total_credits_applied_after_tax;
  const buildDeduction = (label: string, amount: Decimal | string) => {
    const taken = new Decimal(amount);
    return taken.isZero() ? [] : [sum(label, taken.negated())];
  };
  const named = taxes.filter(({ is_included }) => !is_included).map(({ label, amount }) => sum(label, amount));
  const included = taxes.filter(({ is_included }) => is_included);
  const taxed =
    named.length > 0 || new Decimal(invoice.total_tax).isZero() ? named : [sum(words.tax, invoice.total_tax)];
  return [
    sum(words.subtotal, invoice.subtotal),
    ...buildDeduction(words.discount, invoice.total_discount),
    ...buildDeduction(words.credits, invoice.total_prepaid_credits_applied),
    ...taxed,
    sum(words.total, invoice.total, true),
    ...included.map(({ label, amount }) => sum(`${words.included} ${label}`, amount)),
    ...buildDeduction(words.adjusted, invoice.adjustment_amount),
    ...buildDeduction(words.credits_after_tax, credited),
    ...buildDeduction(words.paid, new Decimal(invoice.amount_paid).minus(credited)),
    ...(new Decimal(invoice.refunded_amount).isZero() ? [] : [sum(words.refunded, invoice.refunded_amount)]),
    ...(isVoid(invoice) ? [] : [sum(words.to_pay, invoice.amount_remaining, true)]),
  ];
}
