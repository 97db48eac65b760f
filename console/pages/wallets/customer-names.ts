/** Names of the customers of a list of records: one request for each page of rows. */
import { useQueries } from '@tanstack/react-query';
import { getQuery } from '../../client/queries.ts';

const PORTION = 50;

export function useCustomerNames(customer_ids: readonly string[]): ReadonlyMap<string, string> {
  const ids = [...new Set(customer_ids)];
  const portions = Array.from({ length: Math.ceil(ids.length / PORTION) }, (_, at) =>
    ids.slice(at * PORTION, (at + 1) * PORTION),
  );
  return useQueries({
    queries: portions.map((portion) => getQuery('/customers', { query: { customer_ids: portion, limit: PORTION } })),
    combine: (answers) =>
      new Map(
        answers.flatMap(({ data }) =>
          (data?.items ?? []).map(({ id, name, external_id }) => [id, name || external_id] as const),
        ),
      ),
  });
}
