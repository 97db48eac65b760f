-- Imports and exports: what is read from a file into records, or written from records into one, and how far it is (docs/rules/tasks.md).
create table tasks (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  task_type text not null check (task_type in ('IMPORT', 'EXPORT')),
  entity_type text not null,
  scheduled_task_id text,
  -- The run that does it: whoever asks for it puts it into the queue in the same transaction.
  workflow_id text,
  file_url text not null default '',
  file_name text,
  file_type text not null,
  task_status text not null default 'PENDING' check (task_status in ('PENDING', 'PROCESSING', 'COMPLETED', 'FAILED')),
  total_records integer check (total_records >= 0),
  processed_records integer not null default 0 check (processed_records >= 0),
  successful_records integer not null default 0 check (successful_records >= 0),
  failed_records integer not null default 0 check (failed_records >= 0),
  error_summary text,
  -- Of the file, as it was written or read.
  sha256 text,
  size_bytes double precision check (size_bytes >= 0),
  -- Of an export: [start, end) of what is in it.
  range_start timestamptz,
  range_end timestamptz,
  metadata jsonb,
  started_at timestamptz,
  completed_at timestamptz,
  failed_at timestamptz,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default '',
  check (successful_records + failed_records <= processed_records),
  check ((task_status = 'COMPLETED') = (completed_at is not null)),
  check ((task_status = 'FAILED') = (failed_at is not null)),
  check ((range_start is null) = (range_end is null) and range_start < range_end)
);
create index tasks_list on tasks (tenant_id, environment_id, status, created_at, id);
create index tasks_by_status on tasks (tenant_id, environment_id, task_status, created_at, id) where task_status <> 'COMPLETED';
create index tasks_by_schedule on tasks (tenant_id, environment_id, scheduled_task_id, created_at, id)
  where scheduled_task_id is not null;
create index tasks_by_author on tasks (tenant_id, environment_id, created_by, created_at, id);
create index tasks_by_entity on tasks (tenant_id, environment_id, entity_type, created_at, id);
create index tasks_by_workflow on tasks (workflow_id) where workflow_id is not null;

-- COMPLETED is final, and each move is one of those of core/task/record.ts, on whatever path it comes.
create function refuse_move_of_task() returns trigger language plpgsql as $$
begin
  if new.task_status <> old.task_status
     and (old.task_status, new.task_status) not in (('PENDING', 'PROCESSING'), ('PENDING', 'FAILED'),
       ('PROCESSING', 'COMPLETED'), ('PROCESSING', 'FAILED'), ('FAILED', 'PROCESSING')) then
    raise exception 'task % cannot move from % to %', old.id, old.task_status, new.task_status
      using errcode = 'restrict_violation';
  end if;
  return new;
end $$;
create trigger tasks_move before update of task_status on tasks for each row execute function refuse_move_of_task();

-- A run that has ended without success, of itself or because its worker died in the last try, has failed its task.
create function fail_task_of_run() returns trigger language plpgsql as $$
begin
  update tasks
     set task_status = 'FAILED', failed_at = new.close_time, updated_at = new.updated_at,
         error_summary = coalesce(new.error ->> 'message', 'it ended without success')
   where tenant_id = new.tenant_id and environment_id = new.environment_id and id = new.entity_id
     and workflow_id = new.id and task_status in ('PENDING', 'PROCESSING');
  return null;
end $$;
create trigger workflow_runs_fail_task after update of workflow_status on workflow_runs
  for each row when (new.entity = 'task' and new.workflow_status in ('Failed', 'TimedOut') and old.workflow_status = 'Running')
  execute function fail_task_of_run();
