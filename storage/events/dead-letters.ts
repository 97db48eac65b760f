/** Dead letters: input that could not become an event, with its received bytes and the reason; and which of it was replayed. */
import { z } from 'zod';
import type { Scope } from '../../core/foundation/scope.ts';
import type { Microseconds } from '../../core/foundation/time/instant.ts';
import { defineStatement } from '../clickhouse/clickhouse.ts';
import type { Database, Stores } from '../foundation/stores.ts';

export type StoredDeadLetter = {
  /** Position in the log: partition, offset, position. */
  readonly id: string;
  readonly event_id: string;
  readonly reason: string;
  readonly received_at_us: Microseconds;
  readonly body: string;
  readonly replayed_at: string | null;
};

type DeadLettersQuery = {
  /** Positions of the selected dead letters; null selects all. */
  readonly ids: readonly string[] | null;
  readonly limit: number;
  readonly offset: number;
  /** Place after which the list continues. */
  readonly after?: DeadLetterPlace | null;
};

type DeadLetterPlace = { readonly received_at_us: Microseconds; readonly id: string };

const Row = z.object({
  id: z.string(),
  event_id: z.string(),
  reason: z.string(),
  received_at_us: z.coerce.number(),
  body: z.string(),
});

const scopeShape = { tenant_id: z.string(), environment_id: z.string() };
const POSITION = `concat(toString(partition), '-', toString(offset), '-', toString(position))`;
const THEIRS = `tenant_id = {tenant_id:String} and environment_id = {environment_id:String} and outcome = 'dead_letter'`;

const AFTER = `fromUnixTimestamp64Micro({after:Int64}, 'UTC')`;

const deadLetters = defineStatement({
  name: 'dead letters',
  sql: `select ${POSITION} as id, event_id, reason, toString(toUnixTimestamp64Micro(received_at)) as received_at_us, body
          from event_outcomes
         where ${THEIRS} and ({every:Bool} or ${POSITION} in {ids:Array(String)})
           and (not {is_after:Bool} or (received_at <= ${AFTER}
                and (received_at < ${AFTER} or (partition, offset, position) > ({after_partition:UInt16}, {after_offset:UInt64}, {after_position:UInt32}))))
         order by received_at desc, partition, offset, position
         limit {limit:UInt32} offset {offset:UInt64}`,
  params: z.object({
    ...scopeShape,
    every: z.boolean(),
    ids: z.array(z.string()),
    limit: z.int(),
    offset: z.int(),
    is_after: z.boolean(),
    after: z.int(),
    after_partition: z.int(),
    after_offset: z.int(),
    after_position: z.int(),
  }),
  row: Row,
});

const deadLetterCount = defineStatement({
  name: 'count of dead letters',
  sql: `select toString(count()) as n from event_outcomes where ${THEIRS}`,
  params: z.object(scopeShape),
  row: z.object({ n: z.coerce.number() }),
});

/** Lists dead letters, newest first. */
export async function findDeadLetters(
  stores: Stores,
  scope: Scope,
  query: DeadLettersQuery,
): Promise<StoredDeadLetter[]> {
  const { tenant_id, environment_id } = scope;
  const { ids, limit, offset, after = null } = query;
  const [after_partition, after_offset, after_position] = (after?.id ?? '0-0-0').split('-').map(Number) as [
    number,
    number,
    number,
  ];
  const rows = await deadLetters.run(stores.clickhouse, {
    tenant_id,
    environment_id,
    every: ids === null,
    ids: [...(ids ?? [])],
    limit,
    offset,
    is_after: after !== null,
    after: after?.received_at_us ?? 0,
    after_partition,
    after_offset,
    after_position,
  });
  const replayed = await loadReplays(
    stores.postgres,
    scope,
    rows.map(({ id }) => id),
  );
  return rows.map((row) => ({ ...row, replayed_at: replayed.get(row.id) ?? null }));
}

export async function countDeadLetters({ clickhouse }: Stores, { tenant_id, environment_id }: Scope): Promise<number> {
  const [row] = await deadLetterCount.run(clickhouse, { tenant_id, environment_id });
  return row!.n;
}

export async function recordReplay(
  database: Database,
  scope: Scope,
  replay: { id: string; event_id: string; user_id: string; now: Date },
): Promise<void> {
  await database.raw(
    `insert into dead_letter_replays (tenant_id, environment_id, partition, "offset", position, event_id, replayed_by, replayed_at)
     values (?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing`,
    [
      scope.tenant_id,
      scope.environment_id,
      ...replay.id.split('-'),
      replay.event_id,
      replay.user_id,
      replay.now.toISOString(),
    ],
  );
}

/** Time of the replay of each dead letter that was replayed, by id. */
export async function loadReplays(
  database: Database,
  scope: Scope,
  ids: readonly string[],
): Promise<Map<string, string>> {
  const { rows } = await database.raw(
    `select concat_ws('-', partition, "offset", position) as id, replayed_at from dead_letter_replays
      where tenant_id = ? and environment_id = ? and concat_ws('-', partition, "offset", position) = any(?)`,
    [scope.tenant_id, scope.environment_id, [...ids]],
  );
  return new Map(rows.map((row: { id: string; replayed_at: string }) => [row.id, row.replayed_at]));
}
