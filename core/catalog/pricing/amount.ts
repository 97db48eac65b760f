/**
 * The amount of a price: required by the models that charge by it, and never negative
 * (docs/rules/pricing.md, "What a price must state").
 */
import { Decimal, type DecimalInput, ZERO } from '../../foundation/decimal.ts';
import { invalid } from '../../foundation/error.ts';
import type { ModelTerms } from './terms.ts';

export function requireAmount({ amount }: ModelTerms, billing_model: string): DecimalInput {
  if (amount === null || amount === undefined) throw invalid('amount', `is required for ${billing_model}`);
  return amount;
}

export function checkAmount({ amount }: ModelTerms): void {
  checkNotNegative('amount', amount ?? ZERO);
}

export function checkNotNegative(field: string, amount: DecimalInput): void {
  if (new Decimal(amount).isNegative()) throw invalid(field, 'must not be negative');
}

/** Formats an amount without an exponent, even if it is very small. */
export function amountText(amount: DecimalInput | null | undefined): string {
  return new Decimal(amount ?? ZERO).toFixed();
}
