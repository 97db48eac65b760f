import type { Scope } from '../../../core/foundation/scope.ts';
import { type IntegrationMapping, integrationMappingShape } from '../../../core/platform/integration/mapping.ts';
import type { SentInvoice } from '../../../core/platform/integration/pushed-lines.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from './model.ts';

export interface IntegrationMappingModel extends IntegrationMapping {}

type MappedEntityKey = Pick<IntegrationMapping, 'connection_id' | 'entity_type' | 'entity_id'>;

export class IntegrationMappingModel extends ScopedModel {
  static override tableName = 'integration_mappings';
  static override recordName = 'integration mapping';
  static override record = integrationMappingShape;
  /** Idempotency key of the call that creates the provider's record; null for a mapping that was linked by hand. */
  declare idempotency_key: string | null;
  /** Instant before the first call, by the clock of the database. */
  declare key_created_at: string | null;
  /** Instant of the next pull of the provider's record; null if it is not pulled. */
  declare next_pull_at: string | null;
  /** Whether the key replaces an earlier one that the provider refused. */
  declare is_key_renewed: boolean;
  /** Instant at which the record became due to be pushed; null if the provider has its current state. */
  declare pending_since: string | null;
  /** Attempt that sends the record now, or sent it last; null before the first one. */
  declare claimed_by: string | null;
  /** Instant at which the claim of a running attempt expires; null if none runs. */
  declare claimed_until: string | null;
  /** Amounts of an invoice at its first push; null for other records and for mappings that were linked by hand. */
  declare sent_invoice: SentInvoice | null;

  /** Finds the current mapping of a record; unlinked mappings have the state `gone`. */
  static async findCurrent(
    scope: Scope,
    { connection_id, entity_type, entity_id }: MappedEntityKey,
    { database, lock = false }: { database: Database; lock?: boolean },
  ): Promise<IntegrationMappingModel | undefined> {
    const query = IntegrationMappingModel.in(scope, database)
      .where({ connection_id, entity_type, entity_id })
      .whereNot('mapping_state', 'gone');
    const [found] = await (lock ? query.forUpdate() : query);
    return found;
  }
}
