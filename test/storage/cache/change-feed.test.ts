/**
 * Concurrent readers share one change snapshot, each in a small portion of all. A snapshot shows the progress as Postgres has it. A recent
 * one sees the writes of this process at once, and those of others soon (docs/decisions/0007-cached-answers.md).
 */
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import fc from 'fast-check';
import type { Knex } from 'knex';
import pg from 'pg';
import type { Microseconds } from '../../../core/foundation/time/instant.ts';
import type { BucketRow } from '../../../core/metering/bucket-aggregator.ts';
import { getCache } from '../../../storage/cache/cached-answers.ts';
import {
  type ChangeSnapshot,
  type RecentChanges,
  readChanges,
  requestRecentChanges,
} from '../../../storage/cache/change-feed.ts';
import type { EventLog } from '../../../storage/log/log.ts';
import { IN_NO_ANSWER } from '../../../storage/postgres/interceptors/own-writes.ts';
import { connectPostgres } from '../../../storage/postgres/pool/postgres.ts';
import { finishSlice, NO_EVENTS, readProgress } from '../../../storage/progress/slices.ts';
import { UsageCache } from '../../../storage/usage/usage-cache.ts';
import { type HoldingProxy, startHoldingProxy } from '../../support/holding-proxy.ts';
import { samples } from '../../support/samples.ts';
import { type FreshDatabase, freshDatabase } from '../../support/stores.ts';
import { until } from '../../support/until.ts';

/** A log without unprocessed records. */
const IDLE_LOG = { lag: async () => [] } as unknown as EventLog;

function loadRecent(postgres: Knex, log = IDLE_LOG, now = new Date()): Promise<RecentChanges> {
  return new Promise((resolve, reject) =>
    requestRecentChanges({ postgres, log }, now, (recent) =>
      recent === null ? reject(new Error('no snapshot')) : resolve(recent),
    ),
  );
}

/** The recent snapshot if it is there without a read. */
function findRecent(postgres: Knex): RecentChanges | null {
  let found: RecentChanges | null = null;
  requestRecentChanges({ postgres, log: IDLE_LOG }, new Date(), (recent) => void (found = recent));
  return found;
}

describe('a look', () => {
  let database: FreshDatabase;
  let postgres: Knex;
  before(async () => {
    database = await freshDatabase();
    postgres = database.postgres;
  });
  after(() => database.close());

  it('is one for all who ask at one time, and what the first do at the end is done before the last are told', async () => {
    const happened: string[] = [];
    const looks = await Promise.all(
      Array.from(
        { length: 32 },
        (_, n) =>
          new Promise<ChangeSnapshot>((seen) =>
            requestRecentChanges({ postgres, log: IDLE_LOG }, new Date(), (recent) => {
              happened.push(`told ${n}`);
              // As node's HTTP server ends an answer.
              process.nextTick(() => {
                happened.push(`ended ${n}`);
                seen(recent!.snapshot);
              });
            }),
          ),
      ),
    );
    expect(new Set(looks.map((look) => look.number))).to.have.property('size', 1);
    const told = happened.filter((one) => one.startsWith('told'));
    expect(told).to.deep.equal(Array.from({ length: 32 }, (_, n) => `told ${n}`));
    for (let n = 0; n < 24; n++) expect(happened.indexOf(`ended ${n}`)).to.be.below(happened.indexOf(`told ${n + 8}`));
  });

  it('says how far each partition is, to the last digit, and is told of each step', async () => {
    expect((await readChanges(postgres)).progress).to.deep.equal([]);
    await postgres.raw(
      `insert into slices (partition, epoch, next_offset) values (10, 1, 0), (9, 2, 9007199254740993)`,
    );
    const [first, second, ...others] = (await readChanges(postgres)).progress;
    expect(others).to.deep.equal([]);
    expect(first).to.deep.equal({ partition: 9, epoch: 2n, next_offset: 9007199254740993n, rebuilds: 0n });
    expect(second).to.deep.equal({ partition: 10, epoch: 1n, next_offset: 0n, rebuilds: 0n });
    await postgres.raw(
      `update slices set next_offset = next_offset + 2, rebuilds = rebuilds + 1, gate = 'one' where partition = 9`,
    );
    const [moved, still] = (await readChanges(postgres)).progress;
    expect(moved).to.deep.equal({ ...first, next_offset: 9007199254740995n, rebuilds: 1n });
    expect(still).to.deep.equal(second);
  });
}).timeout(60_000);

const progressOf = ({ progress }: ChangeSnapshot) =>
  progress.map(({ partition, next_offset }) => [partition, next_offset]);

type Place = { partition: number; epoch: string; next_offset: string };

/** As a connection of its own sees them. */
async function placesBy(stranger: pg.Client): Promise<Place[]> {
  return (await stranger.query('select partition, epoch, next_offset from slices order by partition')).rows;
}

async function offsetsBy(stranger: pg.Client): Promise<[number, bigint][]> {
  return (await placesBy(stranger)).map(({ partition, next_offset }) => [partition, BigInt(next_offset)]);
}

