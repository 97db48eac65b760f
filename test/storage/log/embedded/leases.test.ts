/** Leases of the embedded log while the main loop of their holder is busy, frozen, or its process is stopped. */
import { once } from 'node:events';
import { expect } from 'chai';
import type { Knex } from 'knex';
import { isUnavailable } from '../../../../storage/foundation/failure.ts';
import { type EmbeddedLog, openEmbeddedLog } from '../../../../storage/log/embedded/embedded.ts';
import { startRenewing, stopRenewing } from '../../../../storage/log/embedded/lease-renewals.ts';
import { EmbeddedLeases } from '../../../../storage/log/embedded/leases.ts';
import type { LogConsumer } from '../../../../storage/log/log.ts';
import { connectPostgres } from '../../../../storage/postgres/pool/postgres.ts';
import { cutTo } from '../../../support/cut.ts';
import { type FreshDatabase, freshDatabase } from '../../../support/stores.ts';
import { until } from '../../../support/until.ts';
import { entry, Reader } from '../contract.ts';
import { LeaseStage, waitForRenewal } from './lease-stage.ts';

const LEASE_MS = 1_000;

describe('leases of the embedded log', () => {
  let stage: LeaseStage;
  const startHolder = async (alive_ms: number, consumers = 1) => {
    stage = await LeaseStage.start({ alive_ms, consumers, lease_ms: LEASE_MS });
    return stage;
  };
  const lease = async () => (await stage.listLeases())[0]!;
  afterEach(() => stage.stop());

  it('are kept while the main loop is busy for twice as long', async () => {
    const { log, rival, said } = await startHolder(60_000);
    const { owner } = await lease();
    await log.append([entry(0, `block ${2 * LEASE_MS}`)]);
    await stage.hears('blocked');
    await stage.hears('ours');
    expect(await lease()).to.deep.equal({ owner, holds: true });
    await log.append([entry(0, `block ${2 * LEASE_MS}`)]);
    await until('it is busy again', async () => stage.heard('ours') === 2);
    expect(rival.assignments(0)).to.equal(0);
    expect(said.filter((word) => word === 'assigned' || word === 'revoked' || word === 'lost')).to.deep.equal([
      'assigned',
    ]);
  });

  it('are lost by a main loop that does not come back, though the thread lives', async () => {
    const { log, rival, said } = await startHolder(LEASE_MS);
    await log.append([entry(0, `block ${6 * LEASE_MS}`)]);
    await stage.hears('blocked');
    await until('the other has it', async () => rival.owns(0));
    expect(said).to.not.include('lost');
    await stage.hears('lost');
    await stage.hears('revoked');
  });

  it('are over when a process that was stopped goes on, and another has the partition', async () => {
    const { log, rival } = await startHolder(60_000);
    await log.append([entry(0, `block ${3 * LEASE_MS}`)]);
    await stage.hears('blocked');
    stage.child.kill('SIGSTOP');
    await until('the other has it', async () => rival.owns(0));
    const { owner } = await lease();
    stage.child.kill('SIGCONT');
    await stage.hears('lost');
    await stage.hears('revoked');
    await log.append([entry(0, 'to the other')]);
    await rival.until(() => rival.records.length >= 1);
    expect(await lease()).to.deep.equal({ owner, holds: true });
  });

  it('are kept when the connection of their thread is broken', async () => {
    const { rival } = await startHolder(60_000);
    stage.child.kill('SIGKILL');
    await once(stage.child, 'exit');
    await until('the other has it', async () => rival.owns(0));
    const ended = await stage.database.postgres.raw(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = 'farthing leases' and datname = current_database()`,
    );
    expect(ended.rows.length).to.be.at.least(1);
    const until_ms = performance.now() + 3 * LEASE_MS;
    await until('three leases have passed', async () => performance.now() > until_ms);
    expect(rival.assignments(0)).to.equal(1);
    expect((await lease()).holds).to.equal(true);
  });

  it('are kept by a consumer when another of its process stops', async () => {
    const { log, rival, said } = await startHolder(60_000, 2);
    const before = await stage.listLeases();
    said.length = 0;
    await log.append([entry(0, 'stop')]);
    await stage.hears('stopped');
    await until('the other has it', async () => rival.owns(0));
    await stage.waitForRenewal([1]);
    await log.append([entry(1, `block ${2 * LEASE_MS}`)]);
    await stage.hears('ours');
    expect(rival.assignments(1)).to.equal(0);
    expect((await stage.listLeases())[1]).to.deep.equal(before[1]);
    expect([stage.heard('revoked'), stage.heard('lost'), stage.heard('thread')]).to.deep.equal([1, 0, 0]);
  });

  it('are those of the partitions that are free, and no more than asked for', async () => {
    await startHolder(60_000);
    const [one, other] = ['one', 'other'].map(
      (id) => new EmbeddedLeases(stage.database.postgres, { id, lease_ms: 60_000, partition_count: 4 }),
    ) as [EmbeddedLeases, EmbeddedLeases];
    await stage.database.postgres.raw(`insert into log_partitions (partition) select generate_series(1, 3)`);
    expect(await one.takeFree(2, [])).to.deep.equal([1, 2]);
    expect([0, 1, 2, 3].map((partition) => one.holds(partition))).to.deep.equal([false, true, true, false]);
    expect(await other.takeFree(5, [])).to.deep.equal([3]);
    // What has our name and is not in our hands is taken again; what is still at work is left.
    expect(await one.takeFree(5, [1])).to.deep.equal([2]);
    await one.stop();
    expect(await other.takeFree(5, [3])).to.deep.equal([1, 2]);
    await other.stop();
  });
});

describe('leases of an embedded log that cannot renew them', () => {
  let database: FreshDatabase;
  let log: EmbeddedLog;
  let consumer: LogConsumer;
  let rival: Reader;
  const options = { id: 'another', lease_ms: 60_000, partition_count: 1 };
  let pool: Knex;
  let threads: number;
  const made = () => void threads++;

  beforeEach(async () => {
    database = await freshDatabase();
    rival = new Reader();
    log = await openEmbeddedLog(database.postgres, {
      partition_count: 1,
      append_timeout_ms: 5_000,
      lease_ms: LEASE_MS,
    });
    consumer = await log.consume(rival);
    threads = 0;
    process.on('worker', made);
  });
  afterEach(async () => {
    await pool.destroy();
    // The other one of the process has gone on all the while.
    await waitForRenewal(database, [0]);
    process.off('worker', made);
    const seen = [threads, rival.assignments(0), rival.owns(0)];
    await consumer.stop();
    await log.close();
    await database.close();
    expect(seen).to.deep.equal([0, 1, true]);
  });

  it('are not begun, and who starts hears why as the driver says it', async () => {
    const nowhere = new URL(database.postgres_url);
    nowhere.pathname = '/nowhere';
    pool = connectPostgres(nowhere.href);
    const failed = await new EmbeddedLeases(pool, options).start().catch((error: unknown) => error);
    expect(failed).to.be.an('error').with.property('code', '3D000');
    expect(failed).to.have.property('message', 'database "nowhere" does not exist');
    nowhere.port = '1';
    nowhere.searchParams.delete('host');
    pool = connectPostgres(nowhere.href);
    const unreached = await new EmbeddedLeases(pool, options).start().catch((error: unknown) => error);
    expect(isUnavailable(unreached), String(unreached)).to.equal(true);
  });

  it('are let go of though Postgres does not answer', async () => {
    const url = new URL(database.postgres_url);
    const way = await cutTo({ host: url.hostname, port: Number(url.port || 5432) });
    url.hostname = '127.0.0.1';
    url.port = String(way.port);
    url.searchParams.delete('host');
    pool = connectPostgres(url.href);
    way.hang();
    const holder = {
      ...options,
      url: url.href,
      alive_ms: 60_000,
      shared: new BigInt64Array(new SharedArrayBuffer(16)),
    };
    Atomics.store(holder.shared, 0, process.hrtime.bigint());
    const starting = startRenewing(holder).catch((error: unknown) => error);
    await stopRenewing(holder);
    expect(await starting).to.be.an('error');
    await way.close();
  });
});
