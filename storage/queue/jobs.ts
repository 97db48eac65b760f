/**
 * The job queue: graphile-worker's tables in the schema `graphile_worker` of our Postgres, so that a job is added in the
 * transaction that makes it necessary. scheduler/worker.ts runs the jobs. All times are by the clock of the database, which all
 * processes share (docs/decisions/0020-jobs.md).
 */
import { runMigrations } from 'graphile-worker';
import type { Knex } from 'knex';
import pg from 'pg';
import { openSpan } from '../../tracing/spans.ts';
import type { Database } from '../foundation/stores.ts';
import { END_BROKEN_ADVANCES } from '../models/schedule/clock-advances.ts';
import { IN_NO_ANSWER } from '../postgres/interceptors/own-writes.ts';
import { watchForUnresponsivePostgres } from '../postgres/interceptors/unresponsive-server.ts';

/** Pool of connections that only the job queue uses. */
export type JobsPool = pg.Pool;

export type NewJob = {
  readonly task: string;
  readonly payload: Record<string, unknown>;
  /** Key of the job. A new job with the same key replaces a waiting one. */
  readonly key: string;
  /** Jobs of one queue run one after another. */
  readonly queue: string;
  readonly max_attempts: number;
};

/** Position in the queue: lower priority first, then the earliest `run_at`; null is now. */
export type JobPosition = { readonly priority: number; readonly run_at: string | null };

/** Adds a job, which commits with the transaction's effects or not at all. The job continues the caller's trace. */
export async function addJob(
  transaction: Database,
  job: NewJob,
  { priority, run_at }: JobPosition = { priority: 0, run_at: null },
): Promise<void> {
  const traceparent = openSpan()?.traceparent;
  const payload = traceparent === undefined ? job.payload : { ...job.payload, traceparent };
  await transaction.raw(
    `select graphile_worker.add_job(?, payload := ?::json, queue_name := ?, max_attempts := ?, job_key := ?,
       priority := ?, run_at := ?)`,
    [job.task, JSON.stringify(payload), job.queue, job.max_attempts, job.key, priority, run_at],
  );
}

/** Priority of ticks, which run before the many jobs of requests. */
const TICK_PRIORITY = -10;
/** Maximum attempts of a tick: few, because the next tick does the same work. */
const TICK_ATTEMPTS = 3;

/**
 * Enqueues the job of the current slot, unless another scheduler did. A slot begins at a multiple of the interval since 1970
 * plus a shift, the hash of the job's name modulo the interval. The shift spreads the jobs of one interval, because jobs that begin in
 * the same second delay requests. A slot is enqueued once, even long after its job has run. If the clock of the database was moved back, the stored slot
 * is in the future; then the current slot is enqueued, because no job would run until the old time. Returns whether this call
 * enqueued it, and the time until the next slot.
 */
export async function addTick(
  database: Database,
  { name, every_seconds }: { name: string; every_seconds: number },
): Promise<{ added: boolean; next_in_seconds: number }> {
  const { rows } = await database.raw(
    `with timing as (
       select name, every, abs(hashtext(name)::bigint) % every as shift from (select ?::text as name, ?::integer as every) as job
     ), slot as (
       select to_timestamp(floor((extract(epoch from now()) - shift) / every) * every + shift) as starts_at, name, every from timing
     ), taken as (
       insert into job_ticks as known (name, slot_start) select name, starts_at from slot
       on conflict (name) do update set slot_start = excluded.slot_start
         where known.slot_start < excluded.slot_start or known.slot_start > clock_timestamp()
       returning known.name, extract(epoch from known.slot_start)::bigint as slot
     ), added as (
       select graphile_worker.add_job(name, payload := json_build_object('slot', slot), queue_name := 'tick:' || name,
         max_attempts := ?, job_key := 'tick:' || name || ':' || slot, priority := ?) from taken
     )
     select exists (select from added) as added,
            extract(epoch from starts_at + every * interval '1 second' - clock_timestamp())::double precision
              as next_in_seconds
       from slot ${IN_NO_ANSWER}`,
    [name, every_seconds, TICK_ATTEMPTS, TICK_PRIORITY],
  );
  return rows[0];
}

/** Whether a later slot of the job is enqueued. That job finds the same work, so this one need not run. */
export async function isOvertaken(database: Database, { name, slot }: { name: string; slot: number }) {
  const { rows } = await database.raw('select from job_ticks where name = ? and slot_start > to_timestamp(?)', [
    name,
    slot,
  ]);
  return rows.length > 0;
}

export async function sendHeartbeat(pool: JobsPool, worker: { id: string; host: string; pid: number }): Promise<void> {
  await pool.query(
    `insert into job_workers (id, host, pid, seen_at) values ($1, $2, $3, now())
     on conflict (id) do update set seen_at = excluded.seen_at`,
    [worker.id, worker.host, worker.pid],
  );
}

