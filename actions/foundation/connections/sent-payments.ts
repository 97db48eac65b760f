/** Payments of this service that a provider was sent. It reports them with the other payments of the invoice. */
import type { Transaction } from '../../../storage/foundation/stores.ts';
import type { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import { hasCallBegun } from './mappings.ts';

type SentPayments = {
  /** Ids at the provider. */
  readonly sent_ids: ReadonlySet<string>;
  /** Ids of completed pushes, by payment. A payment that was linked by hand may be known there by another id. */
  readonly pushed_ids: ReadonlyMap<string, string>;
  /** A call has begun whose answer is not known. */
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
  const pushed = mappings.filter(({ mapping_state, key_created_at }) => mapping_state === 'made' && key_created_at);
  const pushed_ids = new Map(pushed.map(({ entity_id, provider_entity_id }) => [entity_id, provider_entity_id!]));
  const is_sending = mappings.some((mapping) => hasCallBegun(mapping) && !hasEnded(mapping));
  return { sent_ids: new Set(ids), pushed_ids, is_sending };
}

/** A refused push waits for a person. A request leaves no `push_error`: its refusal renews the key of a mapping that is not pending. */
function hasEnded({ mapping_state, push_error, is_key_renewed, pending_since }: IntegrationMappingModel): boolean {
  return mapping_state === 'made' || push_error !== null || (is_key_renewed && pending_since === null);
}
