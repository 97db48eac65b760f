/** Creates a feature. If the request also defines a meter, both are created in one transaction. */

import {
  checkFeature,
  checkMeterOfFeature,
  deriveLookupKey,
  type Feature,
} from '../../../core/catalog/feature/record.ts';
import { prefixField } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { type MeterInput, refuseUnclearNames } from '../../../core/metering/meter/record.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { FeatureModel } from '../../../storage/models/catalog/feature.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { emit } from '../../foundation/emit.ts';
import { addMeter } from '../../metering/meters/create-meter.ts';
import { checkGroup } from '../groups/check-group.ts';

type OptionalFeatureFields = Pick<
  Feature,
  | 'description'
  | 'metadata'
  | 'meter_id'
  | 'unit_singular'
  | 'unit_plural'
  | 'reporting_unit'
  | 'alert_settings'
  | 'group_id'
>;

type NewFeature = Pick<Feature, 'name' | 'type'> &
  Partial<OptionalFeatureFields> & {
    /** Lookup key; derived from the name if absent. */
    lookup_key: string | null;
    meter?: MeterInput | null | undefined;
  };

export async function createFeature(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  given: { feature: NewFeature; author: Author },
): Promise<FeatureModel> {
  const { author } = given;
  const { meter, ...input } = given.feature;
  const feature = {
    ...input,
    lookup_key: input.lookup_key ?? deriveLookupKey(input.name),
    meter_id: input.meter_id ?? null,
    unit_singular: input.unit_singular ?? null,
    unit_plural: input.unit_plural ?? null,
    alert_settings: input.alert_settings ?? null,
  };
  checkMeterOfFeature({ type: feature.type, meter_id: feature.meter_id, has_meter: Boolean(meter) });
  checkFeature(feature);

  return stores.postgres.transaction(async (database) => {
    await checkGroup(scope, { group_id: feature.group_id, entity_type: 'feature' }, database);
    const meter_id = meter
      ? (await addInlineMeter(database, scope, { definition: meter, author })).id
      : await checkPublishedMeter(feature.meter_id, scope, database);
    const record = { id: newId('feature', author.now.getTime()), ...feature, meter_id, ...createdBy(author) };
    const conflict = formatFeatureKeyConflict(feature.lookup_key);
    const added = await FeatureModel.add(scope, record, { database, conflict });
    await emit(database, 'feature.created', { record: added, by: author });
    return added;
  });
}

export const formatFeatureKeyConflict = (lookup_key: string) =>
  `a feature with lookup_key ${lookup_key} exists already`;

/** Adds the meter of the request. An error of the meter names its field in the request: `meter.aggregation.field`. */
async function addInlineMeter(database: Database, scope: Scope, given: { definition: MeterInput; author: Author }) {
  try {
    refuseUnclearNames(given.definition.aggregation);
    return await addMeter(database, scope, given);
  } catch (error) {
    throw prefixField(error, 'meter');
  }
}

async function checkPublishedMeter(meter_id: string | null, scope: Scope, database: Database): Promise<string | null> {
  if (meter_id === null) return null;
  await MeterModel.fetchPublished(scope, meter_id, { database });
  return meter_id;
}
