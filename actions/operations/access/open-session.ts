/**
 * Opens a browser session: by email and password, by a sign-up, or by the one-time link of `npm start`. Each sign-in makes a new token, so
 * a token that somebody else placed in the browser is never signed in.
 */
import { deriveLinkExpiry, deriveSessionExpiry } from '../../../core/foundation/access/session.ts';
import { FarthingError } from '../../../core/foundation/error.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import { hashSessionToken, makeSessionToken } from '../../../storage/foundation/secrets/session-token.ts';
import type { Database, Postgres } from '../../../storage/foundation/stores.ts';
import { UserModel } from '../../../storage/models/foundation/user.ts';
import { replaceConsoleLink, takeConsoleLink } from '../../../storage/models/operations/console-link.ts';
import { deleteSessionByToken, insertSession, type SessionRow } from '../../../storage/models/operations/session.ts';
import { lockPassword } from '../../../storage/models/operations/user-password.ts';
import { refuseSignIn, verifyPassword } from './sign-in.ts';

type TenantUser = { readonly tenant_id: string; readonly user_id: string };

/** The browser that signs in. */
type BrowserSignIn = {
  readonly user_agent: string | undefined;
  /** Token that the browser has from before: its session ends. */
  readonly previous_token: string | undefined;
  readonly now: Date;
};

export type OpenedSession = TenantUser & {
  readonly session: SessionRow;
  /** For the cookie; it is not stored. */
  readonly token: string;
  /** Tenant of the previous session of the browser, which has ended. */
  readonly ended_tenant_id: string | undefined;
};

/** Maximum stored length of the header User-Agent. */
const USER_AGENT_MAX = 400;

export async function openSessionByPassword(
  { postgres }: Postgres,
  credentials: { readonly email: string; readonly password: string },
  browser: BrowserSignIn,
): Promise<OpenedSession> {
  const user = await verifyPassword({ postgres }, credentials);
  return postgres.transaction(async (transaction) => {
    // A password that was changed in the meantime has ended other sessions, and this one would begin after that.
    if ((await lockPassword(transaction, user)) !== user.hash) throw refuseSignIn();
    return openSession(transaction, user, browser);
  });
}

export async function openSessionByLink(
  { postgres }: Postgres,
  link_token: string,
  browser: BrowserSignIn,
): Promise<OpenedSession> {
  const token_hash = hashSessionToken(link_token);
  return postgres.transaction(async (transaction) => {
    const user = await takeConsoleLink(transaction, token_hash, browser.now);
    if (!user)
      throw new FarthingError(
        'permission_denied',
        'link_token: the link was used, has expired or was replaced: restart the service for a new one, or sign in',
        { details: { field: 'link_token' } },
      );
    return openSession(transaction, user, browser);
  });
}

/** Opens a session for a user whose identity was checked. */
export async function openSession(
  database: Database,
  { tenant_id, user_id }: TenantUser,
  { user_agent, previous_token, now }: BrowserSignIn,
): Promise<OpenedSession> {
  const token = makeSessionToken();
  const previous = previous_token === undefined ? undefined : hashSessionToken(previous_token);
  const ended_tenant_id = previous && (await deleteSessionByToken(database, previous));
  const session = await insertSession(database, {
    id: newId('session', now.getTime()),
    tenant_id,
    user_id,
    token_hash: hashSessionToken(token),
    user_agent: user_agent?.slice(0, USER_AGENT_MAX) ?? null,
    now,
    expires_at: deriveSessionExpiry(now),
  });
  return { tenant_id, user_id, session, token, ended_tenant_id };
}

/**
 * Makes the one-time link of a tenant whose user cannot sign in yet, and ends its previous link. Null if a user of the tenant has an email.
 */
export async function createConsoleLink(
  { postgres }: Postgres,
  { tenant_id, user_id }: TenantUser,
  now: Date,
): Promise<string | null> {
  const users = UserModel.ofTenant(tenant_id, postgres).where({ type: 'user', status: 'published' });
  if ((await users.whereNotNull('email').resultSize()) > 0) return null;
  const token = makeSessionToken();
  const token_hash = hashSessionToken(token);
  await replaceConsoleLink(postgres, { tenant_id, user_id, token_hash, expires_at: deriveLinkExpiry(now) });
  return token;
}
