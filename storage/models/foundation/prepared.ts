import { PREPARED } from '../../postgres/interceptors/bundled-statements.ts';

/**
 * Prepares the statement of a frequent query once per connection, because the server needs more time to plan a read of a few records than to
 * execute it. The best plan must be the same for all values (`PREPARED`).
 */
export function prepareQuery<Query>(query: Query): Query {
  (query as { options(options: object): unknown }).options(PREPARED);
  return query;
}
