/**
 * Who asks for a look at one time is told of one, each in a small portion of all; and it says the progress as Postgres has it, also where the last look is
 * told again because this process has asked for nothing since (docs/decisions/0007-cached-answers.md).
 */
import { expect } from 'chai';
import fc from 'fast-check';
import type { Knex } from 'knex';
import pg from 'pg';
import type { Microseconds } from '../../../core/foundation/time/instant.ts';
import { getCache } from '../../../storage/cache/cached-answers.ts';
import { type ChangeSnapshot, readChanges, requestChanges } from '../../../storage/cache/change-feed.ts';
import { trackOwnStatements } from '../../../storage/postgres/interceptors/own-statements.ts';
import { connectPostgres } from '../../../storage/postgres/pool/postgres.ts';
import { finishSlice, NO_EVENTS, readProgress } from '../../../storage/progress/slices.ts';
import { UsageCache } from '../../../storage/usage/usage-cache.ts';
import { type HoldingProxy, startHoldingProxy } from '../../support/holding-proxy.ts';
import { samples } from '../../support/samples.ts';
import { type FreshDatabase, freshDatabase } from '../../support/stores.ts';
import { until } from '../../support/until.ts';

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
          new Promise<ChangeSnapshot | null>((seen) =>
            requestChanges(postgres, (look) => {
              happened.push(`told ${n}`);
              // As node's HTTP server ends an answer.
              process.nextTick(() => {
                happened.push(`ended ${n}`);
                seen(look);
              });
            }),
          ),
      ),
    );
    expect(new Set(looks.map((look) => look!.number))).to.have.property('size', 1);
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
    expect(first).to.include({ partition: 9, epoch: 2n, next_offset: 9007199254740993n, phase: 'idle', gate: null });
    expect(first).to.include({ slice_from: null, slice_to: null, last_record: null, rebuilds: 0n, is_wide: false });
    expect(second).to.include({ partition: 10, epoch: 1n, next_offset: 0n });
    await postgres.raw(
      `update slices set slice_from = next_offset, slice_to = next_offset + 2, phase = 'raw', gate = 'one' where partition = 9`,
    );
    const [moved, still] = (await readChanges(postgres)).progress;
    expect(moved).to.deep.equal({
      ...first,
      slice_from: 9007199254740993n,
      slice_to: 9007199254740995n,
      phase: 'raw',
      gate: 'one',
    });
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

describe('a look at a database that nobody else writes to', () => {
  let database: FreshDatabase;
  let postgres: Knex;
  let other: Knex;
  let stranger: pg.Client;
  before(async () => {
    database = await freshDatabase();
    postgres = database.postgres;
    trackOwnStatements(postgres, database.postgres_url);
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
  const partitionsSeen = async () => (await readChanges(postgres)).progress.length;
  const partitions = async () => Number((await stranger.query('select count(*) from slices')).rows[0].count);
  const offsets = () => offsetsBy(stranger);
  const offsetsSeen = async () => progressOf(await readChanges(postgres));
  /** The partition with this number of those that there are is one further. */
  const move = async (pool: Knex, number: number) => {
    const places = await placesBy(stranger);
    if (places.length > number) await moveOn(pool, places[number]!);
  };

  it('is that of before while nothing was asked, or nothing that changes anything', async () => {
    const isThatOfBefore = async () => {
      const before = await readChanges(postgres);
      await postgres.raw('select count(*) from customers');
      await postgres.transaction((transaction) => transaction.raw('select id from customers for update'));
      await postgres.raw(`update log_partitions set committed_offset = committed_offset`);
      return (await readChanges(postgres)).number === before.number;
    };
    // One that stands for too long is none of before.
    await until('it is told again', isThatOfBefore);
  });

  it('is told at once, to whoever asks while it stands', async () => {
    await until('it stands', async () => {
      await readChanges(postgres);
      let told: ChangeSnapshot | null = null;
      requestChanges(postgres, (look) => void (told = look));
      return told !== null;
    });
  });

  it('is theirs, too, who ask while it is out and nothing else is', async () => {
    await until('both are told of one', async () => {
      await postgres.raw('update customers set name = name');
      const asked = new Promise<ChangeSnapshot>((told) => setImmediate(() => void readChanges(postgres).then(told)));
      const [first, second] = await Promise.all([readChanges(postgres), asked]);
      return first.number === second.number;
    });
  });

  it('is another one where others may write, too', async () => {
    const { number } = await readChanges(other);
    expect((await readChanges(other)).number).to.equal(number + 1);
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
      move: (pool) => move(pool, 0),
      'move two at once': (pool) => Promise.all([move(pool, 0), move(postgres, 1)]),
      'move beside questions': (pool) =>
        Promise.all([move(pool, 1), readChanges(postgres), readProgress(pool), readChanges(postgres)]),
      'move in a transaction': (pool) => pool.transaction((transaction) => move(transaction, 0)),
      'move and take back': (pool) =>
        pool
          .transaction(async (transaction) => {
            await move(transaction, 0);
            throw new Error('taken back');
          })
          .catch(() => undefined),
      'move nothing': (pool) => moveOn(pool, { partition: 999, epoch: '1', next_offset: '0' }).catch(() => undefined),
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
        if (open.size > 0 && /^(add|move|take)/.test(name)) continue;
        await steps[name]!(isOther ? other : postgres);
        expect(await offsetsSeen(), name).to.deep.equal(await offsets());
      }
      await steps['roll back']!(postgres);
    });
    await fc.assert(law, { numRuns: samples(60) });
  });

  it('knows soon what somebody else has written all the same', async () => {
    await until('nothing is out', async () => (await partitionsSeen()) === (await partitions()));
    await stranger.query(`insert into slices (partition, epoch, next_offset) values (1000, 1, 0)`);
    await until('it is seen', async () => (await partitionsSeen()) === (await partitions()));
  });

  it('waits for what is out, and is a new one then', async () => {
    await stranger.query('begin');
    await stranger.query('lock table customers');
    const waiting = Promise.resolve(postgres.raw(`update customers set name = 'x'`));
    await until('it waits', async () => {
      const { rows } = await stranger.query('select from pg_locks where not granted');
      return rows.length > 0;
    });
    const [first, second] = await Promise.all([readChanges(postgres), readChanges(postgres)]);
    expect(first.number).to.equal(second.number);
    expect((await readChanges(postgres)).number).to.equal(first.number + 1);
    await stranger.query('commit');
    await waiting;
    expect((await readChanges(postgres)).number).to.equal(first.number + 2);
  });
}).timeout(60_000);

