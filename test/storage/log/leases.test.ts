/** Leases of the embedded log while the main loop of their holder is busy, frozen, or its process is stopped. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { type EmbeddedLog, openEmbeddedLog } from '../../../storage/log/embedded/embedded.ts';
import { EmbeddedLeases } from '../../../storage/log/embedded/leases.ts';
import type { LogConsumer } from '../../../storage/log/log.ts';
import { type FreshDatabase, freshDatabase } from '../../support/stores.ts';
import { until } from '../../support/until.ts';
import { entry, Reader } from './contract.ts';

const LEASE_MS = 1_000;

describe('leases of the embedded log', () => {
  let database: FreshDatabase;
  let log: EmbeddedLog;
  /** Wants the partition, and gets it when the lease of the other is over. */
  let rival: Reader;
  let consumer: LogConsumer;
  let child: ChildProcess | undefined;
  let said: string[];

  beforeEach(async () => {
    database = await freshDatabase();
    const options = { partition_count: 1, append_timeout_ms: 5_000, linger_ms: 0, lease_ms: LEASE_MS };
    log = await openEmbeddedLog(database.postgres, options);
    rival = new Reader();
  });
  afterEach(async () => {
    child?.kill('SIGKILL');
    await consumer.stop();
    await log.close();
    await database.close();
  });

  const startHolder = async (alive_ms: number) => {
    said = [];
    const file = fileURLToPath(new URL('./reading-process.ts', import.meta.url));
    const args = ['--import', 'tsx', file, database.postgres_url, String(LEASE_MS), String(alive_ms)];
    child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    child.stdout!.setEncoding('utf8').on('data', (text: string) => said.push(...text.trim().split('\n')));
    await hears('assigned');
    consumer = await log.consume(rival);
  };
  const hears = (word: string) => until(`it says ${word}`, async () => said.includes(word));
  const lease = async () => {
    const { rows } = await database.postgres.raw(`select owner, lease_until > now() as holds from log_partitions`);
    return rows[0] as { owner: string; holds: boolean };
  };

  it('are kept while the main loop is busy for twice as long', async () => {
    await startHolder(60_000);
    const { owner } = await lease();
    await log.append([entry(0, `block ${2 * LEASE_MS}`)]);
    await hears('blocked');
    await hears('ours');
    expect(await lease()).to.deep.equal({ owner, holds: true });
    await log.append([entry(0, `block ${2 * LEASE_MS}`)]);
    await until('it is busy again', async () => said.filter((word) => word === 'ours').length === 2);
    expect(rival.assignments(0)).to.equal(0);
    expect(said.filter((word) => word === 'assigned' || word === 'revoked' || word === 'lost')).to.deep.equal([
      'assigned',
    ]);
  });

  it('are lost by a main loop that does not come back, though the thread lives', async () => {
    await startHolder(LEASE_MS);
    await log.append([entry(0, `block ${6 * LEASE_MS}`)]);
    await hears('blocked');
    await until('the other has it', async () => rival.owns(0));
    expect(said).to.not.include('lost');
    await hears('lost');
    await hears('revoked');
  });

  it('are over when a process that was stopped goes on, and another has the partition', async () => {
    await startHolder(60_000);
    await log.append([entry(0, `block ${3 * LEASE_MS}`)]);
    await hears('blocked');
    child!.kill('SIGSTOP');
    await until('the other has it', async () => rival.owns(0));
    const { owner } = await lease();
    child!.kill('SIGCONT');
    await hears('lost');
    await hears('revoked');
    await log.append([entry(0, 'to the other')]);
    await rival.until(() => rival.records.length >= 1);
    expect(await lease()).to.deep.equal({ owner, holds: true });
  });

  it('are kept when the connection of their thread is broken', async () => {
    await startHolder(60_000);
    child!.kill('SIGKILL');
    await once(child!, 'exit');
    await until('the other has it', async () => rival.owns(0));
    const ended = await database.postgres.raw(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = 'farthing leases' and datname = current_database()`,
    );
    expect(ended.rows.length).to.be.at.least(1);
    const until_ms = performance.now() + 3 * LEASE_MS;
    await until('three leases have passed', async () => performance.now() > until_ms);
    expect(rival.assignments(0)).to.equal(1);
    expect((await lease()).holds).to.equal(true);
  });

  it('are those of the partitions that are free, and no more than asked for', async () => {
    await startHolder(60_000);
    const [one, other] = ['one', 'other'].map(
      (id) => new EmbeddedLeases(database.postgres, { id, lease_ms: 60_000, partition_count: 4 }),
    ) as [EmbeddedLeases, EmbeddedLeases];
    await database.postgres.raw(`insert into log_partitions (partition) select generate_series(1, 3)`);
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
