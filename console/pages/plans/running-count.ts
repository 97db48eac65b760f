import { useGet } from '../../client/queries.ts';

/** Number of subscriptions to a plan that are running; 0 until it is known. */
export function useRunningCount(plan_id: string): number {
  const { data } = useGet('/subscriptions', {
    query: { plan_id, subscription_status: 'active', limit: 1 } as never,
  });
  return data?.pagination?.total ?? 0;
}
