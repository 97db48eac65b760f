/** Terms of a usage-ordered grant: a quota for an interval that begins with the first usage (docs/rules/entitlements.md, "Grants"). */
import { z } from 'zod';
import { invalid } from '../../foundation/error.ts';
import { parseDecimal } from '../../foundation/money.ts';
import { anyCase, decimalText } from '../../foundation/record.ts';
import { checkGrantLevels } from '../alert/grant.ts';
import { alertSettings } from '../feature/record.ts';

export const GRANT_MEASURES = ['quantity', 'amount'] as const;
export const GRANT_DURATION_UNITS = ['hour', 'day', 'week', 'subscription_period'] as const;
export const GRANT_ALLOCATIONS = ['first_usage', 'unit_start'] as const;
export const AGGREGATION_MODES = ['additive', 'parallel'] as const;

/** Maximum digits of a quota. Sums of thousands of such quotas are exact as JSON numbers. */
const QUOTA_DIGITS_MAX = 12;
/** Maximum duration of a grant; it exceeds every billing period. */
const DURATION_MAX = 100_000;

const grantQuota = decimalText.refine(isQuota, {
  error: `must be a number above 0, of at most ${QUOTA_DIGITS_MAX} digits`,
});

export const grantShape = {
  grant_measure: anyCase(GRANT_MEASURES).nullable().meta({
    description:
      'Measure of the quota: units of the meter, or money that its usage costs. Null if the entitlement has no grants.',
  }),
  grant_quota: grantQuota.nullable().meta({
    description: 'Free usage per grant, in the unit of `grant_measure`. It is above 0 and has at most 12 digits.',
  }),
  grant_duration_value: z.int().min(1).max(DURATION_MAX).nullable().meta({
    description:
      'Number of `grant_duration_unit` that a grant lasts, 1 to 100,000. It is refused for a subscription_period.',
  }),
  grant_duration_unit: anyCase(GRANT_DURATION_UNITS).nullable().meta({
    description:
      'Unit of the duration of a grant. A grant ends with the billing period at the latest. Days and weeks end at the same local time of the subscription.',
  }),
  grant_allocation_behavior: anyCase(GRANT_ALLOCATIONS).nullable().meta({
    description:
      'Start of a grant: the usage that opens it (first_usage), or the start of its hour, day or week (unit_start). Null means first_usage.',
  }),
  aggregation_mode: anyCase(AGGREGATION_MODES).nullable().meta({
    description:
      'Combination of the grants of several entitlements: they add up (additive), or each applies independently (parallel). Null means additive.',
  }),
  alert_settings: alertSettings.nullable().meta({
    description:
      'Alert thresholds of a grant’s usage, as fractions of its quota: 0.8 is reached at 80 percent. Each is above 0 and at most 1, with the condition above. With null only exhaustion triggers an alert.',
  }),
};
type GrantRecord = z.output<z.ZodObject<typeof grantShape>>;

export const NO_GRANTS: { readonly [Field in keyof GrantRecord]: null } = {
  grant_measure: null,
  grant_quota: null,
  grant_duration_value: null,
  grant_duration_unit: null,
  grant_allocation_behavior: null,
  aggregation_mode: null,
  alert_settings: null,
};

export function hasGrants({ grant_quota }: Pick<GrantRecord, 'grant_quota'>): boolean {
  return grant_quota !== null;
}

type GrantTermsInput = GrantRecord & { readonly usage_limit: unknown; readonly usage_reset_period: unknown };

/** Throws if the terms are incomplete, because incomplete terms would have no effect. */
export function checkGrantTerms(terms: GrantTermsInput): void {
  if (!GRANT_FIELDS.some((field) => terms[field] !== null)) {
    if (terms.aggregation_mode === 'parallel')
      throw invalid('aggregation_mode', 'is parallel only with grants: grant_quota');
    if (terms.alert_settings !== null)
      throw invalid('alert_settings', 'is for an entitlement that is granted bit by bit: grant_quota');
    return;
  }
  for (const field of ['grant_quota', 'grant_measure', 'grant_duration_unit'] as const)
    if (terms[field] === null) throw invalid(field, 'is required of an entitlement that is granted bit by bit');
  for (const field of ['usage_limit', 'usage_reset_period'] as const)
    if (terms[field] !== null)
      throw invalid(
        field,
        'does not belong to an entitlement that is granted bit by bit: grant_quota and grant_duration_unit say it',
      );
  checkDuration(terms);
  if (terms.alert_settings) checkGrantLevels(terms.alert_settings, 'alert_settings');
}

const GRANT_FIELDS = [
  'grant_quota',
  'grant_measure',
  'grant_duration_value',
  'grant_duration_unit',
  'grant_allocation_behavior',
] as const;

function checkDuration({ grant_duration_unit, grant_duration_value, grant_allocation_behavior }: GrantRecord): void {
  if (grant_duration_unit !== 'subscription_period') {
    if (grant_duration_value === null)
      throw invalid('grant_duration_value', 'is required: how many of the unit a grant lasts');
    return;
  }
  if (grant_duration_value !== null)
    throw invalid('grant_duration_value', 'does not belong to a grant of the subscription period');
  if (grant_allocation_behavior !== null)
    throw invalid('grant_allocation_behavior', 'does not belong to a grant of the subscription period');
}

function isQuota(text: string): boolean {
  const quota = parseDecimal(text);
  return quota === undefined || (quota.gt(0) && quota.precision(true) <= QUOTA_DIGITS_MAX);
}
