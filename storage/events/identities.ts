/** The exact look-up behind the pipeline's hash sets, and what they are rebuilt from at start. */
import type { Readable } from 'node:stream';
import { z } from 'zod';
import { hashToBigInt } from '../../core/event/identity.ts';
import { type ClickHouseClient, clickhouseFailure, question } from '../clickhouse.ts';

/** The row of the accepted event that owns an id. */
export const IdentityRow = z.object({
  tenant_id: z.string(),
  environment_id: z.string(),
  event_id: z.string(),
  partition: z.coerce.number(),
  offset: z.coerce.number(),
  position: z.coerce.number(),
  content_crc: z.coerce.number(),
});
export type IdentityRow = z.infer<typeof IdentityRow>;

const identitiesByHash = question({
  name: 'identities by hash',
  sql: `select tenant_id, environment_id, event_id, partition, offset, position, content_crc
          from event_identities where id_hash in {hashes:Array(UInt64)}`,
  params: z.object({ hashes: z.array(z.bigint()) }),
  row: IdentityRow,
});

const HASHES_PER_QUESTION = 10_000;

/** The stored identities with any of these hashes; the caller compares the ids themselves. */
export async function findIdentities(clickhouse: ClickHouseClient, hashes: readonly bigint[]): Promise<IdentityRow[]> {
  const found: IdentityRow[] = [];
  for (let from = 0; from < hashes.length; from += HASHES_PER_QUESTION) {
    const some = hashes.slice(from, from + HASHES_PER_QUESTION);
    found.push(...(await identitiesByHash.ask(clickhouse, { hashes: some })));
  }
  return found;
}

/** Takes back the identity of an event that was refused, at its place: the id is free again. */
export async function forgetIdentity(
  clickhouse: ClickHouseClient,
  event: { id_high: number; id_low: number; partition: number; offset: number; position: number },
): Promise<void> {
  try {
    await clickhouse.command({
      query: `delete from event_identities where id_hash = {hash:UInt64}
                 and partition = {partition:UInt16} and offset = {offset:UInt64} and position = {position:UInt32}`,
      query_params: {
        hash: hashToBigInt(event.id_high, event.id_low),
        partition: event.partition,
        offset: event.offset,
        position: event.position,
      },
      clickhouse_settings: { lightweight_deletes_sync: '2', mutations_sync: '2' },
    });
  } catch (error) {
    throw clickhouseFailure('identity of a refused event', error);
  }
}

/**
 * Every stored hash of a range of shards, as two 32-bit halves, without a row object per id; with `behind` only those that
 * stand there or behind in the log.
 */
export async function eachIdentityHash(
  clickhouse: ClickHouseClient,
  range: { first: bigint; last: bigint; behind?: { partition: number; offset: bigint } },
  visit: (high: number, low: number) => Promise<void> | void,
): Promise<void> {
  const { first, last, behind } = range;
  const place = behind ? `and partition = ${behind.partition} and offset >= ${behind.offset}` : '';
  try {
    const { stream } = await clickhouse.exec({
      query: `select id_hash from event_identities where id_hash between ${first} and ${last} ${place} format RowBinary`,
      clickhouse_settings: { wait_end_of_query: 0 },
    });
    await visitHashes(stream as Readable, visit);
  } catch (error) {
    throw clickhouseFailure('identity hashes', error);
  }
}

async function visitHashes(
  stream: Readable,
  visit: (high: number, low: number) => Promise<void> | void,
): Promise<void> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const whole = bytes.length - (bytes.length % 8);
    for (let at = 0; at < whole; at += 8) {
      const pause = visit(bytes.readUInt32LE(at + 4), bytes.readUInt32LE(at));
      if (pause) await pause;
    }
    rest = bytes.subarray(whole);
  }
  if (rest.length > 0) throw new Error('the answer ended inside a hash');
}
