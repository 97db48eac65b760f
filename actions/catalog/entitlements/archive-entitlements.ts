/** Archives one entitlement, or all of an archived plan or add-on. */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { EntitlementModel } from '../../../storage/models/catalog/entitlement.ts';
import { emitEntitlementChanges } from './emit-entitlement.ts';

export async function archiveEntitlement(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, author }: { id: string; author: Author },
): Promise<void> {
  await stores.postgres.transaction(async (database) => {
    const change = { id, changes: { status: 'archived' as const } };
    const archived = await EntitlementModel.changePublished(scope, change, { by: author, database });
    await emitEntitlementChanges(database, 'deleted', { entitlements: [archived], by: author });
  });
}

/** The caller has locked the plan or add-on, so that no entitlement is added meanwhile. */
export async function archiveEntityEntitlements(
  scope: Scope,
  entity_id: string,
  { by, database }: { by: Author; database: Transaction },
): Promise<void> {
  const records = await EntitlementModel.buildPublishedQuery(scope, [entity_id], database).forUpdate();
  if (records.length === 0) return;
  const archived = await EntitlementModel.changeAll(
    scope,
    { records, changes: { status: 'archived' } },
    { by, database },
  );
  await emitEntitlementChanges(database, 'deleted', { entitlements: archived, by });
}
