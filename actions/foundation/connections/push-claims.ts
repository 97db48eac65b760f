/**
 * One attempt at a time sends a record (docs/integrations/README.md, "Sending a record"). An attempt claims the mapping
 * of the record with a lease, because no transaction is open during a call to a provider.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { SECOND_MS } from '../../../core/foundation/time/durations.ts';
import { ProviderError } from '../../../integrations/provider-error.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import { releaseClaim, takeClaim } from '../../../storage/queue/push-claims.ts';
import { CALL_MS_MAX, LateCall, REQUEST_MS_MAX } from './call-deadline.ts';

/** An attempt makes at most two calls: one that searches for the record, and one that voids it. */
const CALLS_MAX = 2;
/** No call begins a request after `CALL_MS_MAX`, so a claim never expires while its attempt runs, and needs no renewal. */
const LEASE_SECONDS = (CALLS_MAX * (CALL_MS_MAX + REQUEST_MS_MAX)) / SECOND_MS;

/** An attempt usually takes less than a second, so another one waits for its end. */
const POLLS_MAX = 50;
const POLL_MS = 100;

/** Thrown if another attempt is sending the record. */
export class BeingSent extends ProviderError {
  constructor({ entity_type, entity_id, provider_type }: IntegrationMappingModel) {
    super('wait', `${entity_type} ${entity_id} is being sent to ${provider_type} by another request or job`, {
      is_of_record: true,
    });
  }
}

/**
 * Runs one attempt with the claim on its mapping, which is read again after the claim. After a late call the claim is not released but
 * expires, because the last request may still create the record.
 */
export async function withClaim<Result>(
  { postgres }: Postgres,
  mapping: IntegrationMappingModel,
  attempt: (claimed: IntegrationMappingModel) => Promise<Result>,
): Promise<Result> {
  const claimed_by = randomUUID();
  const claimed = await claimMapping({ postgres }, mapping, claimed_by);
  let isLate = false;
  try {
    return await attempt(claimed);
  } catch (error) {
    isLate = error instanceof LateCall;
    throw error;
  } finally {
    if (!isLate) await releaseClaim(postgres, claimed, claimed_by);
  }
}

/** Returns the mapping as it was when the claim was taken; `claimed_by` names the attempt before. */
async function claimMapping(
  { postgres: database }: Postgres,
  mapping: IntegrationMappingModel,
  claimed_by: string,
): Promise<IntegrationMappingModel> {
  for (let polls = 0; ; polls++) {
    const current = await IntegrationMappingModel.fetch(mapping, mapping.id, { database });
    if (await takeClaim(database, current, { claimed_by, lease_seconds: LEASE_SECONDS })) return current;
    if (polls === POLLS_MAX) throw new BeingSent(current);
    await wait(POLL_MS);
  }
}
