/**
 * Claims on mappings: one attempt at a time sends a record to its provider. The database decides who gets a claim, and by
 * its clock when a claim expires.
 */
import type { Database } from '../foundation/stores.ts';
import type { IntegrationMappingModel } from '../models/foundation/integration-mapping.ts';

type ClaimedRow = Pick<IntegrationMappingModel, 'id' | 'tenant_id' | 'environment_id' | 'claimed_by'>;

type NewClaim = { readonly claimed_by: string; readonly lease_seconds: number };

/**
 * Takes the claim. Returns false if another attempt has it, or has had it since the mapping was read: its effect may have
 * changed the mapping.
 */
export async function takeClaim(
  database: Database,
  { id, tenant_id, environment_id, claimed_by: before }: ClaimedRow,
  { claimed_by, lease_seconds }: NewClaim,
): Promise<boolean> {
  const taken: number = await database('integration_mappings')
    .where({ id, tenant_id, environment_id })
    .whereRaw('claimed_by is not distinct from ?', [before])
    .whereRaw('(claimed_until is null or claimed_until <= clock_timestamp())')
    .update({
      claimed_by,
      claimed_until: database.raw(`clock_timestamp() + ? * interval '1 second'`, [lease_seconds]),
    });
  return taken > 0;
}

/** Releases the claim, unless it expired and another attempt has taken it. */
export async function releaseClaim(
  database: Database,
  { id, tenant_id, environment_id }: ClaimedRow,
  claimed_by: string,
): Promise<void> {
  await database('integration_mappings')
    .where({ id, tenant_id, environment_id, claimed_by })
    .update({ claimed_until: null });
}
