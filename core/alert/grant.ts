/** Whether a grant of an entitlement is exhausted (docs/rules/alerts.md, "Grants of entitlements"): the alert has one level, which nobody sets. */
import { Decimal } from '../decimal.ts';
import type { AlertSettings } from '../feature/record.ts';

export const EXHAUSTED: AlertSettings = {
  alert_enabled: true,
  critical: { threshold: '1', condition: 'above' },
  warning: null,
  info: null,
};

const RATIO_DECIMALS = 6;

/** What was drawn of the quota, as a part of it; 1 where nothing is left, and never before. */
export function usageRatio({ used, quota }: { readonly used: Decimal; readonly quota: Decimal }): Decimal {
  return used.dividedBy(quota).toDecimalPlaces(RATIO_DECIMALS, Decimal.ROUND_DOWN);
}
