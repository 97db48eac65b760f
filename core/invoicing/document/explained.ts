/**
 * Explains the amount of a line on its document (docs/rules/documents.md, "How an amount came about"). It shows a unit
 * price if the quantity × the unit price is the amount, else each step. Steps that do not add up to the amount are not
 * shown.
 */

import { Decimal, sumDecimals, ZERO } from '../../foundation/decimal.ts';
import { roundMoney } from '../../foundation/money.ts';
import { DAY_MS, HOUR_MS } from '../../foundation/time/durations.ts';
import type { ComputedFrom } from '../../rating/computed-from.ts';
import { type ProrationShare, roundedShare } from '../../rating/proration.ts';
import type { InvoiceLineItem } from '../invoice/record.ts';
import { type DocumentLanguage, showAmount, showNumber } from './language.ts';
import type { Translations } from './translations.ts';

/** One tier or one package step of `computed_from.breakdown` (docs/rules/invoices.md, "What a line was computed from"). */
type PriceStep = {
  readonly units: string;
  readonly unit_amount: string;
  readonly flat_amount: string;
  readonly amount?: string;
};
type TextContext = { readonly words: Translations; readonly language: DocumentLanguage };
type ExplainedLine = Pick<InvoiceLineItem, 'quantity' | 'amount' | 'currency' | 'computed_from'>;

/** Explains an amount. `unit_price` is empty if no unit price explains it. */
export function explainAmount(line: ExplainedLine, context: TextContext): { unit_price: string; steps: string[] } {
  const { computed_from: from } = line;
  const none = { unit_price: '', steps: [] };
  // The steps of a line that was edited by hand add up to another amount.
  if (!from || from.edited) return { ...none, unit_price: formatOwnPrice(line, context) };
  const parts = toPriceSteps(from);
  const unit = findUnitPrice(parts, from);
  const sum = sumDecimals(parts.map(computeStepAmount));
  const share = toProratedShare(from);
  if (unit && isAmount(unit.times(line.quantity), line, share))
    return { unit_price: showAmount(unit, line.currency, context.language), steps: formatShare(share, context) };
  const steps = [
    ...parts.map((part) => formatStep(part, line, context)),
    ...formatShare(share, context),
    ...formatInvoicedBefore(from, line, context),
  ];
  if (parts.length > 0 && isAmount(sum, line, share)) return { unit_price: '', steps };
  if (!from.base_amount) return none;
  const base = `${context.words.before_commitment}: ${showAmount(roundMoney(new Decimal(from.base_amount), line.currency), line.currency, context.language)}`;
  return { unit_price: '', steps: sum.eq(from.base_amount) ? [...steps, base] : [base] };
}

/** Unit price of a line written by hand; empty if it has too many digits, because then it does not explain the amount. */
function formatOwnPrice({ quantity, amount, currency }: ExplainedLine, { language }: TextContext): string {
  const unit = new Decimal(quantity).isZero() ? null : new Decimal(amount).dividedBy(quantity);
  return unit === null || unit.decimalPlaces() > DECIMALS_MAX ? '' : showAmount(unit, currency, language);
}

/** Maximum number of decimals of a derived unit price. */
const DECIMALS_MAX = 8;

function toPriceSteps(from: ComputedFrom): PriceStep[] {
  return (from.breakdown ?? []) as unknown as PriceStep[];
}

/** Price of a unit, if it is equal for all units. */
function findUnitPrice(parts: readonly PriceStep[], from: ComputedFrom): Decimal | null {
  const [part] = parts;
  // The amount is the price of a package, not of a unit.
  if (findPackageSize(from) !== null) return null;
  if (part) return parts.length === 1 && computeFixedPart(part).isZero() ? new Decimal(part.unit_amount) : null;
  const { billing_model, amount } = from.price ?? {};
  return billing_model === 'FLAT_FEE' && typeof amount === 'string' ? new Decimal(amount) : null;
}

function computeStepAmount({ amount, units, unit_amount, flat_amount }: PriceStep): Decimal {
  return amount === undefined ? new Decimal(units).times(unit_amount).plus(flat_amount) : new Decimal(amount);
}

/** Part of the step's amount that does not depend on the units, such as the flat fee of a tier. */
function computeFixedPart(part: PriceStep): Decimal {
  return computeStepAmount(part).minus(new Decimal(part.units).times(part.unit_amount));
}

/** Derives the printed share of the period; null for the whole period. */
function toProratedShare({ share }: ComputedFrom): ProrationShare | null {
  if (!share || share.part_ms === share.whole_ms) return null;
  const { part_ms, whole_ms, before_ms } = share;
  return { part_ms, whole_ms, ...(before_ms ? { before_ms } : {}) };
}

/** Whether the prorated charge equals the amount of the line. Ignores signs, because a credit line has the negative amount. */
function isAmount(
  charge: Decimal,
  { amount, currency, computed_from: from }: ExplainedLine,
  share: ProrationShare | null,
): boolean {
  const whole = share ? roundedShare(charge, share, currency) : roundMoney(charge, currency);
  return whole
    .minus(from ? computeInvoicedBefore(from) : ZERO)
    .abs()
    .eq(new Decimal(amount).abs());
}

function computeInvoicedBefore({ less, billed_before }: ComputedFrom): Decimal {
  return new Decimal(less?.amount ?? billed_before?.amount ?? 0);
}

function formatStep(
  part: PriceStep,
  { currency, computed_from: from }: ExplainedLine,
  { words, language }: TextContext,
): string {
  const amount = (text: Decimal | string) => showAmount(text, currency, language);
  const fixed = computeFixedPart(part);
  const once = fixed.isZero() ? '' : ` + ${amount(fixed)}`;
  const of = findPackageSize(from);
  const units = showNumber(part.units, language);
  return of === null
    ? `${units} ${words.units} × ${amount(part.unit_amount)}${once}`
    : `${words.packages} ${showNumber(of, language)}: ${units} × ${amount(part.unit_amount)}${once}`;
}

/** Units per package; null for any other billing model. */
function findPackageSize(from: ComputedFrom | null | undefined): string | null {
  const { billing_model, transform_quantity } = from?.price ?? {};
  if (billing_model !== 'PACKAGE') return null;
  return String((transform_quantity as { divide_by: number | string }).divide_by);
}

/** Formats a share in days, or in hours or seconds if it is not a number of whole days. */
function formatShare(share: ProrationShare | null, { words, language }: TextContext): string[] {
  if (!share) return [];
  const units: [number, string][] = [
    [DAY_MS, words.days],
    [HOUR_MS, 'h'],
    [1000, 's'],
  ];
  const isWhole = ([ms]: [number, string]) => share.part_ms % ms === 0 && share.whole_ms % ms === 0;
  const [ms, word] = units.find(isWhole) ?? units.at(-1)!;
  const count = (time: number) => showNumber(new Decimal(time).dividedBy(ms), language);
  return [`× ${count(share.part_ms)} ${words.of} ${count(share.whole_ms)} ${word}`];
}

function formatInvoicedBefore(
  from: ComputedFrom,
  { currency }: ExplainedLine,
  { words, language }: TextContext,
): string[] {
  const less = computeInvoicedBefore(from);
  return less.isZero() ? [] : [`${words.invoiced_before}: ${showAmount(less.negated(), currency, language)}`];
}
