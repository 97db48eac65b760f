/**
 * Table `idempotency_keys`: the request that holds a key, and its answer. The database decides which process gets a key.
 * Leases use the database's clock, because they guard against other processes; the retention of 48 hours uses the clock
 * of the request.
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import { HOUR_MS } from '../../../core/foundation/time/durations.ts';
import type { Database } from '../../foundation/stores.ts';

export const LEASE_SECONDS = 30;
const RETENTION_MS = 48 * HOUR_MS;

export type Claim = Scope & {
  readonly id: string;
  readonly request_hash: string;
  readonly holder: string;
  readonly now: Date;
};

/**
 * Result of a claim. With `ours` the caller handles the request and then calls `recordClaimAnswer` or `releaseKey`.
 * With any other kind it answers at once.
 */
export type ClaimVerdict =
  | { kind: 'ours' }
  | { kind: 'in_flight' }
  | { kind: 'another_request' }
  | { kind: 'answered'; http_status: number; answer: Buffer | null };

/** SQL condition of one row. The id is unique; tenant and environment are named for the tenant guard. */
const THIS = 'tenant_id = ? and environment_id = ? and id = ?';
function toClaimBindings({ tenant_id, environment_id, id }: Claim): string[] {
  return [tenant_id, environment_id, id];
}

export async function claimKey(database: Database, claim: Claim): Promise<ClaimVerdict> {
  const expires_at = new Date(claim.now.getTime() + RETENTION_MS);
  const { rows } = await database.raw(
    `insert into idempotency_keys as kept
       (id, tenant_id, environment_id, request_hash, holder, leased_until, created_at, expires_at)
     values (?, ?, ?, ?, ?, now() + ? * interval '1 second', ?, ?)
     on conflict (id) do update set
       request_hash = excluded.request_hash, holder = excluded.holder, leased_until = excluded.leased_until,
       http_status = null, answer = null, created_at = excluded.created_at, expires_at = excluded.expires_at
     where kept.tenant_id = excluded.tenant_id and kept.environment_id = excluded.environment_id
       and ((kept.http_status is not null and kept.expires_at <= excluded.created_at)
         or (kept.http_status is null and kept.leased_until <= now()
             and (kept.request_hash = excluded.request_hash or kept.expires_at <= excluded.created_at)))
     returning holder`,
    [
      claim.id,
      claim.tenant_id,
      claim.environment_id,
      claim.request_hash,
      claim.holder,
      LEASE_SECONDS,
      claim.now,
      expires_at,
    ],
  );
  return rows.length > 0 ? { kind: 'ours' } : loadClaimVerdict(database, claim);
}

async function loadClaimVerdict(database: Database, claim: Claim): Promise<ClaimVerdict> {
  const { rows } = await database.raw(
    `select request_hash, http_status, answer from idempotency_keys where ${THIS}`,
    toClaimBindings(claim),
  );
  const [row] = rows;
  // The key was released or purged between the two statements. Its holder has just failed, so the client may retry.
  if (!row) return { kind: 'in_flight' };
  if (row.request_hash !== claim.request_hash) return { kind: 'another_request' };
  if (row.http_status === null) return { kind: 'in_flight' };
  return { kind: 'answered', http_status: row.http_status, answer: row.answer };
}

/** Renews the lease of a request in progress, so that no other process takes over a long one. */
export async function renewLease(database: Database, claim: Claim): Promise<void> {
  await database.raw(
    `update idempotency_keys set leased_until = now() + ? * interval '1 second'
      where ${THIS} and holder = ? and http_status is null`,
    [LEASE_SECONDS, ...toClaimBindings(claim), claim.holder],
  );
}

export async function recordClaimAnswer(
  database: Database,
  claim: Claim,
  given: { http_status: number; answer: Buffer | null },
): Promise<void> {
  await database.raw(`update idempotency_keys set http_status = ?, answer = ? where ${THIS} and holder = ?`, [
    given.http_status,
    given.answer,
    ...toClaimBindings(claim),
    claim.holder,
  ]);
}

/**
 * Releases the key of a request that was rejected, or that failed before it had an effect. The next request with this
 * key is new, and may have another body.
 */
export async function releaseKey(database: Database, claim: Claim): Promise<void> {
  await database.raw(`delete from idempotency_keys where ${THIS} and holder = ? and http_status is null`, [
    ...toClaimBindings(claim),
    claim.holder,
  ]);
}

/**
 * Ends the lease of a request that failed and may have committed something. Only a repetition of that request may
 * continue under the key, at once.
 */
export async function endLease(database: Database, claim: Claim): Promise<void> {
  await database.raw(
    `update idempotency_keys set leased_until = now() where ${THIS} and holder = ? and http_status is null`,
    [...toClaimBindings(claim), claim.holder],
  );
}

/** Deletes answers older than 48 hours, for the scheduler. Returns the number of deleted answers. */
export async function purgeAnswers(database: Database, now: Date): Promise<number> {
  const answer = await database.raw('delete from idempotency_keys where expires_at <= ?', [now]);
  await database.raw('delete from request_effects where expires_at <= ?', [now]);
  return answer.rowCount ?? 0;
}
