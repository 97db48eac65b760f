/** Where the engine keeps a table: the beginning of the paths of its parts. */
import type { SupervisedService } from './supervised.ts';

export function tablePath(service: SupervisedService, table: string): Promise<string> {
  return service.withStores(async ({ clickhouse }) => {
    const answer = await clickhouse.query({
      query: `select data_paths[1] as path from system.tables
               where database = currentDatabase() and name = {table:String}`,
      query_params: { table },
      format: 'JSONEachRow',
    });
    const [row] = await answer.json<{ path: string }>();
    if (!row) throw new Error(`there is no table ${table}`);
    return row.path;
  });
}
