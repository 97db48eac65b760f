import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { expect } from 'chai';
import { register } from 'prom-client';
import { tryComputation } from '../../actions/invoicing/invoices/compute-later.ts';
import { LANES } from '../../scheduler/job.ts';
import { startScheduler } from '../../scheduler/main.ts';
import { startWorker } from '../../scheduler/worker.ts';
import { migratePostgres } from '../../sql/migrate.ts';
import type { Transaction } from '../../storage/foundation/stores.ts';
import { connectPostgres } from '../../storage/postgres/pool/postgres.ts';
import { addTick } from '../../storage/queue/jobs.ts';
import { cutTo } from '../support/cut.ts';
import { startFilesServer } from '../support/files-server.ts';
import { QUICK, startSchedulerProcess } from '../support/scheduler-process.ts';
import { freshDatabase } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { startWorld, usage, type World } from '../support/world.ts';

describe('the job worker', () => {
  let world: World;
  let stops: (() => Promise<unknown>)[];

  before(async () => {
    world = await startWorld({ config: { IMPORT_ALLOWED_ADDRESSES: '127.0.0.1' } });
    await world.meter('calls');
    await world.plan('Calls', [usage('calls', '2')]);
  });
  after(() => world.stop());
  beforeEach(() => {
    stops = [];
  });
  afterEach(async () => {
    for (const stop of stops.reverse()) await stop();
  });

  /** A database of its own, and the connections of a worker that reach it over a way that can be cut. */
  async function connectOverCut() {
    const database = await freshDatabase();
    stops.push(() => database.close());
    const url = new URL(database.postgres_url);
    const way = await cutTo({ host: url.hostname, port: Number(url.port) });
    stops.push(() => way.close());
    url.host = `127.0.0.1:${way.port}`;
    url.searchParams.delete('host');
    const postgres = connectPostgres(url.href);
    stops.push(() => postgres.destroy());
    return { database, way, postgres };
  }

  /** A draft of a closed month with this many calls. */
  async function draft(customer: string, calls: number) {
    await world.on('2026-01-01', () => world.subscribe(customer, 'Calls'));
    await world.on('2026-01-10', () => world.use(customer, 'calls', calls));
    await world.on('2026-02-01');
    const [invoice] = await world.invoices(customer);
    // At another instant, or a computation would change nothing that the record says.
    world.at('2026-02-01T01:00:00Z');
    return invoice as { id: string; version: number; total: string };
  }
  async function compute(id: string): Promise<{ workflow_id: string; run_id: string }> {
    const answer = await world.api.request('POST', `/invoices/${id}/compute`);
    expect(answer.status, answer.text).to.equal(202);
    return answer.body as { workflow_id: string; run_id: string };
  }
  const schedule = () => {
    const scheduler = startScheduler(world.api.services, { clock: () => world.now, liveness: QUICK });
    stops.push(() => scheduler.stop());
    return scheduler;
  };
  const state = async ({ workflow_id, run_id }: { workflow_id: string; run_id: string }) => {
    const { status, close_time, failed_activities } = await world.get(`/workflows/${workflow_id}/${run_id}/summary`);
    const { message } = await world.get(`/tasks/result?workflow_id=${workflow_id}`);
    const [{ attempt }] = await world.api.services.postgres('workflow_runs').where({ id: workflow_id });
    return { status, close_time, failed_activities, message, attempt };
  };
  const ended = async (run: { workflow_id: string; run_id: string }) => {
    const running = { id: run.workflow_id, workflow_status: 'Running' };
    await until('the workflow has ended', async () => {
      const found = await world.api.services.postgres('workflow_runs').where(running).select('id');
      return found.length === 0;
    });
    return state(run);
  };

  it('computes an invoice in the background: the ids of the answer lead to its end', async () => {
    const { id, version } = await draft('acme', 5);
    const run = await compute(id);
    expect(await state(run)).to.include({ status: 'Running', close_time: null, message: 'Running', attempt: 0 });
    expect((await world.get(`/invoices/${id}`)).version).to.equal(version);
    schedule();
    expect(await ended(run)).to.include({
      status: 'Completed',
      message: 'Completed',
      failed_activities: 0,
      attempt: 1,
    });
    expect(await world.get(`/invoices/${id}`)).to.include({ version: version + 1, total: '10' });
    expect(await register.getSingleMetricAsString('farthing_jobs_total')).to.match(
      /farthing_jobs_total\{task="compute-invoice",outcome="completed"\} [1-9]/,
    );
  });

  it('takes jobs, though the way to the database broke while it learned which there are', async () => {
    const { database, way, postgres } = await connectOverCut();
    let cut: Promise<void> | undefined;
    way.watch({
      sent: (text) => {
        if (text.includes('_private_tasks')) cut ??= way.cut();
      },
    });
    let done = 0;
    const { logger } = world.api.services;
    const worker = startWorker({ counted: async () => void done++ }, { postgres, logger }, QUICK);
    stops.push(() => worker.stop());
    await until('it has begun to learn', async () => cut !== undefined);
    await cut;
    await way.restore();
    await addTick(database.postgres, { name: 'counted', every_seconds: 3600 });
    await until('the job is done', async () => done === 1, 30_000);
  });

  it('unlocks a job though the statement that ends it was lost on a connection that stays', async () => {
    const { database, way, postgres } = await connectOverCut();
    const { logger } = world.api.services;
    let has_run = false;
    let is_lost = false;
    way.watch({
      sent: (text) => {
        if (!has_run || is_lost || !/delete from\s+"?graphile_worker"?\._private_jobs/.test(text)) return;
        is_lost = true;
        return 'lost';
      },
    });
    const counted = async () => {
      has_run = true;
    };
    const worker = startWorker({ counted }, { postgres, logger }, QUICK);
    stops.push(() => worker.stop());
    await addTick(database.postgres, { name: 'counted', every_seconds: 3600 });
    await until('the statement is lost', async () => is_lost);
    await until(
      'no job is locked',
      async () => (await database.postgres('graphile_worker.jobs').whereNotNull('locked_at')).length === 0,
      60_000,
    );
  }).timeout(90_000);

  it('computes while more tenants than there are places have files that do not come', async () => {
    const { id } = await draft('beside files', 7);
    const files = await startFilesServer();
    stops.push(() => files.stop());
    files.serve('/slow.csv', (response) => void response.writeHead(200, { 'content-length': '500' }).write('x'));
    const asked = {
      task_type: 'IMPORT',
      entity_type: 'CUSTOMERS',
      file_type: 'CSV',
      file_url: `${files.url}/slow.csv`,
    };
    for (let tenant = 0; tenant < 5; tenant++) {
      const { key } = await world.api.otherTenant();
      const answer = await world.api.request('POST', '/tasks', { body: asked, key });
      expect(answer.status, answer.text).to.equal(202);
    }
    schedule();
    await until('the places for files are taken', async () => files.requested_paths.length >= 4);
    expect(await ended(await compute(id))).to.include({ status: 'Completed', attempt: 1 });
    expect(files.requested_paths).to.have.length(4);
  });

  it('takes a file that came with its request while more tenants than there are places have files that do not come', async () => {
    const files = await startFilesServer();
    stops.push(() => files.stop());
    // Never silent for long, and not slow for so long that it is given up.
    files.serve('/never.csv', (response) => {
      response.writeHead(200, { 'content-length': '50000' }).write('x');
      const dripping = setInterval(() => response.write('x'), 1_000);
      response.on('close', () => clearInterval(dripping));
    });
    const what = {
      task_type: 'IMPORT',
      entity_type: 'CUSTOMERS',
      file_type: 'CSV',
      file_url: `${files.url}/never.csv`,
    };
    const keys: string[] = [];
    for (let tenant = 0; tenant < 6; tenant++) keys.push((await world.api.otherTenant()).key);
    for (const key of keys.slice(0, 5))
      expect((await world.api.request('POST', '/tasks', { body: what, key })).status).to.equal(202);
    schedule();
    await until('the places for files are taken', async () => files.requested_paths.length >= 4);
    const upload = async (key: string) => {
      const body = Buffer.from('external_id,name\nq1,Q\n');
      const path = '/tasks/upload?entity_type=CUSTOMERS&file_type=CSV';
      const answer = await world.api.request('POST', path, { body, headers: { 'content-type': 'text/csv' }, key });
      expect(answer.status, answer.text).to.equal(202);
      const { id } = answer.body;
      return async () => (await world.api.request('GET', `/tasks/${id}`, { key })).body.task_status;
    };
    // Imports of one tenant go one after the other, whichever way they came.
    const behind_its_own = await upload(keys[0]!);
    const of_another = await upload(keys[5]!);
    await until('the file has been taken', async () => (await of_another()) === 'COMPLETED');
    expect(await behind_its_own()).to.equal('PENDING');
    expect(files.requested_paths).to.have.length(4);
    // Both wait as is meant, the others for a place that is held for long: nobody is told, however long it is.
    const { rows: waiting } = await world.api.services.postgres.raw(
      `update graphile_worker._private_jobs as job
          set run_at = run_at - interval '2 hours', created_at = job.created_at - interval '2 hours'
         from graphile_worker._private_tasks as task
        where task.id = job.task_id and identifier like 'import%' and locked_at is null
       returning identifier`,
    );
    expect(waiting.map(({ identifier }: { identifier: string }) => identifier)).to.include.members([
      'import-fetched',
      'import-records',
    ]);
    const told = (await register.getSingleMetric('farthing_job_wait_seconds')!.get()).values;
    expect(told.find(({ labels }) => labels['task'] === 'import-fetched')?.value).to.equal(0);
    expect(told.find(({ labels }) => labels['task'] === 'import-records')?.value).to.equal(0);
  });

  it('tries again what may pass, and says why it failed', async () => {
    const { id } = await draft('tried', 3);
    const { clickhouse } = world.api.services;
    await clickhouse.command({ query: 'RENAME TABLE usage_buckets TO usage_buckets_away' });
    const run = await compute(id);
    schedule();
    try {
      const failed = await until('a try has failed', async () => {
        const now = await state(run);
        return now.message !== 'Running' && now;
      });
      expect(failed).to.include({ status: 'Running', close_time: null, attempt: 1 });
      expect(failed.message).to.match(/^Running: try 1 failed: .+; it is tried again$/);
    } finally {
      await clickhouse.command({ query: 'RENAME TABLE usage_buckets_away TO usage_buckets' });
    }
    const last = await ended(run);
    expect(last).to.include({ status: 'Completed', message: 'Completed' });
    expect(last.attempt).to.be.greaterThan(1);
    expect(world.api.logged()).to.contain('a try of a job failed');
  });

  it('does not try again what the rules forbid', async () => {
    const { id } = await draft('final', 1);
    const run = await compute(id);
    await world.finalize();
    schedule();
    expect(await ended(run)).to.include({
      status: 'Failed',
      message: 'Failed: an invoice that is FINALIZED cannot be computed',
      failed_activities: 1,
      attempt: 1,
    });
  });

  it('ends a computation that takes too long, and its locks with it', async () => {
    const { id, version } = await draft('slow', 1);
    const { workflow_id } = await compute(id);
    const { services, scope } = world.api;
    const release = await lockInvoice(id);
    const attempt = { attempt: 8, is_last: true, clock: () => world.now, timeout_ms: 300 };
    const thrown = await tryComputation(
      services,
      { ...scope, workflow_id },
      { ...attempt, signal: AbortSignal.timeout(300) },
    ).catch((error: Error) => error);
    expect((thrown as Error).name).to.equal('TimeoutError');
    const waiting = await services.postgres.raw(
      `select query from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    expect(waiting.rows).to.deep.equal([]);
    await release();
    const [run] = await services.postgres('workflow_runs').where({ id: workflow_id });
    expect(run).to.deep.include({
      workflow_status: 'TimedOut',
      attempt: 8,
      error: { code: 'timeout', message: 'it took longer than it may' },
    });
    expect((await world.get(`/invoices/${id}`)).version).to.equal(version);
  });

  it('takes over the job of a worker that was killed in the middle of it', async () => {
    const { id, version } = await draft('killed', 7);
    const release = await lockInvoice(id);
    const child = await workerProcess();
    const run = await compute(id);
    await until('the other process waits in the middle of the job', async () => {
      const { rows } = await world.api.services.postgres.raw(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      // Jobs of the clock may be at work beside it.
      return rows.length > 0 && (await locked()).includes(run.run_id) && (await state(run)).attempt === 1;
    });
    child.kill('SIGKILL');
    await once(child, 'exit');
    await release();
    expect(await locked()).to.include(run.run_id);
    expect(await state(run)).to.include({ status: 'Running', attempt: 1 });

    schedule();
    expect(await ended(run)).to.include({ status: 'Completed', attempt: 2 });
    expect(await world.get(`/invoices/${id}`)).to.include({ version: version + 1, total: '14' });
    expect(world.api.logged()).to.contain('jobs were taken from a worker that died');
  });

  it('ends a workflow whose worker died in the last try', async () => {
    const { id } = await draft('lost', 1);
    const run = await compute(id);
    await world.api.services
      .postgres('graphile_worker._private_jobs as jobs')
      .where({ key: run.run_id })
      .update({ attempts: 8 });
    schedule();
    expect(await ended(run)).to.include({ status: 'Failed', message: 'Failed: the work was broken off too often' });
  });

  it('goes on when its connections are lost', async () => {
    const { id } = await draft('cut', 1);
    schedule();
    expect((await ended(await compute(id))).status).to.equal('Completed');
    await world.api.services.postgres.raw(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name = 'farthing jobs'`,
    );
    expect((await ended(await compute(id))).status).to.equal('Completed');
  });

  it('starts anew when a job that has run cannot be given back', async () => {
    const { postgres } = world.api.services;
    const { id } = await draft('kept', 1);
    const release = await lockInvoice(id);
    schedule();
    const run = await compute(id);
    await until('the job has begun', async () => (await state(run)).attempt === 1);
    await postgres.raw('alter table graphile_worker._private_jobs rename to away');
    try {
      await release();
      await until('the worker has ended', async () => world.api.logged().includes('the job worker has ended'));
    } finally {
      await postgres.raw('alter table graphile_worker.away rename to _private_jobs');
    }
    expect(await ended(run)).to.include({ status: 'Completed', attempt: 1 });
    await until('the queue is empty', async () => (await jobsOf(run)).length === 0);
    expect(await state(run)).to.include({ status: 'Completed', attempt: 1 });
  });

  it('leaves nothing locked and no sign of life when it is stopped', async () => {
    await world.api.services.postgres('job_workers').del();
    const scheduler = schedule();
    const own = await until('each of its workers lives', async () => {
      const ids = await workers();
      return ids.length === LANES.length && ids;
    });
    stops = [];
    await scheduler.stop();
    expect(await workers()).to.deep.equal([]);
    expect(await listLockedBy(own)).to.deep.equal([]);
  });

  it('lets several first starts make the queue at once', async () => {
    const { postgres } = world.api.services;
    await postgres.raw('drop schema graphile_worker cascade');
    const others = [1, 2, 3].map(() =>
      connectPostgres(postgres.client.config.connection.connectionString, { idle_timeout_ms: 500 }),
    );
    await Promise.all(others.map((other) => migratePostgres(other)));
    await Promise.all(others.map((other) => other.destroy()));
    const { id } = await draft('again', 1);
    schedule();
    expect((await ended(await compute(id))).status).to.equal('Completed');
  });

  const jobsOf = (run: { run_id: string }) =>
    world.api.services.postgres('graphile_worker.jobs').where({ key: run.run_id }).select('key');
  const workers = (): Promise<string[]> => world.api.services.postgres('job_workers').pluck('id');
  /** The keys of the jobs that any worker holds. */
  const locked = (): Promise<string[]> =>
    world.api.services.postgres('graphile_worker.jobs').whereNotNull('locked_at').pluck('key');
  /** The keys of the jobs that one of these workers holds. A worker of another test may have died with a job. */
  const listLockedBy = (workers: readonly string[]): Promise<string[]> =>
    world.api.services.postgres('graphile_worker.jobs').whereIn('locked_by', workers).pluck('key');

  /** Holds the row until it is released, so that who computes the invoice waits. */
  async function lockInvoice(id: string): Promise<() => Promise<unknown>> {
    const holder: Transaction = await world.api.services.postgres.transaction();
    await holder('invoices').where({ id }).forUpdate();
    return () => holder.rollback();
  }

  async function workerProcess(): Promise<ChildProcess> {
    const child = await startSchedulerProcess(world.api.services, world.now);
    stops.push(async () => {
      child.kill('SIGKILL');
    });
    return child;
  }
});
