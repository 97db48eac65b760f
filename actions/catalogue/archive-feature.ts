/** Archives a feature, which gives its lookup key back (docs/rules/records.md, "Archiving"). Its meter goes on counting. */
import type { Scope } from '../../core/scope.ts';
import type { Author } from '../../core/stamp.ts';
import { FeatureModel } from '../../storage/models/feature.ts';
import type { Stores } from '../../storage/stores.ts';
import { emit } from '../system-events/emit.ts';

export async function archiveFeature(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, author }: { id: string; author: Author },
): Promise<void> {
  await stores.postgres.transaction(async (database) => {
    const by = { by: author, database };
    const archived = await FeatureModel.changePublished(scope, { id, changes: { status: 'archived' } }, by);
    await emit(database, 'feature.deleted', { record: archived, by: author });
  });
}
