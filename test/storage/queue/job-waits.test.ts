/** The metric of waiting jobs counts jobs that could run, and none that wait on purpose (docs/decisions/0020-jobs.md). */
import { expect } from 'chai';
import { addJobFairly, recordTurn } from '../../../storage/queue/fair-jobs.ts';
import { loadJobWaits } from '../../../storage/queue/job-waits.ts';
import { addJob } from '../../../storage/queue/jobs.ts';
import { type FreshDatabase, freshDatabase } from '../../support/stores.ts';

const TASKS = [
  { task: 'bill', patient_lane: null },
  { task: 'import', patient_lane: null },
  { task: 'export', patient_lane: 'files' },
  { task: 'write', patient_lane: 'files' },
];

describe('how long jobs wait', () => {
  let database: FreshDatabase;
  beforeEach(async () => {
    database = await freshDatabase();
  });
  afterEach(() => database.close());

  const sql = (statement: string) => database.postgres.raw(statement);
  const add = (task: string, key: string, queue: string) =>
    addJob(database.postgres, { task, key, queue, payload: {}, max_attempts: 3 });
  const stand = (tenant: string, key: string) =>
    addJobFairly(database.postgres, {
      task: 'import',
      queue: `import:${tenant}`,
      key,
      payload: {},
      max_attempts: 3,
    });
  /** For those that are here. */
  const pass = (minutes: number) =>
    sql(`update graphile_worker._private_jobs set run_at = run_at - interval '${minutes} minutes',
                created_at = created_at - interval '${minutes} minutes'`);
  const begin = (key: string) =>
    sql(
      `update graphile_worker._private_jobs set locked_at = now(), locked_by = 'worker', attempts = attempts + 1 where key = '${key}'`,
    );
  const end = (key: string) => sql(`delete from graphile_worker._private_jobs where key = '${key}'`);
  /** In whole minutes, of those that wait. */
  async function waits(): Promise<Record<string, number>> {
    const all = (await loadJobWaits(database.postgres, TASKS)).map(
      ({ task, seconds }) => [task, Math.floor(seconds / 60)] as const,
    );
    expect(all.map(([task]) => task)).to.have.members(TASKS.map(({ task }) => task));
    return Object.fromEntries(all.filter(([, minutes]) => minutes !== 0));
  }

  it('0 of each where none waits, and the longest of a task where some do, with a queue and without', async () => {
    expect(await waits()).to.deep.equal({});
    await add('bill', 'a', 'bill:a');
    await pass(10);
    await add('bill', 'b', 'bill:b');
    await pass(10);
    await sql(`select graphile_worker.add_job('export')`);
    await pass(5);
    expect(await waits()).to.deep.equal({ bill: 25, export: 5 });
  });

  it('not what is to be done later, is tried no more, or is at work; nor a task of which nobody knows', async () => {
    for (const key of ['later', 'given-up', 'at-work']) await add('bill', key, key);
    await add('nobodys', 'nobodys', 'nobodys');
    await pass(30);
    expect(await waits()).to.deep.equal({ bill: 30 });
    await sql(
      `update graphile_worker._private_jobs set run_at = now() + interval '1 minute', attempts = 1 where key = 'later'`,
    );
    await sql(`update graphile_worker._private_jobs set attempts = max_attempts where key = 'given-up'`);
    await begin('at-work');
    expect(await waits()).to.deep.equal({});
  });

  it('not what waits for another of its queue, whatever task that is', async () => {
    await add('bill', 'first', 'tick:bill');
    await pass(60);
    await add('bill', 'second', 'tick:bill');
    await add('export', 'third', 'tick:bill');
    await begin('first');
    await pass(60);
    expect(await waits()).to.deep.equal({});
    await end('first');
    expect(await waits()).to.deep.equal({ bill: 60, export: 60 });
  });

  it('from when it came, or its line had a turn: not from the instant by which it stands in line, and not what is behind it', async () => {
    await stand('a', 'a1');
    // It stands where one stands that came an hour ago.
    expect(await waits()).to.deep.equal({});
    await pass(90);
    await stand('a', 'a2');
    await stand('a', 'a3');
    await pass(90);
    expect(await waits()).to.deep.equal({ import: 180 });
    await recordTurn(database.postgres, { task: 'import', queue: 'import:a' });
    await end('a1');
    await recordTurn(database.postgres, { task: 'import', queue: 'import:a' });
    expect(await waits()).to.deep.equal({});
    await pass(20);
    expect(await waits()).to.deep.equal({ import: 20 });
  });

  it('where places are held for long, not as long as one of the lane is at work; elsewhere for it, too', async () => {
    for (const task of ['bill', 'export', 'write'])
      for (const tenant of ['a', 'b']) await add(task, `${task}-${tenant}`, `${task}:${tenant}`);
    await pass(40);
    expect(await waits()).to.deep.equal({ bill: 40, export: 40, write: 40 });
    await begin('bill-a');
    await begin('export-a');
    expect(await waits()).to.deep.equal({ bill: 40 });
    await end('export-a');
    expect(await waits()).to.deep.equal({ bill: 40, export: 40, write: 40 });
  });
});
