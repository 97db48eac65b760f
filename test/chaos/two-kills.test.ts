/**
 * Two kills in a row with small records: the slice that the first leaves is read in several batches after it, and the second
 * comes while they are in hand. Every event that was accepted is counted.
 */
import { join } from 'node:path';
import { expect } from 'chai';
import type { Knex } from 'knex';
import { readAddresses } from '../../storage/embedded/addresses.ts';
import { connectPostgres } from '../../storage/postgres/pool/postgres.ts';
import { type ServiceProcess, startServiceProcess, temporaryDirectory } from '../support/service.ts';
import { isSettled } from '../support/settled.ts';
import { until } from '../support/until.ts';

const SENDERS = 40;
/** More than are kept in the log behind what was committed, and than a service reads at once that was started with `FEW`. */
const LONG = 1_400;
/** All of them are there before the slice is cut, and a batch of the log holds no more than two thousand. */
const EVENTS = 3_000;
const FEW = { SLICE_EVENTS_MAX: '300' };
/** A lease of who was killed runs out first, and the machine may be busy. */
const PATIENCE_MS = 90_000;
/** Of the advisory lock that holds the end of a long slice. */
const HELD = 20_260_301;

describe('kill -9, and once more while the unfinished slice is in hand', function () {
  this.timeout(400_000);
  const directory = temporaryDirectory();
  const DATA_DIR = join(directory.path, 'data');
  const settings = { DATA_DIR, BOOTSTRAP_API_KEY: 'sk_test_two_kills', LOG_PARTITIONS: '1', SLICE_WAIT_MS: '500' };
  let service: ServiceProcess;

  after(async () => {
    await service.stop();
    directory.remove();
  });

  it('loses nothing of single events', async () => {
    service = await startServiceProcess(settings);
    const meter = { name: 'calls', event_name: 'call', aggregation: { type: 'COUNT' }, reset_usage: 'BILLING_PERIOD' };
    const { body } = await service.request('POST', '/meters', { body: meter });
    await killInALongSlice(service, DATA_DIR);
    // What is read at once is now less than the slice.
    service = await startServiceProcess({ ...settings, ...FEW });
    await killWhenItIsInHand(service, DATA_DIR);
    service = await startServiceProcess({ ...settings, ...FEW });
    await letItPlan(DATA_DIR);
    await settled(service);
    const question = { meter_id: body.id, start_time: '2026-03-01T00:00:00Z', end_time: '2026-03-02T00:00:00Z' };
    const usage = await service.request('POST', '/events/usage/meter', { body: question });
    expect(usage.status, usage.text).to.equal(200);
    expect(usage.body.event_count).to.equal(EVENTS + 1);
  });
});

/** The store of events stands still under one event; what comes meanwhile is the next slice, and that is not finished. */
async function killInALongSlice(service: ServiceProcess, dataDir: string): Promise<void> {
  const postgres = connectPostgres(readAddresses(dataDir)!.postgres_url);
  const clickhouse = service.store('clickhouse');
  const letGo = await holdFinishOfLongSlices(postgres);
  const letMessagesCome = await holdMessages(service, postgres);
  process.kill(clickhouse, 'SIGSTOP');
  await sendOne(service, 0);
  await until('a slice of one', () => hasSliceOf(postgres, 1));
  let sent = 0;
  const sender = async () => {
    while (sent < EVENTS) await sendOne(service, ++sent);
  };
  await Promise.all(Array.from({ length: SENDERS }, sender));
  await letMessagesCome();
  process.kill(clickhouse, 'SIGCONT');
  try {
    await until('a long slice', () => hasSliceOf(postgres, LONG), PATIENCE_MS);
  } finally {
    service.child.kill('SIGKILL');
    await service.ended;
    await letGo();
    await postgres.destroy();
  }
}

/**
 * A control message is a slice of its own: one that comes while events are sent, as that for daily rollups soon after a start, cuts
 * what is read at once in two, each of them short. So all that are wanted have come, and none can.
 */
