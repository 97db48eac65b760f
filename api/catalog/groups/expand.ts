/** Builds the answers of groups, with the ids of their members. */
import { indexById } from '../../../core/foundation/by-id.ts';
import { FeatureModel } from '../../../storage/models/catalog/feature.ts';
import { GroupModel } from '../../../storage/models/catalog/group.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import type { Context } from '../../http/route.ts';

export async function showGroups(groups: readonly GroupModel[], context: Context) {
  const { scope, services } = context;
  const ids = groups.map(({ id }) => id);
  const ofThese = [
    ['status', 'published'],
    ['group_id', 'in', ids],
  ] as const;
  const prices = await narrow(PriceModel.in(scope, services.postgres), ofThese).select('id', 'group_id').orderBy('id');
  const features = await narrow(FeatureModel.in(scope, services.postgres), ofThese)
    .select('id', 'group_id')
    .orderBy('id');
  const members: GroupMember[] = [...prices, ...features];
  const byGroup = new Map(ids.map((id) => [id, [] as string[]]));
  for (const { id, group_id } of members) byGroup.get(group_id!)?.push(id);
  return groups.map((group) => ({ ...group, entity_ids: byGroup.get(group.id) }));
}

export async function showGroup(group: GroupModel, context: Context) {
  const [shown] = await showGroups([group], context);
  return shown!;
}

/** Returns the groups of prices or features, by id, for the answers of these members. */
export async function showGroupsById(members: readonly { group_id: string | null }[], context: Context) {
  const ids = members.map(({ group_id }) => group_id);
  const groups = await GroupModel.byId(context.scope, ids, context.services.postgres);
  return groups.size === 0 ? new Map() : indexById(await showGroups([...groups.values()], context));
}

type GroupMember = { readonly id: string; readonly group_id: string | null };
