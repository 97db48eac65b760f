/**
 * Payments that this service pushed to a provider. The provider reports them with the other payments of the invoice, so
 * they must not be recorded again.
 */
import type { Transaction } from '../../../storage/foundation/stores.ts';
import type { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import { findBeingSent } from './mappings.ts';

type SentPayments = {
  /** Ids of the pushed payments at the provider. */
  readonly sent_ids: ReadonlySet<string>;
  /** Ids of completed pushes, by payment. A payment that was linked by hand may have another id at the provider. */
  readonly pushed_ids: ReadonlyMap<string, string>;
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
  const pushed = mappings.filter(({ mapping_state, key_created_at }) => mapping_state === 'made' && key_created_at);
  const pushed_ids = new Map(pushed.map(({ entity_id, provider_entity_id }) => [entity_id, provider_entity_id!]));
  const [sending] = await findBeingSent(transaction, connection)
    .where({ entity_type: 'payment' })
    .whereIn('entity_id', [...payment_ids])
    .limit(1);
  return { sent_ids: new Set(ids), pushed_ids, is_sending: sending !== undefined };
}
