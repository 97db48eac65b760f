/** Exact lookup of event identities, for hits in the pipeline's hash sets, and the source from which the sets are rebuilt at start. */
import type { Readable } from 'node:stream';
import { z } from 'zod';
import { unavailable } from '../../core/foundation/error.ts';
import { HashSum, hashToBigInt } from '../../core/metering/event/identity.ts';
import { type ClickHouseClient, defineStatement, toClickHouseFailure } from '../clickhouse/clickhouse.ts';
import { deleteWhere } from '../clickhouse/delete.ts';

/** Row of the accepted event that owns an id. */
export const IdentityRow = z.object({
  tenant_id: z.string(),
  environment_id: z.string(),
  event_id: z.string(),
  partition: z.coerce.number(),
  offset: z.coerce.number(),
  position: z.coerce.number(),
  content_crc: z.coerce.number(),
  /** Hash of the content; 0 if the event was stored before content hashes existed. */
  content_hash: z.coerce.number(),
});
export type IdentityRow = z.infer<typeof IdentityRow>;

const identitiesByHash = defineStatement({
  name: 'identities by hash',
  sql: `select tenant_id, environment_id, event_id, partition, offset, position, content_crc, content_hash
          from event_identities where id_hash in {hashes:Array(UInt64)}`,
  params: z.object({ hashes: z.array(z.bigint()) }),
  row: IdentityRow,
});

const HASHES_PER_QUERY = 10_000;

/** Stored identities with any of these hashes; the caller compares the ids themselves. */
export async function findIdentities(clickhouse: ClickHouseClient, hashes: readonly bigint[]): Promise<IdentityRow[]> {
  const found: IdentityRow[] = [];
  for (let from = 0; from < hashes.length; from += HASHES_PER_QUERY) {
    const some = hashes.slice(from, from + HASHES_PER_QUERY);
    found.push(...(await identitiesByHash.run(clickhouse, { hashes: some })));
  }
  return found;
}

/** Deletes the identities of rejected events at their positions, which frees their ids. */
export async function deleteIdentities(
  clickhouse: ClickHouseClient,
  events: readonly { id_high: number; id_low: number; partition: number; offset: number; position: number }[],
): Promise<void> {
  const conditions = events.map(({ id_high, id_low, partition, offset, position }) => {
    const hash = hashToBigInt(id_high, id_low);
    return `(id_hash = ${hash} and partition = ${partition} and offset = ${offset} and position = ${position})`;
  });
  await deleteWhere(clickhouse, { table: 'event_identities', conditions });
}

/** Ids of a range of shards at log offsets of [from, before) of their partition. */
type IdentityRange = {
  readonly first: bigint;
  readonly last: bigint;
  readonly partition: number;
  /** First included offset. With 0, ids that these shards got from earlier, drained partitions are included. */
  readonly from: bigint;
  readonly before: bigint;
};

/**
 * Visits every stored hash of the range, as two 32-bit halves, without a row object per id. Rows before the partition's next offset no
 * longer change, so their count and sum are read first. An incomplete or different answer is therefore an error, and never fewer ids.
 */
export async function visitIdentityHashes(
  clickhouse: ClickHouseClient,
  range: IdentityRange,
  visit: (high: number, low: number) => Promise<void> | void,
): Promise<void> {
  const { sql, params } = buildIdentityCondition(range);
  try {
    const expected = await loadHashSums(clickhouse, sql, params);
    const { stream } = await clickhouse.exec({
      query: `select id_hash ${sql} format RowBinary`,
      query_params: params,
      clickhouse_settings: { wait_end_of_query: 0 },
    });
    const came = await visitHashes(stream as Readable, visit);
    if (came.count === expected.count && came.sum === expected.sum) return;
    throw unavailable(`the usage store (${came.count} of ${expected.count} identities arrived)`);
  } catch (error) {
    throw toClickHouseFailure('identity hashes', error);
  }
}

