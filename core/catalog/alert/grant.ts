/**
 * Usage ratio of an entitlement grant and the levels that it is compared with (docs/rules/alerts.md, "Grants of entitlements"). One level
 * is built in: the grant is exhausted. The others are set on the entitlement.
 */
import { Decimal } from '../../foundation/decimal.ts';
import { invalid } from '../../foundation/error.ts';
import type { AlertSettings } from '../feature/record.ts';
import { requireLevelsAbove } from './record.ts';

export const EXHAUSTED: AlertSettings = {
  alert_enabled: true,
  critical: { threshold: '1', condition: 'above' },
  warning: null,
  info: null,
};

const RATIO_DECIMALS = 6;

/** Used part of the quota, rounded down, so it is 1 only if nothing is left. */
export function usageRatio({ used, quota }: { readonly used: Decimal; readonly quota: Decimal }): Decimal {
  return used.dividedBy(quota).toDecimalPlaces(RATIO_DECIMALS, Decimal.ROUND_DOWN);
}

/** Throws if a threshold is above 1, which is never reached, or 0, which is reached before any use. Neither would cause an alert. */
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

/**
 * Returns the settings of the first source with enabled alerts, for sources that share one grant. Returns null if no source has enabled
 * alerts.
 */
export function findAlertSettings(sources: readonly AlertSettingsSource[]): AlertSettings | null {
  return sources.find(({ alert_settings }) => alert_settings?.alert_enabled)?.alert_settings ?? null;
}
