/**
 * An invoice as people read it: every word and number of its document, in their order, and nothing about how they look
 * (integrations/pdf lays them out). It says what is stored and computes no amount of its own
 * (docs/rules/documents.md, "What it says").
 */
import type { Customer } from '../customer/record.ts';
import { Decimal, sumDecimals } from '../decimal.ts';
import type { Invoice, InvoiceLineItem } from '../invoice/record.ts';
import type { SettingValue } from '../setting/record.ts';
import { toInstant } from '../time/instant.ts';
import { explainAmount } from './explained.ts';
import {
  type Language,
  selectTranslations,
  showAmount,
  showDay,
  showMoney,
  showNumber,
  showPeriod,
} from './language.ts';
import type { Translations } from './translations.ts';

export type DocumentRow = {
  readonly text: string;
  /** Beneath it, smaller: the time that is charged, how the amount came about, what was taken off. */
  readonly details: readonly string[];
  readonly quantity: string;
  readonly unit_price: string;
  readonly amount: string;
};
export type DocumentSum = { readonly label: string; readonly value: string; readonly strong: boolean };
export type DocumentParty = { readonly label: string; readonly name: string; readonly lines: readonly string[] };

export type InvoiceDocument = {
  readonly title: string;
  /** Across the page of what is no invoice yet, or none any more. */
  readonly mark: string | null;
  readonly facts: readonly { readonly label: string; readonly value: string }[];
  readonly from: DocumentParty;
  readonly to: DocumentParty;
  /** Heads of the columns: description, quantity, unit price, amount. */
  readonly columns: readonly [string, string, string, string];
  readonly rows: readonly DocumentRow[];
  readonly sums: readonly DocumentSum[];
  readonly notes: readonly string[];
  /** At the foot of each page, before its number. */
  readonly foot: string;
  readonly page: { readonly word: string; readonly of: string };
  /** Said where a character is in none of the fonts. */
  readonly not_shown: string;
  readonly language: Language;
  readonly look: { readonly color: string; readonly page_size: 'A4' | 'LETTER'; readonly logo: string | null };
  /** Milliseconds since 1970, for the properties of the file: what is made again has the same. */
  readonly dated_ms: number;
};

/** A tax of the invoice as its document names it: "VAT 19%". What is included is in the amounts already. */
export type DocumentTax = { readonly label: string; readonly amount: string; readonly is_included?: boolean };

/** Who used what of a line, and what of its amount is for it. */
export type DocumentGroup = { readonly label: string; readonly usage: string; readonly cost: string };

export type InvoiceDocumentInput = {
  readonly invoice: Invoice;
  readonly lines: readonly InvoiceLineItem[];
  readonly taxes: readonly DocumentTax[];
  /** By the id of the line, the greatest first; nothing where the settings name no groups. */
  readonly groups?: ReadonlyMap<string, readonly DocumentGroup[]>;
  readonly customer: Pick<Customer, 'name' | 'external_id' | 'email' | `address_${AddressPart}`> & {
    readonly tax_ids?: readonly string[];
    readonly tax_exempt?: Customer['tax_exempt'];
  };
  readonly seller: { readonly name: string; readonly lines: readonly string[] };
  readonly settings: SettingValue<'invoice_pdf_config'>;
  readonly timezone: string;
};
type AddressPart = 'line1' | 'line2' | 'city' | 'state' | 'postal_code' | 'country';
type DocumentContext = InvoiceDocumentInput & { readonly words: Translations; readonly language: Language };

