/**
 * Table `installation`: one row, created with the schema. It distinguishes these stores from any others and holds the key that
 * signs tokens.
 */
import type { Database } from '../../foundation/stores.ts';

export async function loadInstallationId(database: Database): Promise<string> {
  const { rows } = await database.raw(`select id from installation`);
  return rows[0].id;
}

/** Loads the key that signs tokens. It is equal in all processes, for the lifetime of the stores. */
export async function loadTokenKey(database: Database): Promise<Uint8Array> {
  const { rows } = await database.raw(`select token_key from installation`);
  return rows[0].token_key;
}
