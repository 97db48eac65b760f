/**
 * Bonus credits on a purchase (docs/rules/wallets.md, "Bonus"). The setting lists its slabs by falling threshold; the first slab that the
 * purchase reaches applies.
 */
import { z } from 'zod';
import { Decimal } from '../../foundation/decimal.ts';
import { invalid } from '../../foundation/error.ts';
import { anyCase, buildBoundedInteger, decimalText } from '../../foundation/record.ts';
import { formatMs } from '../../foundation/time/instant.ts';
import { nextPeriodEnd, type RecurringPeriod } from '../../foundation/time/period.ts';
import { CREDIT_DECIMALS } from '../../rating/wallet/rates.ts';

const slab = z.strictObject({
  threshold: decimalText,
  operator: anyCase(['gte']).default('gte'),
  bonus: z.strictObject({ type: anyCase(['flat', 'percentage']), value: decimalText }),
  expiration_duration: z.nullable(buildBoundedInteger(1, 36_500)).default(null),
  expiration_duration_unit: z.nullable(anyCase(['DAY', 'WEEK', 'MONTH', 'YEAR'])).default(null),
});
const bonusConfig = z.strictObject({ enabled: z.boolean(), slabs: z.array(slab).max(100) });
type BonusConfig = z.output<typeof bonusConfig>;

export const bonusSetting = {
  reach: 'environment',
  shape: bonusConfig,
  default: { enabled: false, slabs: [] },
  check: checkSlabs,
} as const;

export type Bonus = { readonly credits: Decimal; readonly expiry_date: string | null };

/** Computes the bonus of a purchase; null if no slab applies or the bonus rounds to 0. */
export function computeBonus(bought: Decimal, { enabled, slabs }: BonusConfig, now: Date): Bonus | null {
  const slab = enabled ? slabs.find(({ threshold }) => bought.gte(threshold)) : undefined;
  if (!slab) return null;
  const { type, value } = slab.bonus;
  const credits = type === 'flat' ? new Decimal(value) : bought.times(value).dividedBy(100);
  const { expiration_duration: count, expiration_duration_unit: unit } = slab;
  const expiry_date = count && unit ? computeExpiryAfter(now, count, PERIODS[unit]) : null;
  const rounded = credits.toDecimalPlaces(CREDIT_DECIMALS, Decimal.ROUND_HALF_UP);
  return rounded.gt(0) ? { credits: rounded, expiry_date } : null;
}

const PERIODS = { DAY: 'DAILY', WEEK: 'WEEKLY', MONTH: 'MONTHLY', YEAR: 'ANNUAL' } as const;

function computeExpiryAfter(now: Date, billing_period_count: number, billing_period: RecurringPeriod): string {
  const at = now.getTime();
  const rule = { billing_anchor: at, billing_period, billing_period_count, timezone: 'UTC' };
  return formatMs(nextPeriodEnd({ ...rule, period_start: at }));
}

function checkSlabs({ slabs }: BonusConfig): void {
  for (const [i, { threshold, expiration_duration, expiration_duration_unit }] of slabs.entries()) {
    const field = `value.slabs[${i}]`;
    const before = slabs[i - 1];
    if (before && !new Decimal(threshold).lt(before.threshold))
      throw invalid(`${field}.threshold`, 'must be less than that before it');
    if ((expiration_duration === null) !== (expiration_duration_unit === null))
      throw invalid(`${field}.expiration_duration_unit`, 'goes together with expiration_duration');
  }
}
