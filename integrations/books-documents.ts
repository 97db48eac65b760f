/** Texts, days and amounts of records that are pushed to accounting providers. An amount that a provider would round is refused. */
import { Decimal, sumDecimals } from '../core/foundation/decimal.ts';
import { minorUnits, parseDecimal } from '../core/foundation/money.ts';
import type { PushedInvoice } from './account.ts';
import { JsonNumber } from './exact-json.ts';
import { ProviderError } from './provider-error.ts';

export function checkSum(
  { lines, total, currency }: Pick<PushedInvoice, 'lines' | 'total' | 'currency'>,
  provider_name: string,
): void {
  if (lines.length === 0)
    throw new ProviderError('person', `a document without lines cannot be sent to ${provider_name}`);
  if (new Decimal(total).isNegative())
    throw new ProviderError('person', `a document over ${total} cannot be sent to ${provider_name}`);
  const sum = sumDecimals(lines.map(({ amount }) => new Decimal(amount)));
  if (!sum.equals(total))
    throw new ProviderError('person', `the lines add up to ${sum.toFixed()} ${currency}, the total is ${total}`);
}

type AmountUse = {
  readonly currency: string;
  readonly provider_name: string;
  /** Number of decimals that the provider stores, if it is lower than that of some currencies. */
  readonly decimals_max?: number;
};

/** Refuses more decimals than the currency or the provider has, because the provider would round them. */
export function toJsonAmount(
  amount: string,
  { currency, provider_name, decimals_max = Number.POSITIVE_INFINITY }: AmountUse,
): JsonNumber {
  const value = parseDecimal(amount);
  if (value === undefined) throw new ProviderError('person', `${JSON.stringify(amount)} is not an amount`);
  if (value.decimalPlaces() > Math.min(minorUnits(currency), decimals_max))
    throw new ProviderError('person', `${provider_name} cannot represent ${amount} ${currency}`);
  return new JsonNumber(amount);
}

/** Day of an instant in UTC, such as `2026-11-30`; undefined without an instant. */
export function toDay(instant: string | null | undefined): string | undefined {
  return instant ? new Date(instant).toISOString().slice(0, 'YYYY-MM-DD'.length) : undefined;
}

/** Shortens a text without splitting a character. */
export function cutText(text: string, length_max: number): string {
  return text.length <= length_max
    ? text
    : Array.from(text.slice(0, length_max))
        .join('')
        .replace(/[\uD800-\uDBFF]$/, '');
}
