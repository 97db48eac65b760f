/**
 * A feature is something that a plan entitles to. docs/rules/records.md, "Features", has the rules across fields, the order of alert
 * thresholds, and how the lookup key is derived from the name.
 *
 * In the API `threshold` and `conversion_rate` are JSON numbers; the service stores decimal text. It refuses a value that a JSON number
 * does not represent exactly.
 */
import { z } from 'zod';
import { Decimal } from '../../foundation/decimal.ts';
import { invalid } from '../../foundation/error.ts';
import { toLookupKey } from '../../foundation/lookup-key.ts';
import { parseDecimal } from '../../foundation/money.ts';
import { anyCase, baseFields, decimalText, metadata, optionalKey, requiredName } from '../../foundation/record.ts';

export const FEATURE_TYPES = ['metered', 'boolean', 'static', 'config'] as const;
export const ALERT_CONDITIONS = ['above', 'below'] as const;

/** A double represents 15 significant digits exactly enough to print them again. */
const numberText = decimalText.refine((text) => (parseDecimal(text)?.precision() ?? 0) <= 15, {
  error: 'must have at most 15 significant digits',
});

const threshold = z.object({
  threshold: numberText.meta({ description: 'Threshold, a number of at most 15 significant digits.' }),
  condition: anyCase(ALERT_CONDITIONS).nullable().default(null).meta({
    description:
      'Direction in which the threshold is crossed: above or below. All thresholds must have the same direction. Default: null, the direction of the alert.',
  }),
});

export const alertSettings = z.object({
  alert_enabled: z
    .boolean()
    .nullish()
    .transform((enabled) => enabled ?? false)
    .pipe(z.boolean())
    .meta({ description: 'Enables the alert; default false. true needs at least one threshold.' }),
  critical: threshold
    .nullable()
    .default(null)
    .meta({ description: 'Critical threshold; required with a warning threshold.' }),
  warning: threshold
    .nullable()
    .default(null)
    .meta({ description: 'Warning threshold, which is reached before the critical one. Null if none.' }),
  info: threshold
    .nullable()
    .default(null)
    .meta({ description: 'Info threshold, which is reached before the warning one. Null if none.' }),
});
export type AlertSettings = z.output<typeof alertSettings>;

export const reportingUnit = z.object({
  unit_singular: requiredName.meta({ description: 'Name of one unit.' }),
  unit_plural: requiredName.meta({ description: 'Name of several units.' }),
  conversion_rate: numberText
    .refine((text) => parseDecimal(text)?.gt(0) !== false, { error: 'must be greater than 0' })
    .meta({
      description:
        'Conversion rate of the unit; greater than 0, at most 15 significant digits. It is stored and returned, and no computation uses it.',
    }),
});

export const featureShape = z.object({
  id: z.string(),
  name: requiredName.meta({ description: 'Display name of the feature.' }),
  lookup_key: z.string().meta({
    description: 'Your own key of the feature; unique among published features. Default: derived from the name.',
  }),
  description: z.string().nullable().meta({ description: 'Description for people; null if none.' }),
  type: anyCase(FEATURE_TYPES).meta({
    description: 'Type of the feature. A metered feature has a meter; the others have none.',
  }),
  meter_id: optionalKey.meta({ description: 'Meter of a metered feature; null for the other types.' }),
  metadata: metadata.unwrap(),
  unit_singular: optionalKey.meta({ description: 'Name of one unit. It requires `unit_plural`.' }),
  unit_plural: optionalKey.meta({ description: 'Name of several units. It requires `unit_singular`.' }),
  reporting_unit: reportingUnit.nullable().meta({ description: 'Another unit in which usage is shown; null if none.' }),
  alert_settings: alertSettings.nullable().meta({ description: 'Alert thresholds of the feature; null if none.' }),
  group_id: optionalKey.meta({ description: 'Group of features that the feature belongs to; null if none.' }),
  ...baseFields,
});
export type Feature = z.output<typeof featureShape>;

/** Fields that are checked against each other. */
type FeatureRules = Pick<Feature, 'unit_singular' | 'unit_plural' | 'alert_settings'>;

export function checkFeature(feature: FeatureRules): void {
  if ((feature.unit_singular === null) !== (feature.unit_plural === null)) {
    const missing = feature.unit_singular === null ? 'unit_singular' : 'unit_plural';
    throw invalid(missing, 'unit_singular and unit_plural go together: give both or none');
  }
  if (feature.alert_settings) checkAlertSettings(feature.alert_settings);
}

/**
 * Checks the meter of a feature. A metered feature needs one, named or inline; other features have none (docs/rules/records.md,
 * "Features").
 */
export function checkMeterOfFeature(feature: {
  type: Feature['type'];
  meter_id: string | null;
  has_meter: boolean;
}): void {
  const { type, meter_id, has_meter } = feature;
  if (type === 'metered' && meter_id === null && !has_meter)
    throw invalid('meter_id', 'a metered feature needs meter_id or an inline meter');
  if (meter_id !== null && has_meter) throw invalid('meter', 'give meter_id or an inline meter, not both');
  if (type !== 'metered' && (meter_id !== null || has_meter))
    throw invalid(has_meter ? 'meter' : 'meter_id', `a ${type} feature has no meter`);
}

/**
 * Checks the order of the thresholds (docs/rules/records.md, "Features"). Thresholds without a condition have no direction, so any order is
 * valid.
 */
export function checkAlertSettings(settings: AlertSettings, field = 'alert_settings'): void {
  const { critical, warning, info } = settings;
  const levels = [info, warning, critical].filter((level) => level !== null);
  if (settings.alert_enabled && levels.length === 0)
    throw invalid(field, 'needs a threshold when alert_enabled is true');
  if (warning && !critical) throw invalid(`${field}.critical`, 'is required with warning');
  if (new Set(levels.map((level) => level.condition)).size > 1)
    throw invalid(field, 'critical, warning and info must have the same condition');
  const direction = levels[0]?.condition;
  if (!direction) return;
  for (let i = 1; i < levels.length; i++) {
    const [milder, worse] = [new Decimal(levels[i - 1]!.threshold), new Decimal(levels[i]!.threshold)];
    if (direction === 'above' ? milder.gt(worse) : milder.lt(worse))
      throw invalid(field, `${direction}: thresholds must be ordered info, warning, critical`);
  }
}

/** Example: "API calls (v2)" → "api-calls-v2". */
export function deriveLookupKey(name: string): string {
  const key = toLookupKey(name);
  if (key === null) throw invalid('lookup_key', 'cannot be made from this name, give one');
  return key;
}
