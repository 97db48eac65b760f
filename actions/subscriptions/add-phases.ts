/** Stores the phases of a new subscription; the lines of a phase refer to it (core/subscriptions/phases.ts). */
import type { Scope } from '../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../core/foundation/stamp.ts';
import { formatMs } from '../../core/foundation/time/instant.ts';
import type { PlannedPhase } from '../../core/subscriptions/phases.ts';
import { newId } from '../../storage/foundation/new-id.ts';
import type { Transaction } from '../../storage/foundation/stores.ts';
import { SubscriptionPhaseModel } from '../../storage/models/subscriptions/subscription-phase.ts';
import { emit } from '../foundation/emit.ts';

export async function addPhases(
  scope: Scope,
  { phases, subscription_id, author }: { phases: readonly PlannedPhase[]; subscription_id: string; author: Author },
  transaction: Transaction,
): Promise<SubscriptionPhaseModel[]> {
  const records = phases.map(({ start, end, requested }) => ({
    ...createdBy(author),
    id: newId('subscription_phase', author.now.getTime()),
    subscription_id,
    start_date: formatMs(start),
    end_date: end === null ? null : formatMs(end),
    metadata: requested.metadata,
  }));
  const added = await SubscriptionPhaseModel.addAll(scope, records, { database: transaction });
  for (const record of added) await emit(transaction, 'subscription.phase.created', { record, by: author });
  return added;
}
