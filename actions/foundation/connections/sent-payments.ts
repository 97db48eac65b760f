/**
 * Payments that this service pushed to a provider. The provider reports them with the other payments of the invoice, so
 * they must not be recorded again.
 */
import type { Transaction } from '../../../storage/foundation/stores.ts';
import type { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import { hasCallBegun } from './mappings.ts';

type SentPayments = {
  /** Ids of the pushed payments at the provider. */
  readonly sent_ids: ReadonlySet<string>;
  /** A push of one of these payments has begun, and its answer is not known. */
  readonly is_sending: boolean;
};

export async function loadSentPayments(
  transaction: Transaction,
  connection: ConnectionModel,
  { payment_ids }: { payment_ids: readonly string[] },
): Promise<SentPayments> {
  const mappings = await IntegrationMappingModel.in(connection, transaction)
    .where({ connection_id: connection.id, entity_type: 'payment' })
    .whereNot('mapping_state', 'gone')
    .whereIn('entity_id', [...payment_ids]);
  const ids = mappings.flatMap(({ provider_entity_id }) => provider_entity_id ?? []);
  const is_sending = mappings.some((mapping) => hasCallBegun(mapping) && !hasEnded(mapping));
  return { sent_ids: new Set(ids), is_sending };
}

/**
 * Whether the push has an answer. A pending push stores its refusal in `push_error`; a push on request stores none, but
 * its refusal renews the key.
 */
function hasEnded({ mapping_state, push_error, is_key_renewed, pending_since }: IntegrationMappingModel): boolean {
  return mapping_state === 'made' || push_error !== null || (is_key_renewed && pending_since === null);
}
