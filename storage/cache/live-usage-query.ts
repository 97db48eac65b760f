/** One usage query about a current period, updated as usage arrives (cached-answers.ts). */
import type { Scope } from '../../core/foundation/scope.ts';
import type { Stores } from '../foundation/stores.ts';
import { type BilledUsage, type BilledUsageQuery, readUsage } from '../usage/usage.ts';
import { loadCached } from './cached-answers.ts';

type LiveUsageAnswer = Pick<BilledUsage, 'quantity' | 'event_count' | 'integral'>;

/** Returns the usage that `readUsage` would return. */
export async function loadLiveUsage(
  stores: Stores,
  { tenant_id, environment_id }: Scope,
  query: BilledUsageQuery,
): Promise<LiveUsageAnswer> {
  const { meter, external_customer_ids, clipped, start_ms, end_ms, timezone, billing_anchor_ms, now_ms } = query;
  const scope = { tenant_id, environment_id };
  const make = async (): Promise<LiveUsageAnswer> => readUsage(stores, scope, query);
  if (now_ms === undefined || (clipped?.size ?? 0) > 0) return make();
  const key = JSON.stringify(['used', meter.id, external_customer_ids, start_ms, end_ms, timezone, billing_anchor_ms]);
  const window = { start: start_ms, end: end_ms };
  const { answer } = await loadCached(stores, { ...scope, key, now: new Date(now_ms) }, async () => ({
    answer: await make(),
    again: (read) => read(meter.id, window),
  }));
  return answer;
}
