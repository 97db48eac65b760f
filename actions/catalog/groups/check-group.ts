/** Checks that the group of a price or feature exists, is published and groups records of that entity type. */

import { checkMembership, type Group } from '../../../core/catalog/group/record.ts';
import { notFound } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { GroupModel } from '../../../storage/models/catalog/group.ts';

/** Checks the group of a record. A record without a group, or with an unchanged one, needs no check. */
export async function checkGroup(
  scope: Scope,
  member: { group_id: string | null | undefined; entity_type: Group['entity_type'] },
  database: Database,
): Promise<void> {
  const { group_id, entity_type } = member;
  if (!group_id) return;
  // The row is locked: an archival of the group waits and then finds this member, too.
  const [group] = await GroupModel.in(scope, database).where('id', group_id).forShare();
  if (!group) throw notFound('group', group_id);
  checkMembership(group, entity_type);
}
