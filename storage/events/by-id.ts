/** Reads accepted events by their ids. The identity of an event has its sort key in `events`, so only its granule is read. */
import type { Scope } from '../../core/foundation/scope.ts';
import { hashToBigInt, IdentityHasher } from '../../core/metering/event/identity.ts';
import { type ClickHouseClient, loadRows } from '../clickhouse/clickhouse.ts';

/** SQL condition of rows with these ids. */
export const WITH_IDS =
  'tenant_id = {tenant_id:String} and environment_id = {environment_id:String} and event_id in {event_ids:Array(String)}';

const IDENTITIES = `event_identities where id_hash in {hashes:Array(UInt64)} and ${WITH_IDS}`;
const BY_KEY = `${WITH_IDS} and (external_customer_id, event_name, timestamp) in
                 (select external_customer_id, event_name, timestamp from ${IDENTITIES})`;
/** Identities that an earlier version wrote have no name: their events are searched by time. */
const BY_TIME = `${WITH_IDS} and timestamp in (select timestamp from ${IDENTITIES} and event_name = '')`;

/** `buildQuery` returns a statement with this condition on `events`; ids that were not accepted have no row. */
export async function loadAcceptedEvents<Row extends { readonly event_id: string }>(
  clickhouse: ClickHouseClient,
  { scope, event_ids, buildQuery }: { scope: Scope; event_ids: readonly string[]; buildQuery(where: string): string },
): Promise<Row[]> {
  const load = (condition: string, ids: readonly string[]) =>
    loadRows<Row>(clickhouse, 'accepted events', {
      query: buildQuery(condition),
      params: { ...toIdParams(scope, ids), hashes: hashIds(scope, ids) },
    });
  const found = await load(BY_KEY, event_ids);
  const known = new Set(found.map(({ event_id }) => event_id));
  const missing = event_ids.filter((id) => !known.has(id));
  return missing.length === 0 ? found : [...found, ...(await load(BY_TIME, missing))];
}

export function toIdParams({ tenant_id, environment_id }: Scope, event_ids: readonly string[]) {
  return { tenant_id, environment_id, event_ids: [...event_ids] };
}

function hashIds({ tenant_id, environment_id }: Scope, event_ids: readonly string[]): bigint[] {
  const hasher = new IdentityHasher({ tenant_id, environment_id });
  return event_ids.map((event_id) => {
    hasher.hash(event_id);
    return hashToBigInt(hasher.high, hasher.low);
  });
}
