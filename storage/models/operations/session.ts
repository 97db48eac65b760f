/** Table `sessions`: sign-ins of browsers, by the hash of the token in their cookie. They have no audit entries. */
import { deriveOldestUse } from '../../../core/foundation/access/session.ts';
import type { Database } from '../../foundation/stores.ts';
import type { AuthenticatedKey } from './secret.ts';

type SessionOwner = { readonly tenant_id: string; readonly user_id: string };

export type SessionRow = {
  readonly id: string;
  readonly user_agent: string | null;
  readonly created_at: string;
  readonly last_used_at: string;
  readonly expires_at: string;
};

type NewSession = SessionOwner & {
  readonly id: string;
  readonly token_hash: string;
  readonly user_agent: string | null;
  readonly now: Date;
  readonly expires_at: Date;
};

export async function insertSession(database: Database, session: NewSession): Promise<SessionRow> {
  const { id, tenant_id, user_id, token_hash, user_agent, now, expires_at } = session;
  const { rows } = await database.raw(
    `insert into sessions (id, tenant_id, user_id, token_hash, user_agent, created_at, last_used_at, expires_at)
     values (?, ?, ?, ?, ?, ?, ?, ?)
     returning id, user_agent, created_at, last_used_at, expires_at`,
    [id, tenant_id, user_id, token_hash, user_agent, now, now, expires_at],
  );
  return rows[0];
}

type SessionHolder = AuthenticatedKey & {
  readonly session_id: string;
  readonly last_used_at: string;
  readonly expires_at: string;
};

/** Finds the user of a session across all tenants, with its current roles. Undefined for archived users and tenants. */
export async function findSessionHolder(database: Database, token_hash: string): Promise<SessionHolder | undefined> {
  const { rows } = await database.raw(
    `select null as secret_id, s.id as session_id, s.tenant_id, null as environment_id, s.user_id,
            'private_key' as key_type, u.type as user_type, u.roles, t.suspended, s.expires_at, s.last_used_at
       from sessions s
       join users u on u.id = s.user_id and u.tenant_id = s.tenant_id and u.status = 'published'
       join tenants t on t.id = s.tenant_id and t.status = 'published'
      where s.token_hash = ?`,
    [token_hash],
  );
  return rows[0];
}

/** Loads a session of the user; undefined if it does not exist. */
export async function findSession(
  database: Database,
  { tenant_id, user_id, id }: SessionOwner & { id: string },
): Promise<SessionRow | undefined> {
  const { rows } = await database.raw(
    `select id, user_agent, created_at, last_used_at, expires_at from sessions
      where tenant_id = ? and user_id = ? and id = ?`,
    [tenant_id, user_id, id],
  );
  return rows[0];
}

/** Lists the sessions of a user that have not ended, the last used one first. */
export async function listSessions(
  database: Database,
  { tenant_id, user_id }: SessionOwner,
  now: Date,
): Promise<SessionRow[]> {
  const { rows } = await database.raw(
    `select id, user_agent, created_at, last_used_at, expires_at from sessions
      where tenant_id = ? and user_id = ? and expires_at > ? and last_used_at > ?
      order by last_used_at desc, id desc`,
    [tenant_id, user_id, now, deriveOldestUse(now)],
  );
  return rows;
}

export async function updateSessionLastUsed(database: Database, id: string, now: Date): Promise<void> {
  await database.raw('update sessions set last_used_at = ? where id = ?', [now, id]);
}

/** Ends a session of the user. Returns whether there was one. */
export async function deleteSession(
  database: Database,
  { tenant_id, user_id, id }: SessionOwner & { id: string },
): Promise<boolean> {
  const { rows } = await database.raw(
    'delete from sessions where tenant_id = ? and user_id = ? and id = ? returning id',
    [tenant_id, user_id, id],
  );
  return rows.length > 0;
}

/** Ends the session of a cookie, if there is one. Returns its tenant. */
export async function deleteSessionByToken(database: Database, token_hash: string): Promise<string | undefined> {
  const { rows } = await database.raw('delete from sessions where token_hash = ? returning tenant_id', [token_hash]);
  return rows[0]?.tenant_id;
}

/** Ends all sessions of a user, or all except one. */
export async function deleteUserSessions(
  database: Database,
  { tenant_id, user_id, except = null }: SessionOwner & { except?: string | null },
): Promise<void> {
  await database.raw('delete from sessions where tenant_id = ? and user_id = ? and id is distinct from ?::text', [
    tenant_id,
    user_id,
    except,
  ]);
}

/** Deletes the ended sessions of all tenants. Returns their number. */
export async function purgeSessions(database: Database, now: Date): Promise<number> {
  const { rows } = await database.raw(
    `with ended as (delete from sessions where expires_at <= ? or last_used_at <= ? returning id)
     select count(*)::int as purged from ended`,
    [now, deriveOldestUse(now)],
  );
  return rows[0].purged;
}