async function moveOn(pool: Knex, at: Place): Promise<void> {
  const from = BigInt(at.next_offset);
  await finishSlice(
    pool,
    { partition: at.partition, epoch: BigInt(at.epoch) },
    {
      from,
      next_offset: from + 1n,
      watermark_us: 1 as Microseconds,
      last_record: 1,
      counts: NO_EVENTS,
      notification: null,
    },
  );
}

describe('a recent change snapshot', () => {
  let database: FreshDatabase;
  let postgres: Knex;
  let other: Knex;
  let stranger: pg.Client;
  before(async () => {
    database = await freshDatabase();
    postgres = database.postgres;
    other = connectPostgres(database.postgres_url);
    stranger = new pg.Client({ connectionString: database.postgres_url });
    await stranger.connect();
  });
  after(async () => {
    await stranger.end();
    await other.destroy();
    await database.close();
  });
  const add = (pool: Knex) =>
    pool.raw(`insert into slices (partition, epoch, next_offset)
    values ((select coalesce(max(partition), 0) + 1 from slices), 1, 0)`);
  const partitionsSeen = async () => (await loadRecent(postgres)).snapshot.progress.length;
  const partitions = async () => Number((await stranger.query('select count(*) from slices')).rows[0].count);
  const offsets = () => offsetsBy(stranger);
  const offsetsSeen = async () => progressOf((await loadRecent(postgres)).snapshot);

  it('serves later readers at once while this process changes nothing that they read', async () => {
    await until('it is served at once', async () => {
      const { snapshot } = await loadRecent(postgres);
      await postgres.raw('select count(*) from customers');
      await postgres.transaction((transaction) => transaction.raw('select id from customers for update'));
      await postgres.raw(`update log_partitions set committed_offset = committed_offset ${IN_NO_ANSWER}`);
      return findRecent(postgres)?.snapshot.number === snapshot.number;
    });
  });

  it('serves readers that arrive while it is read', async () => {
    await until('both have the same', async () => {
      await postgres.raw('update customers set name = name');
      const asked = new Promise<RecentChanges>((resolve) =>
        setImmediate(() => void loadRecent(postgres).then(resolve)),
      );
      const [first, second] = await Promise.all([loadRecent(postgres), asked]);
      return first.snapshot.number === second.snapshot.number;
    });
  });

  it('expires after any write of this process, and is never older than a tenth of a second', async () => {
    const writes = [
      'update customers set name = name',
      'with one as (select 1) insert into customers (id, tenant_id, environment_id, external_id) select null, null, null, null where false',
      'select 1; update customers set name = name',
      '/* any comment */ delete from customers where false',
    ];
    for (const text of writes) {
      await loadRecent(postgres);
      await postgres.raw(text);
      expect(findRecent(postgres), text).to.equal(null);
    }
    await loadRecent(postgres);
    await pause(100);
    expect(findRecent(postgres), 'after a pause').to.equal(null);
  });

  it('is another one for who must see what was committed before, by whomever', async () => {
    const { number } = await readChanges(postgres);
    expect((await readChanges(postgres)).number).to.equal(number + 1);
  });

  it('knows what was committed, through any pool of the process, and nothing else', async () => {
    const open = new Set<Knex.Transaction>();
    const steps: Record<string, (pool: Knex) => Promise<unknown>> = {
      add,
      'add in a transaction': (pool) => pool.transaction((transaction) => add(transaction)),
      'add and take back': (pool) =>
        pool
          .transaction(async (transaction) => {
            await add(transaction);
            throw new Error('taken back');
          })
          .catch(() => undefined),
      begin: async (pool) => {
        if (open.size > 0) return;
        const transaction = await pool.transaction();
        open.add(transaction);
        await add(transaction);
      },
      commit: async () => {
        for (const transaction of open) await transaction.commit();
        open.clear();
      },
      'roll back': async () => {
        for (const transaction of open) await transaction.rollback();
        open.clear();
      },
      read: (pool) => pool.raw('select count(*) from slices'),
      'read beside writes': (pool) => Promise.all([add(pool), loadRecent(postgres), readProgress(pool)]),
      'take over': (pool) => pool.raw('update slices set epoch = epoch + 1 where partition = 1'),
      fail: (pool) => pool.raw('insert into slices (partition) values (null)').catch(() => undefined),
      nothing: () => Promise.resolve(),
    };
    const step = fc.record({ name: fc.constantFrom(...Object.keys(steps)), isOther: fc.boolean() });
    const law = fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (taken) => {
      await stranger.query('delete from slices');
      await stranger.query('delete from slice_ledger');
      await postgres.raw('delete from slices');
      for (const { name, isOther } of taken) {
        // While one holds its row, another that adds would wait for it.
        if (open.size > 0 && /^(add|take|read beside)/.test(name)) continue;
        await steps[name]!(isOther ? other : postgres);
        expect(await offsetsSeen(), name).to.deep.equal(await offsets());
      }
      await steps['roll back']!(postgres);
    });
    await fc.assert(law, { numRuns: samples(60) });
  });

  it('sees the write of another process within a tenth of a second', async () => {
    await loadRecent(postgres);
    await stranger.query(`insert into slices (partition, epoch, next_offset) values (1000, 1, 0)`);
    await pause(100);
    expect(await partitionsSeen()).to.equal(await partitions());
  });

  it('has an `as_of` that is read before its progress', async () => {
    await stranger.query('insert into slices (partition, epoch, next_offset) values (2000, 1, 0)');
    // All that was durable takes effect just before the log says so.
    const log = {
      lag: async () => {
        await stranger.query('update slices set next_offset = next_offset + 1 where partition = 2000');
        return [];
      },
    } as unknown as EventLog;
    const own = connectPostgres(database.postgres_url);
    const now = Date.now();
    const { as_of, snapshot } = await loadRecent(own, log);
    await own.destroy();
    expect(Date.parse(as_of)).to.be.within(now, Date.now());
    expect(snapshot.progress.find(({ partition }) => partition === 2000)!.next_offset).to.equal(1n);
  });
}).timeout(60_000);

