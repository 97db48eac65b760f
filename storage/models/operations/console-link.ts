/** Table `console_links`: the unused one-time link of a tenant, by the hash of its token. */
import type { Database } from '../../foundation/stores.ts';

type ConsoleLink = {
  readonly tenant_id: string;
  readonly user_id: string;
  readonly token_hash: string;
  readonly expires_at: Date;
};

/** Stores the link; the previous one of the tenant is no longer accepted. */
export async function replaceConsoleLink(database: Database, link: ConsoleLink): Promise<void> {
  const { tenant_id, user_id, token_hash, expires_at } = link;
  await database.raw(
    `insert into console_links (tenant_id, user_id, token_hash, expires_at) values (?, ?, ?, ?)
     on conflict (tenant_id) do update
        set user_id = excluded.user_id, token_hash = excluded.token_hash, expires_at = excluded.expires_at`,
    [tenant_id, user_id, token_hash, expires_at],
  );
}

/** Reads and deletes the link in one statement, so that it is used once. Undefined if it does not exist or has expired. */
export async function takeConsoleLink(
  database: Database,
  token_hash: string,
  now: Date,
): Promise<{ tenant_id: string; user_id: string } | undefined> {
  const { rows } = await database.raw(
    `with taken as (delete from console_links where token_hash = ? returning tenant_id, user_id, expires_at)
     select k.tenant_id, k.user_id
       from taken k
       join users u on u.id = k.user_id and u.tenant_id = k.tenant_id and u.status = 'published'
       join tenants t on t.id = k.tenant_id and t.status = 'published'
      where k.expires_at > ?`,
    [token_hash, now],
  );
  return rows[0];
}

export async function deleteConsoleLink(database: Database, tenant_id: string): Promise<void> {
  await database.raw('delete from console_links where tenant_id = ?', [tenant_id]);
}
