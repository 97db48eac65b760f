/**
 * Lease of a connection's OAuth tokens: its holder alone refreshes them, and loses it after a minute, because its process may have died
 * (docs/decisions/0028-oauth-tokens.md). Each verb is one statement, so no transaction is open while the provider is called. The database's
 * clock decides.
 */
import type { Postgres } from '../../foundation/stores.ts';
import type { ConnectionModel } from './connection.ts';

/** Longer than the request for new tokens may take. */
const LEASE = "interval '60 seconds'";

type ConnectionKey = Pick<ConnectionModel, 'id' | 'tenant_id' | 'environment_id'>;

/** The sealed tokens as they are stored now; null of a connection that was archived. */
export async function readTokens({ postgres }: Postgres, connection: ConnectionKey): Promise<string | null> {
  const row = await buildQuery({ postgres }, connection).where({ status: 'published' }).first('oauth_tokens');
  return row?.oauth_tokens ?? null;
}

/** False if another holder has the lease, or the tokens are no longer those that the caller read. */
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

/** Stores new tokens and ends the lease. False if the holder has lost it: then other tokens are stored, or will be. */
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
