/** Table `secrets`: API keys, by their hash. */
import type { ApiKeyType, Rights } from '../../../core/foundation/access/role.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';

export class SecretModel extends ScopedModel {
  static override tableName = 'secrets';
  static override recordName = 'API key';
  declare status: string;
  declare created_at: string;
  declare updated_at: string;
  declare user_id: string;
  declare name: string;
  declare type: ApiKeyType;
  declare provider: string;
  declare key_hash: string;
  declare display_id: string;
  declare expires_at: string | null;
  declare last_used_at: string | null;
}

/** The facts that a request needs about its key or token. */
export type AuthenticatedKey = Rights & {
  /** Null for a token and a session. */
  readonly secret_id: string | null;
  /** Null for a key and a token. */
  readonly session_id: string | null;
  readonly tenant_id: string;
  readonly environment_id: string | null;
  readonly user_id: string;
  readonly suspended: boolean;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
};

/** Finds the owner of a key across all tenants. Undefined for revoked keys and archived users. */
export async function findKeyHolder(database: Database, key_hash: string): Promise<AuthenticatedKey | undefined> {
  const { rows } = await database.raw(
    `select s.id as secret_id, null as session_id, s.tenant_id, s.environment_id, s.user_id, s.type as key_type,
            u.type as user_type, u.roles, t.suspended, s.expires_at, s.last_used_at
       from secrets s
       join users u on u.id = s.user_id and u.tenant_id = s.tenant_id and u.status = 'published'
       join tenants t on t.id = s.tenant_id and t.status = 'published'
      where s.key_hash = ? and s.status = 'published'`,
    [key_hash],
  );
  return rows[0];
}

/** Finds the user of a token. The claims name the user; the rights come from its record. Undefined for archived users. */
export async function findTokenHolder(
  database: Database,
  { tenant_id, user_id }: { tenant_id: string; user_id: string },
): Promise<(AuthenticatedKey & { readonly password_changed_at: string | null }) | undefined> {
  const { rows } = await database.raw(
    `select null as secret_id, null as session_id, u.tenant_id, null as environment_id, u.id as user_id,
            'private_key' as key_type, u.type as user_type, u.roles, t.suspended, null as expires_at, null as last_used_at,
            p.changed_at as password_changed_at
       from users u
       join tenants t on t.id = u.tenant_id and t.status = 'published'
       left join user_passwords p on p.user_id = u.id and p.tenant_id = u.tenant_id
      where u.tenant_id = ? and u.id = ? and u.status = 'published'`,
    [tenant_id, user_id],
  );
  return rows[0];
}

export async function isTenantEnvironment(database: Database, tenant_id: string, id: string): Promise<boolean> {
  const { rows } = await database.raw(
    `select 1 from environments where tenant_id = ? and id = ? and status = 'published'`,
    [tenant_id, id],
  );
  return rows.length > 0;
}

export async function updateKeyLastUsed(database: Database, secret_id: string, now: Date): Promise<void> {
  await database.raw('update secrets set last_used_at = ? where id = ?', [now, secret_id]);
}

/** Keys of this user that are active and not expired. */
export async function countActiveKeys(
  database: Database,
  { tenant_id, id }: { tenant_id: string; id: string },
  now: Date,
): Promise<number> {
  const { rows } = await database.raw(
    `select count(*) as active from secrets
      where tenant_id = ? and user_id = ? and status = 'published' and (expires_at is null or expires_at > ?)`,
    [tenant_id, id, now],
  );
  return Number(rows[0].active);
}
