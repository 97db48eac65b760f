/** Builds the answers of features, with their meters if `expand` names them. */
import type { AlertSettings } from '../../../core/catalog/feature/record.ts';
import type { FeatureModel } from '../../../storage/models/catalog/feature.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import type { Context } from '../../http/route.ts';
import { showGroupsById } from '../groups/expand.ts';

export async function showFeatures(features: readonly FeatureModel[], expand: readonly string[], context: Context) {
  const ids = expand.includes('meters') ? features.map(({ meter_id }) => meter_id) : [];
  const meters = await MeterModel.byId(context.scope, ids, context.services.postgres);
  const groups = await showGroupsById(features, context);
  return features.map((feature) => ({
    ...feature,
    reporting_unit: feature.reporting_unit && {
      ...feature.reporting_unit,
      conversion_rate: Number(feature.reporting_unit.conversion_rate),
    },
    alert_settings: feature.alert_settings && withNumbers(feature.alert_settings),
    meter: meters.get(feature.meter_id ?? '') ?? null,
    group: groups.get(feature.group_id ?? '') ?? null,
  }));
}

/** Builds the answer of a single feature, which always has its meter. */
export async function showFeature(feature: FeatureModel, context: Context) {
  const [shown] = await showFeatures([feature], ['meters'], context);
  return shown!;
}

function withNumbers(settings: AlertSettings) {
  const level = (given: AlertSettings['critical']) => given && { ...given, threshold: Number(given.threshold) };
  return {
    alert_enabled: settings.alert_enabled,
    critical: level(settings.critical),
    warning: level(settings.warning),
    info: level(settings.info),
  };
}
