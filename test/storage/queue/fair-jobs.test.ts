/** The queue, with one slot, picks the next job among tenants that wait (docs/decisions/0021-fairness.md). */
import { expect } from 'chai';
import { Logger, runOnce } from 'graphile-worker';
import pino from 'pino';
import { createTasks, type SchedulerServices } from '../../../scheduler/main.ts';
import { addContinuation, addJobFairly, recordTurn } from '../../../storage/queue/fair-jobs.ts';
import { connectJobs, type JobsPool } from '../../../storage/queue/jobs.ts';
import { type FreshDatabase, testStores } from '../../support/stores.ts';

describe('turns of tenants in the queue', () => {
  let database: FreshDatabase;
  let pool: JobsPool;
  /** In which order they had the place. */
  let turns: string[];
  beforeEach(async () => {
    database = await (await testStores()).freshDatabase();
    pool = connectJobs(database.postgres, { max: 3, log: () => undefined });
    turns = [];
  });
  afterEach(async () => {
    await pool.end();
    await database.close();
  });

  const lineOf = (tenant: string) => ({ task: 'write', queue: `write:${tenant}` });
  const add = (name: string, transaction = database.postgres) =>
    addJobFairly(transaction, { ...lineOf(name[0]!), payload: { name }, key: name, max_attempts: 8 });
  const addAgain = (name: string) =>
    addContinuation(database.postgres, { ...lineOf(name[0]!), payload: { name }, key: name, max_attempts: 8 });
  const addAll = async (...names: string[]) => {
    for (const name of names) await add(name);
  };
  /** Does what is due, one after the other; what a job does in its turn is done behind its beginning. */
  async function work(deeds: Record<string, () => Promise<unknown>> = {}): Promise<void> {
    const run = async (payload: unknown) => {
      const { name } = payload as { name: string };
      turns.push(name);
      await deeds[name]?.();
      return 'completed' as const;
    };
    const services = { postgres: database.postgres, logger: pino({ level: 'silent' }) } as unknown as SchedulerServices;
    const clock = () => new Date();
    const options = {
      pgPool: pool,
      concurrency: 1,
      noHandleSignals: true,
      logger: new Logger(() => () => undefined),
      taskList: createTasks(services, { jobs: [], work: [{ name: 'write', run }], clock }),
    };
    // It ends where the last job is still being given back, whose tenant has one more.
    while (await isAnyDue()) await runOnce(options);
  }
  const isAnyDue = async () =>
    (await database.postgres.raw('select from graphile_worker.jobs where run_at <= now()')).rows.length > 0;
  const failed = () => Promise.reject(new Error('the store is away'));
  const dueNow = () =>
    database.postgres.raw(
      `select graphile_worker.reschedule_jobs(array_agg(id), run_at := now()) from graphile_worker.jobs where run_at > now()`,
    );

  it('however much one has waiting, each has one in turn, and the oldest of its own', async () => {
    await addAll('a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'b3', 'c1');
    await work();
    expect(turns).to.deep.equal(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'b3', 'a4']);
  });

  it('who comes goes before those who had a turn since it had one itself', async () => {
    await addAll('v0', 'a1', 'a2', 'a3', 'b1', 'b2', 'b3');
    await work({ b1: () => addAll('v1', 'n1', 'v2'), b2: () => addAll('n2', 'b4') });
    // v had a turn before a and b; n had none.
    expect(turns).to.deep.equal(['v0', 'a1', 'b1', 'n1', 'v1', 'a2', 'b2', 'n2', 'v2', 'a3', 'b3', 'b4']);
  });

  it('an hour ago is as long ago as never: one who never had a turn goes behind who came before it', async () => {
    await addAll('v0', 'a1');
    await work();
    await database.postgres('job_turns').update({ turn_at: database.postgres.raw(`now() - interval '2 hours'`) });
    await addAll('v1', 'n1', 'a2');
    await work();
    expect(turns).to.deep.equal(['v0', 'a1', 'v1', 'n1', 'a2']);
  });

  it('a turn that was long is not long ago: who had one meanwhile goes before the next', async () => {
    await addAll('a1', 'a2');
    await work({
      a1: async () => {
        // At another place.
        await recordTurn(database.postgres, lineOf('v'));
        await add('v1');
      },
    });
    expect(turns).to.deep.equal(['a1', 'v1', 'a2']);
  });

  it('those of one that are added at one time, and in one transaction, take its turns one after the other', async () => {
    await Promise.all(['a1', 'a2', 'a3'].map((name) => add(name)));
    await database.postgres.transaction(async (transaction) => {
      for (const name of ['a4', 'a5']) await add(name, transaction);
    });
    await addAll('b1', 'b2');
    await work();
    expect(turns.map(([tenant]) => tenant).join('')).to.equal('ababaaa');
  });

  it('what goes on in order is done before the next of its own, and behind all others who wait', async () => {
    await addAll('a1', 'a2', 'b1', 'b2', 'c1');
    const again = ['a1', 'a1', 'b1'];
    const goOn = async (name: string) => {
      const at = again.indexOf(name);
      if (at < 0) return;
      again.splice(at, 1);
      await addAgain(name);
      if (name === 'b1') await addAll('b3');
    };
    await work({ a1: () => goOn('a1'), b1: () => goOn('b1') });
    expect(turns).to.deep.equal(['a1', 'b1', 'c1', 'a1', 'b1', 'a1', 'b2', 'a2', 'b3']);
  });

  it('what is tried again goes behind all who wait, and holds none of its own up', async () => {
    await addAll('a1', 'a2', 'a3', 'b1', 'b2', 'b3');
    await work({ a1: failed, a2: failed, a3: failed });
    expect(turns).to.deep.equal(['a1', 'b1', 'a2', 'b2', 'a3', 'b3']);
    turns = [];
    await dueNow();
    await addAll('b4', 'b5', 'b6', 'a4');
    await work();
    // b, whose last turn is longer ago, and then in turns: three that have come back are no three turns.
    expect(turns.map(([tenant]) => tenant).join('')).to.equal('bababaa');
  });

  it('what nobody has brought forward is done where nobody waits', async () => {
    await addAll('a1', 'a2');
    await database.postgres.raw(`select graphile_worker.remove_job('a1')`);
    await addAll('b1');
    await work();
    expect(turns).to.deep.equal(['b1', 'a2']);
  });
});
