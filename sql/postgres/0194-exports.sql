-- What exports read by: invoices by when they became final, movements of credits by when they happened (docs/rules/exports.md).
create index invoices_finalized on invoices (tenant_id, environment_id, finalized_at, id) where finalized_at is not null;
create index ledger_transactions_time on ledger_transactions (tenant_id, environment_id, occurred_at, id);

-- Where files are written, and with what: the credentials are sealed where there is a key for that (docs/decisions/0024-sealed-secrets.md).
create table connections (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  name text not null,
  provider_type text not null,
  secret text not null default '',
  metadata jsonb,
  sync_config jsonb,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);
create index connections_list on connections (tenant_id, environment_id, status, created_at, id);

create table scheduled_tasks (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  connection_id text not null references connections (id),
  entity_type text not null,
  interval text not null,
  enabled boolean not null,
  job_config jsonb not null,
  -- The next range, [start, end): it follows the one before it without a gap.
  next_start timestamptz not null,
  next_end timestamptz not null check (next_end > next_start),
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);
create index scheduled_tasks_list on scheduled_tasks (tenant_id, environment_id, status, created_at, id);
create index scheduled_tasks_connection on scheduled_tasks (tenant_id, environment_id, connection_id, created_at, id);
create index scheduled_tasks_enabled on scheduled_tasks (tenant_id, environment_id, enabled, status, created_at, id);
create index scheduled_tasks_due on scheduled_tasks (next_end) where enabled and status = 'published';

-- Of a run that was asked for by hand there may be several for one range; of the schedule's own there is one, whoever makes it.
alter table tasks add column is_scheduled boolean not null default false;
create unique index tasks_one_per_range on tasks (scheduled_task_id, range_start, range_end) where is_scheduled;
-- Of a file that is being written to S3 in parts: whoever goes on ends it first.
alter table tasks add column upload_id text;
