/**
 * A feature: what a plan entitles to. Which fields go together, the order of alert thresholds, and how a lookup key is made
 * from the name: docs/rules/records.md, "Features".
 *
 * On the wire `threshold` and `conversion_rate` are JSON numbers; we keep them as decimal text, and refuse what a JSON
 * number could not say exactly.
 */
import { z } from 'zod';
import { Decimal } from '../decimal.ts';
import { invalid } from '../error.ts';
import { toLookupKey } from '../lookup-key.ts';
import { parseDecimal } from '../money.ts';
import { anyCase, baseFields, decimalText, metadata, optionalKey, requiredName } from '../record.ts';

export const FEATURE_TYPES = ['metered', 'boolean', 'static', 'config'] as const;
export const ALERT_CONDITIONS = ['above', 'below'] as const;

/** A double holds any 15 significant digits exactly enough to print them again. */
const numberText = decimalText.refine((text) => (parseDecimal(text)?.precision() ?? 0) <= 15, {
  error: 'must have at most 15 significant digits',
});

const threshold = z.object({
  threshold: numberText.meta({ description: 'A number of at most 15 digits.' }),
  condition: anyCase(ALERT_CONDITIONS)
    .nullable()
    .default(null)
    .meta({ description: 'The same of all thresholds: above or below.' }),
});

export const alertSettings = z.object({
  alert_enabled: z
    .boolean()
    .nullish()
    .transform((enabled) => enabled ?? false)
    .pipe(z.boolean())
    .meta({ description: 'Needs at least one threshold.' }),
  critical: threshold.nullable().default(null).meta({ description: 'Where it is critical; a warning needs one.' }),
  warning: threshold.nullable().default(null).meta({ description: 'Passed before the critical one.' }),
  info: threshold.nullable().default(null).meta({ description: 'Passed before the warning.' }),
});
export type AlertSettings = z.output<typeof alertSettings>;

export const reportingUnit = z.object({
  unit_singular: requiredName.meta({ description: 'What one of it is called.' }),
  unit_plural: requiredName.meta({ description: 'What several of it are called.' }),
  conversion_rate: numberText
    .refine((text) => parseDecimal(text)?.gt(0) !== false, { error: 'must be greater than 0' })
    .meta({ description: 'Greater than 0; kept and answered, and nothing here is computed with it.' }),
});

export const featureShape = z.object({
  id: z.string(),
  name: requiredName.meta({ description: 'What people call it.' }),
  lookup_key: z
    .string()
    .meta({ description: 'A name of your own, of one published feature; made from its name when absent.' }),
  description: z.string().nullable().meta({ description: 'For people.' }),
  type: anyCase(FEATURE_TYPES).meta({ description: 'metered has a meter; the others have none.' }),
  meter_id: optionalKey.meta({ description: 'The meter of a metered feature.' }),
  metadata: metadata.unwrap(),
  unit_singular: optionalKey.meta({ description: 'What one unit is called; with `unit_plural`, or neither.' }),
  unit_plural: optionalKey.meta({ description: 'What several units are called.' }),
  reporting_unit: reportingUnit.nullable().meta({ description: 'Another unit in which usage is shown.' }),
  alert_settings: alertSettings.nullable().meta({ description: 'Thresholds for alerts.' }),
  group_id: optionalKey.meta({ description: 'A group of features that it belongs to.' }),
  ...baseFields,
});
export type Feature = z.output<typeof featureShape>;

/** The fields whose rules concern more than one of them. */
export type FeatureRules = Pick<Feature, 'unit_singular' | 'unit_plural' | 'alert_settings'>;

export function checkFeature(feature: FeatureRules): void {
  if ((feature.unit_singular === null) !== (feature.unit_plural === null)) {
    const missing = feature.unit_singular === null ? 'unit_singular' : 'unit_plural';
    throw invalid(missing, 'unit_singular and unit_plural go together: give both or none');
  }
  if (feature.alert_settings) checkAlertSettings(feature.alert_settings);
}

/** A metered feature needs a meter, named or inline; others have none (docs/rules/records.md, "Features"). */
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
 * How thresholds must be ordered (docs/rules/records.md, "Features"). Those without a condition have no direction to be
 * ordered in.
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

/** "API calls (v2)" → "api-calls-v2". */
export function deriveLookupKey(name: string): string {
  const key = toLookupKey(name);
  if (key === null) throw invalid('lookup_key', 'cannot be made from this name, give one');
  return key;
}
