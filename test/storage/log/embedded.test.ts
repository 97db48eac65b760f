/** The embedded log keeps the promises of every log, over a connection to Postgres that can be cut. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { openEmbeddedLog } from '../../../storage/log/embedded.ts';
import type { EventLog } from '../../../storage/log/log.ts';
import { connectPostgres } from '../../../storage/postgres.ts';
import { cutTo } from '../../support/cut.ts';
import { freshDatabase } from '../../support/stores.ts';
import { until } from '../../support/until.ts';
import { entry, eventually, type LogUnderTest, logContract, Reader } from './contract.ts';

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
  return changed.href;
}
