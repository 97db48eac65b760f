/** Updates a published feature; `filters` replaces the filters of its meter in the same transaction. */

import { checkFeature, type Feature } from '../../../core/catalog/feature/record.ts';
import { invalid } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author } from '../../../core/foundation/stamp.ts';
import type { Filter } from '../../../core/metering/meter/record.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { FeatureModel } from '../../../storage/models/catalog/feature.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { emit } from '../../foundation/emit.ts';
import { changeMeterFilters } from '../../metering/meters/change-meter.ts';
import { checkGroup } from '../groups/check-group.ts';

type FeatureChange = {
  id: string;
  changes: Partial<Feature>;
  filters?: readonly Filter[] | null | undefined;
  author: Author;
};

export async function changeFeature(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  change: FeatureChange,
): Promise<FeatureModel> {
  return stores.postgres.transaction(async (database) => {
    const { id, changes, filters, author } = change;
    const feature = await FeatureModel.fetchChangeable(scope, id, database);
    await checkGroup(scope, { group_id: changes.group_id, entity_type: 'feature' }, database);
    checkFeature({ ...feature, ...changes });
    const isFiltered = filters ? await filterMeter(feature, { filters, author }, database) : false;
    const changed = await FeatureModel.change(feature, changes, { by: author, database });
    if (changed !== feature || isFiltered) await emit(database, 'feature.updated', { record: changed, by: author });
    return changed;
  });
}

/** Returns whether the meter's version changed. */
async function filterMeter(
  feature: FeatureModel,
  { filters, author }: { filters: readonly Filter[]; author: Author },
  database: Database,
): Promise<boolean> {
  const { meter_id: id, type } = feature;
  if (id === null) throw invalid('filters', `a ${type} feature has no meter to filter`);
  const before = await MeterModel.fetch(feature, id, { database, lock: true });
  const after = await changeMeterFilters({ postgres: database }, feature, { id, filters, author });
  return after.version !== before.version;
}
