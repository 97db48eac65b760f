/** Copies a feature under a new name and lookup key; the copy counts with the same meter. */

import type { Feature } from '../../../core/catalog/feature/record.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { FeatureModel } from '../../../storage/models/catalog/feature.ts';
import { emit } from '../../foundation/emit.ts';
import { formatFeatureKeyConflict } from './create-feature.ts';

type FeatureClone = {
  id: string;
  fields: Pick<Feature, 'name' | 'lookup_key'> & Partial<Pick<Feature, 'description' | 'metadata'>>;
  author: Author;
};

export async function cloneFeature(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, fields, author }: FeatureClone,
): Promise<FeatureModel> {
  return stores.postgres.transaction(async (database) => {
    const source = await FeatureModel.fetchPublished(scope, id, { database });
    const record = {
      ...source,
      description: fields.description ?? source.description,
      metadata: fields.metadata ?? source.metadata,
      name: fields.name,
      lookup_key: fields.lookup_key,
      id: newId('feature', author.now.getTime()),
      ...createdBy(author),
    };
    const conflict = formatFeatureKeyConflict(fields.lookup_key);
    const clone = await FeatureModel.add(scope, record, { database, conflict });
    await emit(database, 'feature.created', { record: clone, by: author });
    return clone;
  });
}
