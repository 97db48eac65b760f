-- The queue itself is graphile-worker's, in a schema of its own that it migrates itself (storage/jobs.ts). Here is what it
-- does not keep: which ticks were put into the queue, which workers live, and what became of long work.

-- The last slot of each job of the scheduler that was put into the queue. A finished job leaves no row in the queue, so
-- its key alone would not keep a second scheduler from adding the same slot again.
create table job_ticks (
  name       text primary key,
  slot_start timestamptz not null
);

-- Workers that live. graphile-worker believes a lock for four hours; a worker that has not been seen for some seconds is
-- dead, and its jobs are given to others.
create table job_workers (
  id      text primary key,
  host    text not null,
  pid     integer not null,
  seen_at timestamptz not null
);

-- Long work that a request has asked for: the ids that it was answered, how far the work is, and how it ended.
create table workflow_runs (
  id              text primary key,
  tenant_id       text not null,
  environment_id  text not null,
  run_id          text not null unique,
  workflow_type   text not null,
  workflow_status text not null default 'Running'
                  check (workflow_status in ('Running', 'Completed', 'Failed', 'TimedOut')),
  task_queue      text not null,
  entity          text not null,
  entity_id       text not null,
  start_time      timestamptz not null,
  close_time      timestamptz,
  attempt         integer not null default 0,
  result          jsonb,
  error           jsonb,
  status          text not null default 'published',
  created_at      timestamptz not null default now(),
  updated_at      timestamptz not null default now(),
  created_by      text not null default '',
  updated_by      text not null default '',
  check ((workflow_status = 'Running') = (close_time is null))
);
create index on workflow_runs (tenant_id, environment_id, created_at, id);
create index on workflow_runs (tenant_id, environment_id, entity_id);
create index workflow_runs_running on workflow_runs (id) where workflow_status = 'Running';