async function holdMessages(service: ServiceProcess, postgres: Knex): Promise<() => Promise<void>> {
  const transaction = await until(
    'every message has come through the log',
    async () => {
      const held = await postgres.transaction();
      await held.raw('lock table log_outbox in exclusive mode');
      if (await isSettled(held, () => hasCaughtUp(service))) return held;
      await held.rollback();
      return null;
    },
    PATIENCE_MS,
  );
  return async () => {
    await transaction.rollback();
  };
}

/** Otherwise a fast machine is done with the slice between two looks at it. Until it is told, it is not planned again either. */
async function holdFinishOfLongSlices(postgres: Knex): Promise<() => Promise<void>> {
  await postgres.raw(`create function wait_to_finish() returns trigger language plpgsql as
    'begin perform pg_advisory_xact_lock_shared(${HELD}); return new; end'`);
  await postgres.raw(`create trigger wait_to_finish before update on slices for each row
    when (new.slice_to is null and old.slice_to - old.slice_from >= ${LONG}) execute function wait_to_finish()`);
  await postgres.raw(`create table let_it_plan ()`);
  await postgres.raw(`create function wait_to_plan() returns trigger language plpgsql as
    'begin while not exists (select from let_it_plan) loop perform pg_sleep(0.02); end loop; return new; end'`);
  await postgres.raw(`create trigger wait_to_plan before update on slices for each row
    when (new.epoch = old.epoch and new.phase = old.phase and new.slice_from = old.slice_from
          and new.slice_to - old.slice_from >= ${LONG}) execute function wait_to_plan()`);
  const transaction = await postgres.transaction();
  await transaction.raw(`select pg_advisory_xact_lock(${HELD})`);
  return async () => {
    await transaction.rollback().catch(() => {}); // Its Postgres has ended, too.
  };
}

/** The worker has the partition, and waits to plan what it has read of the slice: all of it. */
async function killWhenItIsInHand(service: ServiceProcess, dataDir: string): Promise<void> {
  const postgres = connectPostgres(readAddresses(dataDir)!.postgres_url);
  const waitsToPlan = async () => {
    const waiting = await postgres.raw(
      `select from pg_stat_activity
        where datname = current_database() and wait_event = 'PgSleep' and query like '%update slices%'`,
    );
    return waiting.rows.length > 0 && (await hasSliceOf(postgres, LONG));
  };
  try {
    await until('it waits to plan the slice', waitsToPlan, PATIENCE_MS);
  } finally {
    service.child.kill('SIGKILL');
    await service.ended;
    await postgres.destroy();
  }
}

async function letItPlan(dataDir: string): Promise<void> {
  const postgres = connectPostgres(readAddresses(dataDir)!.postgres_url);
  await postgres.raw('insert into let_it_plan default values');
  await postgres.destroy();
}

async function hasSliceOf(postgres: Knex, records: number): Promise<boolean> {
  const { rows } = await postgres.raw(`select from slices where slice_to - slice_from >= ?`, [records]);
  return rows.length === 1;
}

async function sendOne(service: ServiceProcess, number: number): Promise<void> {
  const event = {
    event_id: `e${number}`,
    event_name: 'call',
    external_customer_id: 'acme',
    timestamp: '2026-03-01T12:00:00Z',
  };
  const answer = await service.request('POST', '/events', { body: event });
  expect(answer.status, answer.text).to.equal(202);
}

/** Everything that was accepted has had its effect. */
async function settled(service: ServiceProcess): Promise<void> {
  await until('the pipeline has caught up', () => hasCaughtUp(service), PATIENCE_MS);
}

async function hasCaughtUp(service: ServiceProcess): Promise<boolean> {
  const { status, body } = await service.request('GET', '/events/monitoring');
  return status === 200 && body.consumption_lag === 0 && body.post_processing_lag === 0;
}