describe('a recent change snapshot that is read while this process writes', () => {
  let database: FreshDatabase;
  let postgres: Knex;
  let proxy: HoldingProxy;
  let stranger: pg.Client;
  before(async () => {
    database = await freshDatabase();
    proxy = await startHoldingProxy(database.postgres_url);
    postgres = connectPostgres(proxy.url);
    stranger = new pg.Client({ connectionString: database.postgres_url });
    await stranger.connect();
    await postgres.raw('insert into slices (partition, epoch, next_offset) values (0, 1, 0), (1, 1, 0)');
  });
  after(async () => {
    await stranger.end();
    await postgres.destroy();
    await proxy.close();
    await database.close();
  });
  const next = async () => (await placesBy(stranger))[0]!;

  it('does not serve who asks after the write', async () => {
    for (let n = 0; n < 20; n++) {
      await postgres.raw('update customers set name = name');
      const wentBy = proxy.hold('farthing_changes\0');
      const before = loadRecent(postgres);
      await wentBy;
      await postgres.raw('update slices set next_offset = next_offset + 1 where partition = 1');
      const after = loadRecent(postgres);
      proxy.release();
      await before;
      expect(progressOf((await after).snapshot)).to.deep.equal(await offsetsBy(stranger));
    }
  });

  it('does not undo a slice that ended meanwhile', async () => {
    const memory = new UsageCache();
    const cache = getCache(memory);
    const arrived: number[] = [];
    cache.follow((await loadRecent(postgres)).snapshot);
    memory.running.watch(
      { onRow: (_, first_us) => void arrived.push(first_us), invalidate: () => void arrived.push(Number.NaN) },
      'meter_a',
      'acme',
    );
    for (let n = 0; n < 20; n++) {
      await postgres.raw('update customers set name = name');
      const wentBy = proxy.hold('farthing_changes\0');
      const before = loadRecent(postgres);
      await wentBy;
      const { partition, epoch, next_offset } = await next();
      const rows = [{ meter_id: 'meter_a', external_customer_id: 'acme', first_us: n }] as unknown as BucketRow[];
      const [from, owned] = [BigInt(next_offset), { partition, epoch: BigInt(epoch) }];
      memory.announceSlice({ owned_partition: owned, from, to: from + 1n, rows, getVersion: () => 1 });
      await moveOn(postgres, { partition, epoch, next_offset });
      memory.confirmSlice({ ...owned, next_offset: from + 1n });
      const added = Array.from({ length: n + 1 }, (_, number) => number);
      expect(arrived).to.deep.equal(added);
      proxy.release();
      cache.follow((await before).snapshot);
      expect(arrived).to.deep.equal(added);
    }
    // Nor does one that sees it.
    cache.follow(await readChanges(postgres));
    expect(arrived).to.have.length(20);
  });

  it('has an `as_of` of its latest caller, however long the reads before it last', async () => {
    const own = connectPostgres(proxy.url);
    const [early, late] = [new Date('2026-01-01T00:00:00Z'), new Date('2026-01-01T01:00:00Z')];
    const wentBy = proxy.hold('farthing_changes\0');
    const before = loadRecent(own, IDLE_LOG, early);
    await wentBy;
    // Longer than a freshness is remembered.
    await pause(600);
    await own.raw('update customers set name = name');
    const after = loadRecent(own, IDLE_LOG, late);
    proxy.release();
    expect([(await before).as_of, (await after).as_of].map((text) => Date.parse(text))).to.deep.equal([+early, +late]);
    await own.destroy();
  });

  it('fails for the callers of one read alone', async () => {
    const own = connectPostgres(database.postgres_url);
    let isDown = true;
    const log = {
      lag: async () => {
        if (isDown) throw new Error('the log does not answer');
        return [];
      },
    } as unknown as EventLog;
    const failed = await Promise.allSettled(Array.from({ length: 3 }, () => loadRecent(own, log)));
    expect(new Set(failed.map(({ status }) => status))).to.deep.equal(new Set(['rejected']));
    isDown = false;
    expect((await loadRecent(own, log)).snapshot.progress).to.have.length(2);
    await own.destroy();
  });
}).timeout(60_000);
