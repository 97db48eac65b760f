/** Changes what is given of a published feature; `filters` replaces those of its meter, in the same transaction. */

import { invalid } from '../../core/error.ts';
import { checkFeature, type Feature } from '../../core/feature/record.ts';
import type { Filter } from '../../core/meter/record.ts';
import type { Scope } from '../../core/scope.ts';
import { type Author } from '../../core/stamp.ts';
import { FeatureModel } from '../../storage/models/feature.ts';
import type { Stores } from '../../storage/stores.ts';
import { checkGroup } from '../groups/check-group.ts';
import { changeMeterFilters } from '../meters/change-meter.ts';
import { emit } from '../system-events/emit.ts';

export type FeatureChange = {
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
    const feature = await FeatureModel.fetchPublished(scope, id, { database, lock: true });
    await checkGroup(scope, { group_id: changes.group_id, entity_type: 'feature' }, database);
    checkFeature({ ...feature, ...changes });
    if (filters) {
      if (feature.meter_id === null) throw invalid('filters', `a ${feature.type} feature has no meter to filter`);
      await changeMeterFilters({ postgres: database }, scope, { id: feature.meter_id, filters, author });
    }
    const changed = await FeatureModel.change(feature, changes, { by: author, database });
    await emit(database, 'feature.updated', { record: changed, by: author });
    return changed;
  });
}
