/**
 * Computes the amount to be paid from the lines of an invoice (docs/rules/invoices.md, "Totals"): a list of steps, each of which starts
 * with the amount that the previous ones left. Input amounts are rounded already (docs/rules/numbers.md, "Each line first, then the sum").
 */
import { Decimal, sumDecimals, ZERO } from '../foundation/decimal.ts';
import { FarthingError } from '../foundation/error.ts';
import { minorUnits } from '../foundation/money.ts';

/** Invoice amounts, in the order in which they are computed. */
export type Totals = {
  readonly subtotal: Decimal;
  readonly total_discount: Decimal;
  readonly total_prepaid_credits_applied: Decimal;
  readonly total_tax: Decimal;
  readonly total: Decimal;
  readonly adjustment_amount: Decimal;
  readonly amount_due: Decimal;
  /** Paid amount, including the credits that paid after taxes. */
  readonly amount_paid: Decimal;
  readonly total_credits_applied_after_tax: Decimal;
  readonly amount_remaining: Decimal;
};

type AdjustmentField =
  | 'total_discount'
  | 'total_prepaid_credits_applied'
  | 'total_tax'
  | 'adjustment_amount'
  | 'amount_paid'
  | 'total_credits_applied_after_tax';

/** Functions that compute the amount of each adjustment from the amount that remains at its step. An absent adjustment is 0. */
export type Adjustments = { readonly [Field in AdjustmentField]?: (remaining: Decimal) => Decimal };

type TotalsInput = {
  readonly line_amounts: readonly Decimal[];
  readonly currency: string;
  readonly adjustments: Adjustments;
};
type RunningTotals = Totals & { readonly remaining: Decimal };
type Step = (running: RunningTotals, input: TotalsInput) => RunningTotals;

/**
 * Order of the steps. Prepaid credits precede taxes: the taxable amount is the rest after discounts and credits. Credits that include tax
 * pay the rest last. A new kind of adjustment is a field of `Totals` and a line here.
 */
const STEPS: readonly Step[] = [
  addLines,
  takeOff('total_discount'),
  takeOff('total_prepaid_credits_applied'),
  putOn('total_tax'),
  neverBelowZero,
  note('total'),
  takeOff('adjustment_amount'),
  note('amount_due'),
  takeOff('amount_paid'),
  neverBelowZero,
  takeOff('total_credits_applied_after_tax'),
  countAsPaid,
  note('amount_remaining'),
];

export function computeTotals(
  line_amounts: readonly Decimal[],
  currency: string,
  adjustments: Adjustments = {},
): Totals {
  const input = { line_amounts, currency, adjustments };
  const { remaining: _nothing, ...totals } = STEPS.reduce((running, step) => step(running, input), NOTHING);
  return totals;
}

export function totalsText(totals: Totals): Record<keyof Totals, string> {
  const fields = Object.keys(NOTHING).filter((field) => field !== 'remaining') as (keyof Totals)[];
  return Object.fromEntries(fields.map((field) => [field, totals[field].toFixed()])) as Record<keyof Totals, string>;
}

const NOTHING: RunningTotals = {
  subtotal: ZERO,
  total_discount: ZERO,
  total_prepaid_credits_applied: ZERO,
  total_tax: ZERO,
  total: ZERO,
  adjustment_amount: ZERO,
  amount_due: ZERO,
  amount_paid: ZERO,
  total_credits_applied_after_tax: ZERO,
  amount_remaining: ZERO,
  remaining: ZERO,
};

function addLines(running: RunningTotals, { line_amounts, currency }: TotalsInput): RunningTotals {
  for (const amount of line_amounts) checkRounded('a line', amount, currency);
  const subtotal = sumDecimals(line_amounts);
  return { ...running, subtotal, remaining: subtotal };
}

function takeOff(field: AdjustmentField): Step {
  return (running, input) => {
    const amount = computeAdjustment(field, running, input);
    return { ...running, [field]: amount, remaining: running.remaining.minus(amount) };
  };
}

function putOn(field: AdjustmentField): Step {
  return (running, input) => {
    const amount = computeAdjustment(field, running, input);
    return { ...running, [field]: amount, remaining: running.remaining.plus(amount) };
  };
}

/** Adds the credits that pay after taxes to the paid amount, because they lower the remaining amount like a payment. */
function countAsPaid(running: RunningTotals): RunningTotals {
  return { ...running, amount_paid: running.amount_paid.plus(running.total_credits_applied_after_tax) };
}

function neverBelowZero(running: RunningTotals): RunningTotals {
  return { ...running, remaining: Decimal.max(ZERO, running.remaining) };
}

/** Returns a step that stores the amount remaining at that point in the named field. */
function note(field: 'total' | 'amount_due' | 'amount_remaining'): Step {
  return (running) => ({ ...running, [field]: running.remaining });
}

function computeAdjustment(
  field: AdjustmentField,
  { remaining }: RunningTotals,
  { adjustments, currency }: TotalsInput,
): Decimal {
  const amount = adjustments[field]?.(remaining) ?? ZERO;
  checkRounded(field, amount, currency);
  return amount;
}

function checkRounded(what: string, amount: Decimal, currency: string): void {
  if (amount.decimalPlaces() > minorUnits(currency))
    throw new FarthingError(
      'system_error',
      `${what} of ${amount.toFixed()} ${currency} was not rounded before it was summed`,
    );
}
