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
  question: BilledUsageQuery,
): Promise<LiveUsageAnswer> {
  const { meter, external_customer_ids, clipped, start_ms, end_ms, timezone, billing_anchor_ms, now_ms } = question;
  const scope = { tenant_id, environment_id };
  const make = async (): Promise<LiveUsageAnswer> => readUsage(stores, scope, question);
  if (now_ms === undefined || (clipped?.size ?? 0) > 0) return make();
  const key = JSON.stringify(['used', meter.id, external_customer_ids, start_ms, end_ms, timezone, billing_anchor_ms]);
  const query = { ...scope, key, now: new Date(now_ms), about: [meter.id] };
  const window = { start: start_ms, end: end_ms };
  return (
    await loadCached(stores, query, async () => ({ answer: await make(), again: (read) => read(meter.id, window) }))
  ).answer;
}
