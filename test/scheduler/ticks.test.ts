import { expect } from 'chai';
import type { TaskList } from 'graphile-worker';
import { pino } from 'pino';
import type { ScheduledJob } from '../../scheduler/job.ts';
import { startTicks } from '../../scheduler/ticks.ts';
import { startWorker } from '../../scheduler/worker.ts';
import { addTick, isOvertaken, purgeGivenUpJobs } from '../../storage/queue/jobs.ts';
import { type FreshDatabase, freshDatabase } from '../support/stores.ts';
import { until } from '../support/until.ts';

const logger = pino({ level: 'silent' });

describe('ticks', () => {
  let database: FreshDatabase;
  beforeEach(async () => {
    database = await freshDatabase();
  });
  afterEach(() => database.close());

  const queued = async () => database.postgres('graphile_worker.jobs').select('key', 'task_identifier', 'max_attempts');
  const slotOf = async (name: string) => {
    const [row] = await database.postgres('job_ticks').where({ name });
    return Date.parse(row.slot_start) / 1000;
  };

  it('put a slot into the queue once, however many schedulers tick at once, and also after its job has run', async () => {
    const tick = () => addTick(database.postgres, { name: 'bill', every_seconds: 86_400 });
    const added = (await Promise.all(Array.from({ length: 8 }, tick))).filter((one) => one.added);
    expect(added).to.have.length(1);
    const key = `tick:bill:${await slotOf('bill')}`;
    expect(await queued()).to.deep.equal([{ key, task_identifier: 'bill', max_attempts: 3 }]);

    await database.postgres.raw('select graphile_worker.complete_jobs(array(select id from graphile_worker.jobs))');
    expect((await tick()).added).to.equal(false);
    expect(await queued()).to.deep.equal([]);
  });

  it('begin at whole seconds of their own, an interval apart, and say when the next one begins', async () => {
    const begins = new Set<number>();
    for (const name of ['bill', 'send', 'purge', 'sample']) {
      const tick = { name, every_seconds: 3600 };
      const { next_in_seconds } = await addTick(database.postgres, tick);
      const slot = await slotOf(name);
      const now = Date.now() / 1000;
      expect(slot).to.be.within(now - 3605, now + 5);
      expect(next_in_seconds).to.be.closeTo(slot + 3600 - now, 5);
      begins.add(slot % 3600);
      await database
        .postgres('job_ticks')
        .where({ name })
        .update({ slot_start: new Date((slot - 7200) * 1000) });
      expect((await addTick(database.postgres, tick)).added).to.equal(true);
      expect(((await slotOf(name)) - slot) % 3600).to.equal(0);
    }
    expect([...begins].every(Number.isInteger)).to.equal(true);
    expect(begins.size).to.equal(4);
  });

  it('go on when the interval is changed', async () => {
    await addTick(database.postgres, { name: 'bill', every_seconds: 1 });
    await database.postgres('job_ticks').update({ slot_start: new Date(Date.now() - 86_400_000) });
    expect((await addTick(database.postgres, { name: 'bill', every_seconds: 60 })).added).to.equal(true);
  });

  it('are overtaken by later ones', async () => {
    await addTick(database.postgres, { name: 'bill', every_seconds: 60 });
    const slot = await slotOf('bill');
    expect(await isOvertaken(database.postgres, { name: 'bill', slot })).to.equal(false);
    expect(await isOvertaken(database.postgres, { name: 'bill', slot: slot - 60 })).to.equal(true);
  });

  it('of three schedulers run each slot once', async () => {
    const runs: number[] = [];
    const jobs: ScheduledJob[] = [
      { name: 'count', every_seconds: 1, run: () => Promise.reject(new Error('runs by its task')) },
    ];
    const tasks: TaskList = { count: async (payload) => void runs.push((payload as { slot: number }).slot) };
    const services = { postgres: database.postgres, logger };
    const started = [1, 2, 3].flatMap(() => [startTicks(jobs, services), startWorker(tasks, services)]);
    try {
      await until('three slots', async () => runs.length >= 3);
    } finally {
      await Promise.all(started.map((each) => each.stop()));
    }
    expect(new Set(runs).size).to.equal(runs.length);
    for (const slot of runs) expect(slot).to.be.closeTo(Date.now() / 1000, 30);
  });

  it('that were given up leave the queue after a while', async () => {
    for (const name of ['old', 'young', 'alive']) await addTick(database.postgres, { name, every_seconds: 60 });
    const jobs = () => database.postgres('graphile_worker._private_jobs as jobs');
    const named = (name: string) => jobs().where('key', 'like', `tick:${name}:%`);
    await named('old').update({ attempts: 3, updated_at: database.postgres.raw(`now() - interval '8 days'`) });
    await named('young').update({ attempts: 3 });
    await named('alive').update({ updated_at: database.postgres.raw(`now() - interval '8 days'`) });
    expect(await purgeGivenUpJobs(database.postgres, 7)).to.equal(1);
    expect((await queued()).map(({ task_identifier }) => task_identifier).sort()).to.deep.equal(['alive', 'young']);
  });
});
