/**
 * Bonus credits on a purchase (docs/rules/wallets.md, "Bonus"). The setting lists its slabs by falling threshold; the first slab that the
 * purchase reaches applies.
 */
import { Decimal } from '../decimal.ts';
import type { SettingValue } from '../setting/record.ts';
import { formatMs } from '../time/instant.ts';
import { nextPeriodEnd, type RecurringPeriod } from '../time/period.ts';
import { CREDIT_DECIMALS } from './rates.ts';

type BonusConfig = SettingValue<'bonus_credits_topup_config'>;
export type Bonus = { readonly credits: Decimal; readonly expiry_date: string | null };

/** Null if no slab applies or the bonus rounds to 0. */
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
