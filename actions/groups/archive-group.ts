/** Archives a group, which frees its lookup key; its members have no group then. */
import { notFound } from '../../core/error.ts';
import type { Scope } from '../../core/scope.ts';
import { type Author } from '../../core/stamp.ts';
import { FeatureModel } from '../../storage/models/feature.ts';
import { GroupModel } from '../../storage/models/group.ts';
import { PriceModel } from '../../storage/models/price.ts';
import type { Stores } from '../../storage/stores.ts';

export async function archiveGroup(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  request: { id: string; author: Author },
): Promise<void> {
  const { id, author } = request;
  await stores.postgres.transaction(async (database) => {
    const group = await GroupModel.fetch(scope, id, { database, lock: true });
    if (group.status !== 'published') throw notFound('group', id);
    const members = group.entity_type === 'price' ? PriceModel.in(scope, database) : FeatureModel.in(scope, database);
    await members.where('group_id', id).patch({ group_id: null });
    await GroupModel.change(group, { status: 'archived' }, { by: author, database });
  });
}