function buildIdentityCondition({ first, last, partition, from, before }: IdentityRange) {
  const condition =
    from === 0n
      ? 'partition != {partition:UInt16} or'
      : 'partition = {partition:UInt16} and offset >= {from:UInt64} and';
  return {
    sql: `from event_identities where id_hash between {first:UInt64} and {last:UInt64} and (${condition} offset < {before:UInt64})`,
    params: { first, last, partition, before, ...(from === 0n ? {} : { from }) },
  };
}

export function toHashRange(shards: { first: number; last: number }): { first: bigint; last: bigint } {
  return { first: BigInt(shards.first) << 52n, last: ((BigInt(shards.last) + 1n) << 52n) - 1n };
}

/**
 * Sums of distinct hashes of the range, by part, to compare with identity files (`pipeline/identity/identity-files.ts`). Hash 0 counts as
 * 1, as in memory and files.
 */
export async function loadStoredSumsByPart(
  clickhouse: ClickHouseClient,
  range: IdentityRange,
  parts: number,
): Promise<HashSums[]> {
  const { sql, params } = buildIdentityCondition(range);
  const query = `select ${buildPartExpression(parts)} as part, toUInt64(count()) as n, sum(greatest(id_hash, 1)) as s
    from (select id_hash ${sql} group by id_hash) group by part`;
  const clickhouse_settings = { optimize_aggregation_in_order: 1 } as const;
  const sums = Array.from({ length: parts }, () => ({ count: 0, sum: 0n }));
  try {
    const answer = await clickhouse.query({
      query,
      query_params: params,
      format: 'JSONCompactEachRow',
      clickhouse_settings,
    });
    for (const [part, count, sum] of await answer.json<[number, string, string]>())
      sums[part] = { count: Number(count), sum: BigInt(sum) };
    return sums;
  } catch (error) {
    throw toClickHouseFailure('sums of identities', error);
  }
}

/** Visits each distinct hash of a part, as the text `<high>.<low>` of its 32-bit halves. */
export async function visitStoredHashes(
  clickhouse: ClickHouseClient,
  { part, parts, ...range }: IdentityRange & { part: number; parts: number },
  visit: (hash: string) => void,
): Promise<void> {
  const { sql, params } = buildIdentityCondition(range);
  const query = `select distinct bitShiftRight(greatest(id_hash, 1), 32) as high, bitAnd(greatest(id_hash, 1), 4294967295) as low
    ${sql} and ${buildPartExpression(parts)} = {part:UInt64}`;
  try {
    const answer = await clickhouse.query({ query, query_params: { ...params, part }, format: 'JSONCompactEachRow' });
    for (const halves of await answer.json<[string, string]>()) visit(halves.join('.'));
  } catch (error) {
    throw toClickHouseFailure('hashes of a part', error);
  }
}

/** Selects the part in the way of `IdentitySet` and the files: by the lowest bits of the upper half. */
function buildPartExpression(parts: number): string {
  return `toUInt32(bitAnd(bitShiftRight(id_hash, 32), ${parts - 1}))`;
}

/** Loads the count and the sum modulo 2^64 of hashes (the engine's UInt64 addition). */
async function loadHashSums(
  clickhouse: ClickHouseClient,
  sql: string,
  params: Record<string, unknown>,
): Promise<HashSums> {
  const query = `select toUInt64(count()) as n, sum(id_hash) as s ${sql}`;
  const answer = await clickhouse.query({ query, query_params: params, format: 'JSONCompactEachRow' });
  const [[count, sum]] = (await answer.json<[string, string]>()) as [[string, string]];
  return { count: Number(count), sum: BigInt(sum) };
}

export type HashSums = { readonly count: number; readonly sum: bigint };

async function visitHashes(
  stream: Readable,
  visit: (high: number, low: number) => Promise<void> | void,
): Promise<HashSums> {
  const sums = new HashSum();
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const whole = bytes.length - (bytes.length % 8);
    for (let at = 0; at < whole; at += 8) {
      const [high, low] = [bytes.readUInt32LE(at + 4), bytes.readUInt32LE(at)];
      sums.add(high, low);
      const pause = visit(high, low);
      if (pause) await pause;
    }
    rest = bytes.subarray(whole);
  }
  if (rest.length > 0) throw unavailable('the usage store (an answer ended inside a hash)');
  return sums;
}
