/**
 * How much of a grant of an entitlement has been used, and the levels that it is compared with: one that nobody sets, at which it is exhausted, and those of its
 * entitlement (docs/rules/alerts.md, "Grants of entitlements").
 */
import { Decimal } from '../decimal.ts';
import { invalid } from '../error.ts';
import type { AlertSettings } from '../feature/record.ts';
import { requireLevelsAbove } from './record.ts';

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

/** What no part of a quota can reach, and what each does before anything is used, would never be told. */
export function checkGrantLevels(settings: AlertSettings, field: string): void {
  requireLevelsAbove(settings, field);
  for (const name of ['critical', 'warning', 'info'] as const) {
    const level = settings[name];
    if (level && !isQuotaFraction(new Decimal(level.threshold)))
      throw invalid(`${field}.${name}.threshold`, 'must be a part of the quota: above 0, and at most 1');
  }
}

function isQuotaFraction(threshold: Decimal): boolean {
  return threshold.gt(0) && threshold.lte(1);
}

type AlertSettingsSource = { readonly alert_settings: AlertSettings | null };

/** Of sources whose grants are one: those of the first that has any; null where nobody watches it. */
export function findAlertSettings(sources: readonly AlertSettingsSource[]): AlertSettings | null {
  return sources.find(({ alert_settings }) => alert_settings?.alert_enabled)?.alert_settings ?? null;
}
