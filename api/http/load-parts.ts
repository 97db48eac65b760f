/** Loads the parts of an answer (`loadAll` of storage/concurrency/batched.ts). */
import { type LoadedAnswers, type LoadQuery, loadAll } from '../../storage/concurrency/batched.ts';
import type { Database } from '../../storage/foundation/stores.ts';
import type { Context } from './route.ts';

/** Each query gets the context with the database to read from. A null part is not loaded. */
export function loadParts<const Queries extends readonly LoadQuery<Context>[]>(
  context: Context,
  queries: Queries,
): Promise<LoadedAnswers<Queries>> {
  const { services } = context;
  const connect = (query: LoadQuery<Context>): LoadQuery<Database> =>
    query && ((postgres) => query({ ...context, services: { ...services, postgres } }));
  return loadAll(services.postgres, queries.map(connect)) as Promise<unknown> as Promise<LoadedAnswers<Queries>>;
}
