/** Scopes and customers whose revenue is audited. */
import type { Scope } from '../../core/foundation/scope.ts';
import type { Database } from '../foundation/stores.ts';

export async function listScopes(database: Database): Promise<Scope[]> {
  const { rows } = await database.raw(
    `select tenant_id, id as environment_id from environments order by tenant_id, environment_id`,
  );
  return rows;
}

/** Lists customer ids in ascending order, after the id `after`, including archived customers. */
export async function listCustomersAfter(
  database: Database,
  { tenant_id, environment_id }: Scope,
  { after, limit }: { after: string; limit: number },
): Promise<string[]> {
  const { rows } = await database.raw(
    `select id from customers where tenant_id = ? and environment_id = ? and id > ? order by id limit ?`,
    [tenant_id, environment_id, after, limit],
  );
  return rows.map(({ id }: { id: string }) => id);
}
