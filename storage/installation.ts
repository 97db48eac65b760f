/** Table `installation`: one row, made with the schema; tells these stores from any others. */
import type { Database } from './stores.ts';

export async function installationId(database: Database): Promise<string> {
  const { rows } = await database.raw(`select id from installation`);
  return rows[0].id;
}
