/** Emits system events of entitlements, in their response shape and in the transaction of the change. */
import { toPublishedEntitlement } from '../../../core/catalog/entitlement/record.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import type { EntitlementModel } from '../../../storage/models/catalog/entitlement.ts';
import { emit } from '../../foundation/emit.ts';

type EntitlementChange = 'created' | 'updated' | 'deleted';

export async function emitEntitlementChanges(
  transaction: Transaction,
  verb: EntitlementChange,
  { entitlements, by }: { entitlements: readonly EntitlementModel[]; by: Author },
): Promise<void> {
  for (const entitlement of entitlements)
    await emit(transaction, `entitlement.${verb}`, { record: toPublishedEntitlement(entitlement), by });
}
