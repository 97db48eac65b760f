/**
 * Table of OAuth flows that have begun and not ended. They have no audit entries, because the connection that a flow
 * creates has one.
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Postgres } from '../../foundation/stores.ts';

type OAuthSession = {
  readonly id: string;
  readonly provider_type: string;
  /** Credentials and state, encrypted for this session. */
  readonly secret: string;
  readonly expires_at: Date;
  readonly created_at: Date;
  readonly created_by: string;
};

export async function storeOAuthSession(
  { postgres }: Postgres,
  { tenant_id, environment_id }: Scope,
  session: OAuthSession,
): Promise<void> {
  await postgres('oauth_sessions').insert({ ...session, tenant_id, environment_id });
}

/**
 * Reads and deletes the session with one statement, so that only one of two concurrent requests gets it. Null if there
 * is none.
 */
export async function takeOAuthSession(
  { postgres }: Postgres,
  { tenant_id, environment_id }: Scope,
  { id, provider_type, now }: { id: string; provider_type: string; now: Date },
): Promise<string | null> {
  const [session] = await postgres('oauth_sessions')
    .where({ id, tenant_id, environment_id, provider_type })
    .where('expires_at', '>', now)
    .delete(['secret']);
  return session?.secret ?? null;
}

/** Deletes the expired sessions of all environments. Returns their number. */
export async function purgeOAuthSessions({ postgres }: Postgres, now: Date): Promise<number> {
  return await postgres('oauth_sessions').where('expires_at', '<=', now).delete();
}
