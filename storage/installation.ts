/** Table `installation`: one row, made with the schema; tells these stores from any others, and signs what they sign. */
import type { Database } from './stores.ts';

export async function loadInstallationId(database: Database): Promise<string> {
  const { rows } = await database.raw(`select id from installation`);
  return rows[0].id;
}

/** The same for all processes, and for as long as the stores live. */
export async function loadTokenKey(database: Database): Promise<Uint8Array> {
  const { rows } = await database.raw(`select token_key from installation`);
  return rows[0].token_key;
}
