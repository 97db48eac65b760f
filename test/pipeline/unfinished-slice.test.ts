/** A slice that a crash left and that is read in several batches: until it is stored whole, nothing of it is committed or goes. */
import { expect } from 'chai';
import type { Knex } from 'knex';
import { pino } from 'pino';
import { startProcessor } from '../../pipeline/processor.ts';
import { type EmbeddedLog, openEmbeddedLog } from '../../storage/log/embedded/embedded.ts';
import type { LogConsumer } from '../../storage/log/log.ts';
import { SCOPE } from '../support/metering.ts';
import { isLogProcessed, isSettled } from '../support/settled.ts';
import { type FreshDatabase, freshDatabase } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** More than one read takes, and more than are kept behind what was committed. */
const RECORDS = 2_500;

describe('a slice that a crash left, of more records than a batch', () => {
  let database: FreshDatabase;
  let log: EmbeddedLog;
  let processor: LogConsumer;

  before(async () => {
    database = await freshDatabase();
    const options = { partition_count: 1, append_timeout_ms: 5_000, linger_ms: 0, batch_events_max: 700 };
    log = await openEmbeddedLog(database.postgres, options);
    await log.append(Array.from({ length: RECORDS }, (_none, index) => singleEvent(index)));
    await database.postgres.raw(
      `insert into slices (partition, epoch, owner, slice_from, slice_to, phase) values (0, 1, 'killed', 0, ?, 'raw')`,
      [RECORDS],
    );
  });
  after(async () => {
    await processor.stop();
    await log.close();
    await database.close();
  });

  it('is held back in memory, and stays in the log', async () => {
    const { postgres } = database;
    const logger = pino({ level: 'fatal' });
    processor = await startProcessor(
      { postgres, clickhouse: database.clickhouse, log },
      { owner: 'next', slice_events_max: 700, logger },
    );
    const release = await holdAtPlan(postgres);
    const kept = await postgres.raw(`select count(*)::int as n, min("offset")::int as first from log_records`);
    const [lag] = await log.lag();
    await release();
    expect(kept.rows[0], 'in the log while the slice is planned again').to.deep.equal({ n: RECORDS, first: 0 });
    expect(lag!.committed_offset).to.equal(0n);
  });

  it('has its effect once, and then may go', async () => {
    await until('it is stored', () => isSettled(database.postgres, () => isLogProcessed(log)));
    const query = 'select toUInt32(count()) as n, toUInt32(uniqExact(event_id)) as ids from events';
    const [found] = await (await database.clickhouse.query({ query, format: 'JSONEachRow' })).json();
    expect(found).to.deep.equal({ n: RECORDS, ids: RECORDS });
    const { rows } = await database.postgres.raw(`select min("offset")::int as first from log_records`);
    expect(rows[0].first).to.equal(RECORDS - 1_000);
  });
});

function singleEvent(index: number) {
  const body = [{ event_id: `e${index}`, event_name: 'call', external_customer_id: 'acme' }];
  return {
    ...SCOPE,
    partition: 0,
    kind: 'events' as const,
    received_at_us: Date.now() * 1000,
    generated_ids: null,
    event_count: 1,
    body: Buffer.from(JSON.stringify(body)),
  };
}

/** Lets the worker take the partition, and keeps it from planning anything; resolves when it waits for that. */
async function holdAtPlan(postgres: Knex): Promise<() => Promise<void>> {
  const transaction = await until('the partition is taken', async () => {
    const begun = await postgres.transaction();
    const { rows } = await begun.raw(`select from slices where partition = 0 and epoch = 2 for update`);
    if (rows.length === 1) return begun;
    await begun.rollback();
    return null;
  });
  await until('it waits to plan its slice', async () => {
    const { rows } = await postgres.raw(
      `select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%update slices%'`,
    );
    return rows.length > 0;
  });
  return async () => void (await transaction.rollback());
}
