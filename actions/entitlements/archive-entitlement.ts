/** Archives an entitlement: what it granted is granted no more (docs/rules/entitlements.md). */
import type { Scope } from '../../core/scope.ts';
import type { Author } from '../../core/stamp.ts';
import { EntitlementModel } from '../../storage/models/entitlement.ts';
import type { Stores } from '../../storage/stores.ts';
import { emit } from '../system-events/emit.ts';

export async function archiveEntitlement(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, author }: { id: string; author: Author },
): Promise<void> {
  await stores.postgres.transaction(async (database) => {
    const by = { by: author, database };
    const archived = await EntitlementModel.changePublished(scope, { id, changes: { status: 'archived' } }, by);
    await emit(database, 'entitlement.deleted', { record: archived, by: author });
  });
}
