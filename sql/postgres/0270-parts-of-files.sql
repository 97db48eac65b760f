-- A file of an export may be in parts (docs/rules/exports.md, "In parts"): what each is, once all are there.
alter table tasks add column files jsonb;

-- Those that a try has begun, until the task has ended: whoever tries again ends what is left of them.
create table export_parts (
  tenant_id text not null,
  environment_id text not null,
  task_id text not null references tasks (id) on delete cascade,
  part integer not null check (part >= 1),
  upload_id text not null,
  -- Whether it may have its name: where a later try has fewer parts that name is taken away.
  is_named boolean not null default false,
  primary key (tenant_id, environment_id, task_id, part)
);

update scheduled_tasks set job_config = '{"bom": false, "max_file_size_mb": null}'::jsonb || job_config;