export function buildInvoiceDocument(input: InvoiceDocumentInput): InvoiceDocument {
  const { invoice, settings } = input;
  const { language } = settings;
  const words = selectTranslations(language);
  const context = { ...input, words, language };
  return {
    title: invoice.invoice_type === 'CREDIT' ? words.credit_invoice : words.invoice,
    mark: deriveMark(invoice, words),
    facts: buildFacts(context),
    from: { label: words.from, ...input.seller },
    to: buildReceiver(context),
    columns: [
      words.description,
      words.quantity,
      words.unit_price,
      `${words.amount} (${invoice.currency.toUpperCase()})`,
    ],
    rows: input.lines.map((line) => buildRow(line, context)),
    sums: buildSums(context),
    notes: [findReverseChargeNote(context), invoice.description, settings.payment_instructions, settings.notes].flatMap(
      (note) => note || [],
    ),
    foot: [input.seller.name, invoice.invoice_number].filter(Boolean).join(' · '),
    page: { word: words.page, of: words.of },
    not_shown: words.not_shown,
    language,
    look: { color: settings.color, page_size: settings.page_size, logo: settings.logo },
    dated_ms: toInstant(deriveIssueDate(invoice)),
  };
}

/** Nothing is due of it, and by no day. */
function isVoid({ invoice_status }: Invoice): boolean {
  return invoice_status === 'VOIDED';
}

function deriveMark(invoice: Invoice, words: Translations): string | null {
  const { invoice_status } = invoice;
  if (isVoid(invoice)) return words.voided;
  return invoice_status === 'DRAFT' || invoice_status === 'SKIPPED' ? words.draft : null;
}

/** The date that was stated takes the place of that on which it became final (docs/rules/documents.md, "The date of issue"). */
function deriveIssueDate({ issue_date, finalized_at, created_at }: Invoice): string {
  return issue_date ?? finalized_at ?? created_at;
}

function buildFacts({ invoice, words, language, timezone }: DocumentContext): InvoiceDocument['facts'] {
  const day = (instant: string) => showDay(toInstant(instant), timezone, language);
  const { period_start, period_end, due_date, invoice_number } = invoice;
  const facts = [{ label: words.date, value: day(deriveIssueDate(invoice)) }];
  if (invoice_number) facts.unshift({ label: words.number, value: invoice_number });
  if (due_date && !isVoid(invoice)) facts.push({ label: words.due, value: day(due_date) });
  if (period_start && period_end) {
    const period = { start: toInstant(period_start), end: toInstant(period_end) };
    facts.push({ label: words.period, value: showPeriod(period, timezone, language) });
  }
  return facts;
}

function buildReceiver({ customer, words }: DocumentContext): DocumentParty {
  const { address_line1, address_line2, address_postal_code, address_city, address_state, address_country } = customer;
  const city = [address_postal_code, address_city].filter(Boolean).join(' ');
  const place = [city, address_state, address_country].filter(Boolean).join(', ');
  const tax_ids = (customer.tax_ids ?? []).map((id) => `${words.tax_id}: ${id}`);
  const lines = [address_line1, address_line2, place, customer.email, ...tax_ids].filter(Boolean);
  return { label: words.bill_to, name: customer.name || customer.external_id, lines };
}

function buildRow(line: InvoiceLineItem, { words, language, timezone, groups }: DocumentContext): DocumentRow {
  const { computed_from: from, period_start, period_end, plan_display_name: plan } = line;
  const text = line.display_name || line.meter_display_name || plan || line.price_id || '';
  const { unit_price, steps } = explainAmount(line, { words, language });
  const taken = new Decimal(line.line_item_discount).plus(line.invoice_level_discount);
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

/** So many are told one by one: a property may have as many values as there are events. */
const GROUPS_SHOWN = 20;

function showGroups(
  groups: readonly DocumentGroup[],
  { currency }: InvoiceLineItem,
  { words, language }: { words: Translations; language: Language },
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

/** Where the customer owes the tax to the state, its invoice has to say so (docs/rules/taxes.md, "Which rates"). */
function findReverseChargeNote({ customer, invoice, taxes, words }: DocumentContext): string | null {
  const isTaxed = taxes.length > 0 || !new Decimal(invoice.total_tax).isZero();
  return customer.tax_exempt === 'reverse' && !isTaxed ? words.reverse_charge : null;
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
