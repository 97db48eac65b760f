/** Reads and writes that several pages of plans share. */
import { type QueryClient, queryOptions } from '@tanstack/react-query';
import { api, readData } from '../../client/client.ts';
import { type GetData, invalidate } from '../../client/queries.ts';

export type PlanRecord = GetData<'/plans/{id}'>;
export type PlanPrice = NonNullable<PlanRecord['prices']>[number];

export type StoredPrice = GetData<'/prices/{id}'>;

/** Starts the roll-out of a plan's prices to its running subscriptions; it runs in the background. */
export async function startRollOut(queries: QueryClient, plan_id: string) {
  const run = await readData(api.POST('/plans/{id}/sync/subscriptions', { params: { path: { id: plan_id } } }));
  await invalidate(queries, '/subscriptions');
  return run;
}

export function buildSummariesQuery(plan_ids: readonly string[]) {
  return queryOptions({
    queryKey: ['/plans/summaries', plan_ids] as const,
    queryFn: async () => {
      const { items } = await readData(api.POST('/plans/summaries', { body: { plan_ids: [...plan_ids] } }));
      return new Map(items.map((summary) => [summary.plan_id, summary]));
    },
    enabled: plan_ids.length > 0,
    staleTime: 30_000,
  });
}
