/** The identity files of a data directory against the table that they are made from. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { toShardRange } from '../../../core/metering/event/identity.ts';
import { compareIdentityFiles, readIdentityFiles } from '../../../pipeline/identity/identity-files.ts';
import { IdentityMemory } from '../../../pipeline/identity/identity-memory.ts';
import { toHashRange, visitIdentityHashes } from '../../../storage/events/identities.ts';
import { type FreshDatabase, freshDatabase } from '../../support/stores.ts';

describe('identity files and the table', () => {
  let database: FreshDatabase;
  let dir: string;
  before(async () => {
    database = await freshDatabase();
    dir = mkdtempSync(join(tmpdir(), 'farthing-files-'));
  });
  after(async () => {
    rmSync(dir, { recursive: true, force: true });
    await database.close();
  });

  /** Hashes over the whole range, also the one that is zero; every tenth row is there twice. */
  const insert = (from: number, count: number) =>
    database.clickhouse.command({
      query: `insert into event_identities (id_hash, event_id, timestamp, partition, offset)
              select if(number = 0, 0, cityHash64(number)), toString(number), now(), if(cityHash64(number) < 9223372036854775808, 0, 1), number
                from (select arrayJoin(if(number % 10 = 0, [number, number], [number])) as number from numbers(${from}, ${count}))`,
    });
  const open = async (partition: number, next: bigint) => {
    const range = toHashRange(toShardRange(partition, 2));
    const place = { partition, partition_count: 2, installation: 'a' };
    const memory = await IdentityMemory.open({ dir, hot_ids: 1_000, filter_bytes: 0 }, place, {
      next,
      read: (behind, visit) => visitIdentityHashes(database.clickhouse, { ...range, partition, ...behind }, visit),
    });
    memory.close();
  };
  const compared = async () => {
    const answers = await readIdentityFiles(dir);
    return Promise.all(
      answers.map((answer) =>
        answer.ok ? compareIdentityFiles(database.clickhouse, dir, answer.files) : expect.fail(answer.why),
      ),
    );
  };

  it('are equal, whatever comes behind them, and a hash that is in one of them only is found', async () => {
    await insert(0, 10_000);
    await open(0, 10_000n);
    await open(1, 10_000n);
    const sums = (await compared()).map(({ missing, more }) => ({ missing, more }));
    expect(sums).to.deep.equal([
      { missing: 0, more: 0 },
      { missing: 0, more: 0 },
    ]);
    expect((await compared()).reduce((all, { stored }) => all + stored, 0)).to.equal(10_000);

    await insert(10_000, 500);
    expect((await compared()).every(({ missing, more }) => missing === 0 && more === 0)).to.equal(true);

    await database.clickhouse.command({
      query: `insert into event_identities (id_hash, event_id, timestamp, partition, offset)
              select cityHash64('new', number), 'x', now(), if(cityHash64('new', number) < 9223372036854775808, 0, 1), 7 from numbers(20)`,
    });
    expect((await compared()).reduce((all, { missing }) => all + missing, 0)).to.equal(20);
    await database.clickhouse.command({
      query: 'delete from event_identities where offset < 30',
      clickhouse_settings: { lightweight_deletes_sync: '2' },
    });
    const after = await compared();
    expect(after.reduce((all, { missing }) => all + missing, 0)).to.equal(0);
    expect(after.reduce((all, { more }) => all + more, 0)).to.equal(30);
  });
});
