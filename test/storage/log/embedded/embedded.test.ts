/** The embedded log keeps the promises of every log, over a connection to Postgres that can be cut. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { countUnaccountedEvents, logAccounts } from '../../../../storage/audit/log-accounts.ts';
import { type EmbeddedLog, openEmbeddedLog } from '../../../../storage/log/embedded/embedded.ts';
import type { EventLog, LogConsumer } from '../../../../storage/log/log.ts';
import { connectPostgres } from '../../../../storage/postgres/pool/postgres.ts';
import { cutTo } from '../../../support/cut.ts';
import { type FreshDatabase, freshDatabase } from '../../../support/stores.ts';
import { until } from '../../../support/until.ts';
import { entry, eventually, type LogUnderTest, logContract, Reader, settled, textOf } from '../contract.ts';

describe('the embedded log', () => {
  logContract((partitions) => newEmbeddedLog(partitions));

  it('takes a partition over from a consumer that has died, when its lease is over', async () => {
    const database = await freshDatabase();
    const options = { partition_count: 1, append_timeout_ms: 5_000, lease_ms: 600, linger_ms: 0 };
    const way = await cutTo(addressOf(database.postgres_url));
    const dying = connectPostgres(through(database.postgres_url, way.port));
    const [first, second] = [await openEmbeddedLog(dying, options), await openEmbeddedLog(database.postgres, options)];
    const [one, two] = [new Reader(), new Reader()];
    const dead = await first.consume(one);
    await one.until(() => one.owns(0));
    const living = await second.consume(two);
    await way.cut();
    await two.until(() => two.owns(0));
    await second.append([entry(0, 'after the death')]);
    await two.until(() => two.records.length === 1);
    expect(one.records).to.deep.equal([]);
    await way.restore();
    await Promise.all([dead.stop(), living.stop()]);
    await Promise.all([first.close(), second.close()]);
    await dying.destroy();
    await way.close();
    await database.close();
  });

  it('takes the rows of its partitions in one order, so that a renewed lease and an append never wait for each other', async () => {
    const database = await freshDatabase();
    const { postgres } = database;
    const options = { partition_count: 3, append_timeout_ms: 5_000, lease_ms: 600, linger_ms: 0 };
    const log = await openEmbeddedLog(postgres, options);
    const reader = new Reader();
    const consumer = await log.consume(reader);
    await reader.until(() => [0, 1, 2].every((partition) => reader.owns(partition)));
    // From here on the last row comes first in the table.
    for (const partition of [2, 1, 0])
      await postgres.raw(`update log_partitions set next_offset = next_offset where partition = ?`, [partition]);
    const waiting = async () => {
      const { rows } = await postgres.raw(
        `select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      return rows[0].n > 0;
    };
    const free = await postgres.transaction(async (transaction) => {
      await transaction.raw(`select from log_partitions where partition = 1 for update`);
      await until('a renewal waits for the second row', waiting);
      const { rows } = await postgres.raw(`select partition from log_partitions for update skip locked`);
      return rows;
    });
    await consumer.stop();
    await log.close();
    await database.close();
    expect(free).to.deep.equal([{ partition: 2 }]);
  });
});

describe('records that the embedded log has lost', () => {
  let database: FreshDatabase;
  let log: EmbeddedLog;
  let consumer: LogConsumer | null;

  beforeEach(async () => {
    database = await freshDatabase();
    log = await openEmbeddedLog(database.postgres, { partition_count: 1, append_timeout_ms: 5_000, linger_ms: 0 });
    consumer = null;
  });
  afterEach(async () => {
    await consumer?.stop();
    await log.close();
    await database.close();
  });

  const append = async (count: number) => {
    await log.append(Array.from({ length: count }, (_none, index) => entry(0, `${index}`)));
  };
  const lose = (where: string) => database.postgres.raw(`delete from log_records where ${where}`);
  const told = async (reader: Reader) => {
    await reader.until(() => reader.errors.length > 0);
    return String(reader.errors[0]);
  };

  it('in the middle: what stands before them is processed, and the partition stops exactly there', async () => {
    await append(10);
    await lose('"offset" in (4, 5)');
    const reader = new Reader();
    consumer = await log.consume(reader);
    expect(await told(reader)).to.include(
      'partition 0 is halted: expected the record at offset 4, got offset 6: the 2 records before it are not in the log',
    );
    expect(reader.of(0).map(textOf)).to.deep.equal(['0', '1', '2', '3']);
    expect((await log.lag())[0]!.committed_offset).to.equal(4n);
  });

  it('at the end: nothing that is found is not nothing that is there', async () => {
    await append(3);
    await lose('"offset" >= 1');
    const reader = new Reader();
    consumer = await log.consume(reader);
    expect(await told(reader)).to.include('expected the record at offset 1: the log goes up to 3, but the records');
    expect(reader.of(0).map(textOf)).to.deep.equal(['0']);
    expect(reader.caughtUpWith.size).to.equal(0);
  });

  it('never because they were read and are held back', async () => {
    await append(2_500);
    const reader = new Reader({ hold_back: 2_501 });
    consumer = await log.consume(reader);
    await reader.until(() => reader.given.length === 2_500);
    const { rows } = await database.postgres.raw(
      `select count(*)::int as n, min("offset")::int as first from log_records`,
    );
    expect(rows[0]).to.deep.equal({ n: 2_500, first: 0 });
    await append(1);
    await settled(log);
    expect(reader.records.length).to.equal(2_501);
  });

  it('nor does a batch from memory hold more of them than one that is read', async () => {
    const reader = new Reader({ hold: true });
    consumer = await log.consume(reader);
    await append(1);
    await reader.until(() => reader.working === 1);
    const sizes: number[] = [];
    reader.seen = (batch) => sizes.push(batch.records.length);
    await append(5_000);
    reader.release();
    await reader.until(() => reader.records.length === 5_001);
    expect(sizes).to.deep.equal([1, 2_000, 2_000, 1_000]);
  });
});

describe('the accounts of the embedded log', () => {
  it('are even: accepted is what the ledger says and what waits', async () => {
    const { postgres, ...database } = await freshDatabase();
    const log = await openEmbeddedLog(postgres, { partition_count: 3, append_timeout_ms: 5_000 });
    const uneven = async () => (await logAccounts(postgres)).map(countUnaccountedEvents);
    await log.append([
      entry(0, 'a', { event_count: 7 }),
      entry(2, 'b', { event_count: 2 }),
      entry(0, 'barrier', { kind: 'control', event_count: 0 }),
      entry(0, 'c', { event_count: 5 }),
    ]);
    const { rows } = await postgres.raw(`select accepted_events::int as n from log_partitions order by partition`);
    expect(rows.map(({ n }: { n: number }) => n)).to.deep.equal([12, 0, 2]);
    expect(await uneven()).to.deep.equal([0, 0, 0]);
    await postgres.raw(
      `insert into slices (partition, next_offset) values (0, 2);
       insert into slice_ledger (partition, from_offset, to_offset, records, events, stored, duplicates, conflicts, dead_letters, unread)
       values (0, 0, 2, 2, 7, 4, 1, 1, 1, 0)`,
    );
    expect(await uneven(), 'a slice is done').to.deep.equal([0, 0, 0]);
    await postgres.raw(`delete from log_records where partition = 0 and "offset" = 0`);
    expect(await uneven(), 'what is done may go').to.deep.equal([0, 0, 0]);
    await postgres.raw(`delete from log_records where partition = 0 and "offset" = 2`);
    expect(await uneven(), 'what waits may not').to.deep.equal([5, 0, 0]);
    await postgres.raw(`update slices set next_offset = 0`);
    expect(await uneven(), 'the records behind the ledger wait once more').to.deep.equal([5, 0, 0]);
    await log.append([entry(1, 'd', { event_count: 3 })]);
    await postgres.raw(`insert into slices (partition, next_offset) values (1, 1)`);
    expect(await uneven(), 'progress without a ledger').to.deep.equal([5, 3, 0]);
    await log.close();
    await database.close();
  });
});

describe('the embedded log with its bytes in files', () => {
  // Every record goes into a file, and a file is soon full.
  logContract((partitions) => newEmbeddedLog(partitions, { inline_bytes_max: 0, segment_bytes_max: 200 }));
});

type FileOptions = { inline_bytes_max: number; segment_bytes_max: number };

async function newEmbeddedLog(partition_count: number, files?: FileOptions): Promise<LogUnderTest> {
  const directory = files && mkdtempSync(join(tmpdir(), 'farthing-log-'));
  const database = await freshDatabase();
  const way = await cutTo(addressOf(database.postgres_url));
  const pools: ReturnType<typeof connectPostgres>[] = [];
  return {
    open: async (options = {}): Promise<EventLog> => {
      const pool = connectPostgres(through(database.postgres_url, way.port), { acquire_timeout_ms: 2_000 });
      pools.push(pool);
      return openEmbeddedLog(pool, {
        partition_count,
        append_timeout_ms: 5_000,
        lease_ms: 3_000,
        linger_ms: 20,
        ...(directory ? { directory: join(directory, 'log'), ...files } : {}),
        ...options,
      });
    },
    goAway: () => way.cut(),
    comeBack: () => way.restore(),
    hang: async () => way.hang(),
    goOn: async () => way.goOn(),
    loseBefore: async (partition, offset) => {
      const gone = [partition, String(offset)];
      await database.postgres.raw(`delete from log_records where partition = ? and "offset" < ?`, gone);
    },
    close: async () => {
      await eventually(() => Promise.all(pools.map((pool) => pool.destroy())));
      await way.close();
      await database.close();
      if (directory) rmSync(directory, { recursive: true });
    },
  };
}

function addressOf(url: string): { host: string; port: number } {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port || 5432) };
}

function through(url: string, port: number): string {
  const changed = new URL(url);
  changed.hostname = '127.0.0.1';
  changed.port = String(port);
  changed.searchParams.delete('host');
  return changed.href;
}
