/** The queue after the clock of the database was moved back: times that it stored before are in the future. */
import { expect } from 'chai';
import { addJobFairly, recordTurn } from '../../../storage/queue/fair-jobs.ts';
import { addJob, addTick, connectJobs, freeLostJobs, sendHeartbeat } from '../../../storage/queue/jobs.ts';
import { type FreshDatabase, freshDatabase } from '../../support/stores.ts';

const HOUR = "interval '1 hour'";
const DEAD_AFTER_MS = 60_000;
const JOB = { task: 'send', queue: 'send:a', payload: {}, key: 'send', max_attempts: 3 };

describe('the queue after the clock of the database was moved back', () => {
  let database: FreshDatabase;
  beforeEach(async () => {
    database = await freshDatabase();
  });
  afterEach(() => database.close());

  const raw = (sql: string) => database.postgres.raw(sql);
  const listJobs = async () =>
    (await raw('select key, locked_by from graphile_worker.jobs where run_at <= now()')).rows;

  for (const ahead of [HOUR, "interval '1 day'"])
    it(`enqueues the current slot of a job whose last slot is in the future: ${ahead}`, async () => {
      const tick = { name: 'bill', every_seconds: 86_400 };
      await addTick(database.postgres, tick);
      await raw('select graphile_worker.complete_jobs(array(select id from graphile_worker.jobs))');
      await raw(`update job_ticks set slot_start = now() + ${ahead}`);
      expect((await addTick(database.postgres, tick)).added).to.equal(true);
      expect(await listJobs()).to.have.length(1);
      expect((await addTick(database.postgres, tick)).added).to.equal(false);
    });

  it('adds a job that is due now, although the last turn of its lane is in the future', async () => {
    await recordTurn(database.postgres, JOB);
    await raw(`update job_turns set turn_at = turn_at + ${HOUR}`);
    await addJobFairly(database.postgres, JOB);
    expect(await listJobs()).to.have.length(1);
  });

  it('frees the jobs of a worker that does not repeat its heartbeat of the future, and not those of one that lives', async () => {
    const pool = connectJobs(database.postgres, { max: 1, log: () => undefined });
    try {
      for (const id of ['dead', 'alive']) {
        await sendHeartbeat(pool, { id, host: 'here', pid: 1 });
        await addJob(database.postgres, { ...JOB, key: id, queue: id });
        await pool.query(`update graphile_worker._private_jobs set locked_by = $1, locked_at = now() where key = $1`, [
          id,
        ]);
      }
      await raw(`update job_workers set seen_at = seen_at + ${HOUR} where id = 'dead'`);
      await raw(`update graphile_worker._private_jobs set locked_at = locked_at + ${HOUR}`);
      expect(await freeLostJobs(pool, DEAD_AFTER_MS), 'the worker may be alive').to.equal(0);
      await raw(`update job_workers set seen_at = seen_at - ${HOUR} where id = 'dead'`);
      expect(await freeLostJobs(pool, DEAD_AFTER_MS)).to.equal(1);
      const jobs = await listJobs();
      expect(jobs).to.have.deep.members([
        { key: 'dead', locked_by: null },
        { key: 'alive', locked_by: 'alive' },
      ]);
    } finally {
      await pool.end();
    }
  });
});
