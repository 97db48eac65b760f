/** Time by the clock of the database, which all processes share: the clock of one machine may be wrong by any amount. */
import type { Database } from '../foundation/stores.ts';

export async function loadDatabaseTime(database: Database): Promise<Date> {
  const { rows } = await database.raw('select clock_timestamp() as at');
  return new Date(rows[0].at);
}
