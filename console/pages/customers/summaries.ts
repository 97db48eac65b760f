/** Sums of the customers of a list: one request for each page of rows. */
import { useQueries } from '@tanstack/react-query';
import { api } from '../../client/client.ts';
import { postQuery } from '../../client/queries.ts';
import { type CustomerSums, type SummaryAnswer, splitIds } from './customer.ts';

const PORTION = 50;

export function useSummaries(customer_ids: readonly string[]): ReadonlyMap<string, CustomerSums> {
  return useQueries({
    queries: splitIds(customer_ids, PORTION).map((ids) => {
      const body = { customer_ids: ids };
      return postQuery<SummaryAnswer>('/customers/summaries', body, () => api.POST('/customers/summaries', { body }));
    }),
    combine: (answers) =>
      new Map(answers.flatMap(({ data }) => (data?.items ?? []).map((each) => [each.customer_id, each] as const))),
  });
}
