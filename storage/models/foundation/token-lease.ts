/**
 * Lease of a connection's OAuth tokens: only its holder refreshes them. It ends after a minute, because the process of
 * the holder may have died (docs/decisions/0028-oauth-tokens.md). Each function is one statement, so no transaction is
 * open during the call to the provider. Times are those of the database.
 */
import type { Postgres } from '../../foundation/stores.ts';
import type { ConnectionModel } from './connection.ts';

/** Duration of the lease: longer than the request for new tokens may take. */
const LEASE = "interval '60 seconds'";

type ConnectionKey = Pick<ConnectionModel, 'id' | 'tenant_id' | 'environment_id'>;

/** Reads the sealed tokens; null if the connection was archived. */
export async function readTokens({ postgres }: Postgres, connection: ConnectionKey): Promise<string | null> {
  const row = await buildQuery({ postgres }, connection).where({ status: 'published' }).first('oauth_tokens');
  return row?.oauth_tokens ?? null;
}

/** Takes the lease. False if another process holds it, or if the tokens have changed since the caller read them. */
export async function takeTokenLease(
  { postgres }: Postgres,
  connection: ConnectionKey,
  { holder, oauth_tokens }: { holder: string; oauth_tokens: string },
): Promise<boolean> {
  const taken = await buildQuery({ postgres }, connection)
    .where({ oauth_tokens, status: 'published' })
    .whereRaw('(refreshing_until is null or refreshing_until < clock_timestamp())')
    .update({ refreshing_by: holder, refreshing_until: postgres.raw(`clock_timestamp() + ${LEASE}`) });
  return taken === 1;
}

/**
 * Stores new tokens and ends the lease. False if the lease was lost: another process has stored other tokens, or will.
 */
export async function storeTokens(
  { postgres }: Postgres,
  connection: ConnectionKey,
  { holder, oauth_tokens }: { holder: string; oauth_tokens: string },
): Promise<boolean> {
  const stored = await buildQuery({ postgres }, connection)
    .where({ refreshing_by: holder })
    .update({ oauth_tokens, refreshing_by: null, refreshing_until: null });
  return stored === 1;
}

export async function endTokenLease({ postgres }: Postgres, connection: ConnectionKey, holder: string): Promise<void> {
  await buildQuery({ postgres }, connection)
    .where({ refreshing_by: holder })
    .update({ refreshing_by: null, refreshing_until: null });
}

function buildQuery({ postgres }: Postgres, { id, tenant_id, environment_id }: ConnectionKey) {
  return postgres('connections').where({ id, tenant_id, environment_id });
}
