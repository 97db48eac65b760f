/** Table `secrets`: API keys, by their hash. */
import type { ApiKeyType, Rights } from '../../core/access/role.ts';
import type { Database } from '../stores.ts';
import { ScopedModel } from './model.ts';

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

/** Everything that a request needs to know about the key it came with. */
export type KeyHolder = Rights & {
  readonly secret_id: string;
  readonly tenant_id: string;
  readonly environment_id: string | null;
  readonly user_id: string;
  readonly suspended: boolean;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
};

/** The one question that no tenant asks: whose key is this? Revoked keys and archived users have no answer. */
export async function findKeyHolder(database: Database, key_hash: string): Promise<KeyHolder | undefined> {
  const { rows } = await database.raw(
    `select s.id as secret_id, s.tenant_id, s.environment_id, s.user_id, s.type as key_type, u.type as user_type, u.roles,
            t.suspended, s.expires_at, s.last_used_at
       from secrets s
       join users u on u.id = s.user_id and u.tenant_id = s.tenant_id and u.status = 'published'
       join tenants t on t.id = s.tenant_id and t.status = 'published'
      where s.key_hash = ? and s.status = 'published'`,
    [key_hash],
  );
  return rows[0];
}

/** Whether this environment may be used by this tenant. */
export async function environmentBelongs(database: Database, tenant_id: string, id: string): Promise<boolean> {
  const { rows } = await database.raw(
    `select 1 from environments where tenant_id = ? and id = ? and status = 'published'`,
    [tenant_id, id],
  );
  return rows.length > 0;
}

export async function touchKey(database: Database, secret_id: string, now: Date): Promise<void> {
  await database.raw('update secrets set last_used_at = ? where id = ?', [now, secret_id]);
}

/** Keys of this user that would still be accepted. */
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
