/** The same id again: a duplicate when it says the same, a conflict when it says anything else. */
import { expect } from 'chai';
import { IdentitySet } from '../../pipeline/identity/identity-set.ts';
import { dedupe } from '../../pipeline/steps/dedupe.ts';
import { EventReader, type ReadEvent } from '../../pipeline/steps/read-events.ts';
import { type FreshDatabase, freshDatabase } from '../support/stores.ts';

const SCOPE = { tenant_id: 'acme', environment_id: 'live' };

describe('an id that comes again', () => {
  let database: FreshDatabase;
  before(async () => {
    database = await freshDatabase();
  });
  after(() => database.close());

  /** Two contents that CRC-32 takes for one; some are among any hundred thousand. */
  const [first, other] = twoOfOneCrc();

  const store = async (event: ReadEvent, content_hash: number) => {
    const { event_id, partition, offset, position, content_crc, id_high, id_low } = event;
    const id_hash = String((BigInt(id_high) << 32n) | BigInt(id_low));
    const place = { partition, offset, position, timestamp: '2026-01-01 00:00:00' };
    await database.clickhouse.insert({
      table: 'event_identities',
      values: [{ ...SCOPE, id_hash, event_id, ...place, content_crc, content_hash }],
      format: 'JSONEachRow',
    });
  };
  const outcomesOf = async (events: readonly ReadEvent[], known: readonly ReadEvent[] = []) => {
    const seen = new IdentitySet();
    for (const { id_high, id_low } of known) seen.add(id_high, id_low);
    const { repeats } = await dedupe(database.clickhouse, seen, events);
    return repeats.map(({ outcome }) => outcome);
  };

  it('with another content of the same CRC-32 is a conflict, in its slice and when it was stored before', async () => {
    const [a, again, b] = [read(first, 1), read(first, 2), read(other, 3)];
    expect(b.content_crc).to.equal(a.content_crc);
    expect(await outcomesOf([a, again, b])).to.deep.equal(['duplicate', 'conflict']);
    await store(a, a.content_hash);
    expect(await outcomesOf([again, b], [a])).to.deep.equal(['duplicate', 'conflict']);
  });

  it('of an event that was stored with its CRC-32 alone is compared by that', async () => {
    const [old, again, changed] = [read(first, 1, 'old'), read(first, 2, 'old'), read('{"x":"else"}', 3, 'old')];
    await store(old, 0);
    expect(await outcomesOf([again, changed], [old])).to.deep.equal(['duplicate', 'conflict']);
  });
});

function read(properties: string, offset: number, id = 'id'): ReadEvent {
  const body = Buffer.from(
    `[{"event_id":"${id}","event_name":"call","external_customer_id":"c","timestamp":"2026-01-01T00:00:00Z","properties":${properties}}]`,
  );
  const record = { partition: 0, kind: 'events', received_at_us: 1, generated_ids: null, event_count: 1 } as const;
  return new EventReader().read([{ ...SCOPE, ...record, offset: BigInt(offset), body }]).events[0]!;
}

function twoOfOneCrc(): [string, string] {
  const known = new Map<number, string>();
  for (let index = 0; ; index++) {
    // Longer than four bytes of difference, or the CRC could never be the same.
    const properties = `{"x":"${(Math.imul(index, 0x9e3779b1) >>> 0).toString(36)}-${Math.imul(index, 0x85ebca6b) >>> 0}"}`;
    const { content_crc } = read(properties, 1);
    const before = known.get(content_crc);
    if (before !== undefined) return [before, properties];
    known.set(content_crc, properties);
  }
}