describe('a look while a statement is out that moves how far usage is counted', () => {
  let database: FreshDatabase;
  let postgres: Knex;
  let proxy: HoldingProxy;
  let stranger: pg.Client;
  before(async () => {
    database = await freshDatabase();
    proxy = await startHoldingProxy(database.postgres_url);
    postgres = connectPostgres(proxy.url);
    trackOwnStatements(postgres, proxy.url);
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
  const offsets = () => offsetsBy(stranger);
  const offsetsSeen = async () => progressOf(await readChanges(postgres));
  const toldAtOnce = (): ChangeSnapshot | null => {
    let told: ChangeSnapshot | null = null;
    requestChanges(postgres, (look) => void (told = look));
    return told;
  };
  const next = async () => (await placesBy(stranger))[0]!;
  /** It is committed, and nobody here has been told of it. */
  const heldMove = async () => {
    const before = await next();
    const wentBy = proxy.hold('slice_ledger');
    const moved = moveOn(postgres, before);
    await wentBy;
    await until('it is committed', async () => (await next()).next_offset !== before.next_offset);
    return async () => {
      proxy.release();
      await moved;
    };
  };

  it('is another one as soon as somebody has read how far it is', async () => {
    for (let n = 0; n < 20; n++) {
      await readChanges(postgres);
      const end = await heldMove();
      const read = await readProgress(postgres);
      expect(progressOf(await readChanges(postgres))).to.deep.equal(await offsets());
      expect(read.map(({ partition, next_offset }) => [partition, next_offset])).to.deep.equal(await offsets());
      await end();
      expect(await offsetsSeen()).to.deep.equal(await offsets());
    }
  });

  it('is that of before, at once; and the one after knows what was moved without another question', async () => {
    await until('it stands while one is out', async () => {
      await readChanges(postgres);
      const before = toldAtOnce();
      const end = await heldMove();
      const meanwhile = toldAtOnce();
      await end();
      const after = toldAtOnce();
      return (
        before !== null &&
        meanwhile?.number === before.number &&
        after?.number === before.number + 1 &&
        String(progressOf(after)) === String(await offsets())
      );
    });
  });

  it('has both of two that were out, of which the first was seen and the second answered', async () => {
    for (let n = 0; n < 20; n++) {
      await readChanges(postgres);
      const end = await heldMove();
      await readProgress(postgres);
      await moveOn(postgres, (await placesBy(stranger))[1]!);
      expect(await offsetsSeen()).to.deep.equal(await offsets());
      await end();
    }
  });

  it('brings what is kept to each step, by a look of another number', async () => {
    const memory = new UsageCache();
    const kept = getCache(memory);
    for (let n = 0; n < 20; n++) {
      await postgres.raw('update customers set name = name');
      kept.follow(await readChanges(postgres));
      await (await heldMove())();
      const look = await readChanges(postgres);
      kept.follow(look);
      expect(memory.findLag(look.progress)).to.deep.equal([]);
    }
  });

  it('that was out before it knows it, too', async () => {
    for (let n = 0; n < 20; n++) {
      await postgres.raw('update customers set name = name');
      const wentBy = proxy.hold('look\0');
      const asked = readChanges(postgres);
      await wentBy;
      await moveOn(postgres, await next());
      proxy.release();
      await asked;
      expect(await offsetsSeen()).to.deep.equal(await offsets());
    }
  });

  it('knows soon, and then always, what the server has done of one whose connection was lost', async () => {
    const before = await next();
    await stranger.query('begin');
    await stranger.query('select from slices where partition = 0 for update');
    const wentBy = proxy.hold('slice_ledger');
    const failed = moveOn(postgres, before).catch((error: Error) => error);
    await wentBy;
    await until('it waits in the server', async () => {
      const { rows } = await stranger.query('select from pg_locks where not granted');
      return rows.length > 0;
    });
    proxy.lose();
    expect(await failed).to.be.an('error');
    await readChanges(postgres);
    expect(toldAtOnce(), 'one that stands').to.equal(null);
    await stranger.query('commit');
    await until('it is done', async () => (await next()).next_offset !== before.next_offset);
    expect(await offsetsSeen()).to.deep.equal(await offsets());
  });
}).timeout(60_000);