export async function deleteWorker(pool: JobsPool, worker_id: string): Promise<void> {
  await pool.query('delete from job_workers where id = $1', [worker_id]);
}

/**
 * Unlocks the jobs of workers without a heartbeat for this time, so that another worker takes them. A more recent lock remains: its
 * worker may have resumed a moment ago. After the clock of the database was moved back, times may lie in the future: such a lock
 * counts as old, and such a heartbeat as now, because its worker may be alive. Returns the number of unlocked jobs.
 */
export async function freeLostJobs(pool: JobsPool, dead_after_ms: number): Promise<number> {
  const isRecent = (column: string) => `abs(extract(epoch from now() - ${column})) * 1000 <= $1`;
  await pool.query('update job_workers set seen_at = now() where seen_at > now()');
  await pool.query(`delete from job_workers where not ${isRecent('seen_at')}`, [dead_after_ms]);
  const { rows } = await pool.query(
    `with lost as (
       select array_agg(distinct locked_by) as workers, count(*)::integer as jobs from graphile_worker.jobs
        where not ${isRecent('locked_at')}
          and locked_by not in (select id from job_workers)
     )
     select jobs, graphile_worker.force_unlock_workers(workers) from lost where jobs > 0`,
    [dead_after_ms],
  );
  return rows[0]?.jobs ?? 0;
}

/**
 * Fails the workflow runs whose job has no attempts left and ended without a report, because its worker died. Returns
 * their ids.
 */
export async function endLostRuns(pool: JobsPool): Promise<string[]> {
  const { rows } = await pool.query(
    `update workflow_runs as run
        set workflow_status = 'Failed', close_time = greatest(now(), start_time), updated_at = now(),
            error = coalesce(error, '{"code": "internal_error", "message": "the work was broken off too often"}'::jsonb)
      where workflow_status = 'Running'
        and not exists (select from graphile_worker.jobs as job where job.key = run.run_id
                          and (job.attempts < job.max_attempts or job.locked_at is not null))
      returning id`,
  );
  await pool.query(END_BROKEN_ADVANCES);
  return rows.map(({ id }) => id);
}

/** Deletes jobs that failed for good more than `retention_days` ago; graphile-worker retains them for inspection. */
export async function purgeGivenUpJobs(database: Database, retention_days: number): Promise<number> {
  const { rows } = await database.raw(
    `select count(*)::integer as count from graphile_worker.complete_jobs(array(
       select id from graphile_worker.jobs
        where attempts >= max_attempts and locked_at is null and updated_at < now() - ? * interval '1 day'))`,
    [retention_days],
  );
  return rows[0].count;
}

/**
 * Migrates graphile-worker's schema to its version. The caller holds a lock (sql/migrate.ts), because two concurrent migrations
 * would collide.
 */
export async function migrateJobs(postgres: Knex): Promise<void> {
  const pool = connectJobs(postgres, { max: 1, log: () => undefined });
  try {
    await runMigrations({ pgPool: pool });
  } finally {
    await pool.end();
  }
}

const CONNECTED_WITHIN_MS = 10_000;

/**
 * Opens a pool that only the job queue uses, so that jobs can be locked and released while billing uses all other
 * connections.
 */
export function connectJobs(postgres: Knex, { max, log }: { max: number; log: (message: string) => void }): JobsPool {
  const { connectionString } = postgres.client.config.connection as { connectionString: string };
  // The pool awaits this function before it hands out a connection, although the type of the option has no promise.
  const onConnect: (connection: pg.Client) => unknown = (connection) => watchConnection(connection, connectionString);
  const pool = new pg.Pool({
    connectionString,
    max,
    application_name: 'farthing jobs',
    connectionTimeoutMillis: CONNECTED_WITHIN_MS,
    allowExitOnIdle: true,
    onConnect: onConnect as (connection: pg.ClientBase) => void,
  });
  // A lost connection emits an error event, which would end the process without a listener.
  const lost = (error: Error) => log(error.message);
  pool.on('error', lost);
  pool.on('connect', (connection) => connection.on('error', lost));
  return pool;
}

/**
 * Watches a connection for an unresponsive server. A job whose end is never acknowledged would stay locked while its
 * worker lives, and its tick would not run again.
 */
async function watchConnection(connection: pg.Client, url: string): Promise<void> {
  // The watchdog starts after this statement, so the statement has a timeout of its own.
  const query = { text: 'select pg_backend_pid() as pid', query_timeout: CONNECTED_WITHIN_MS };
  const { rows } = await connection.query<{ pid: number }>(query);
  watchForUnresponsivePostgres({ connection, url, pid: rows[0]!.pid });
}
