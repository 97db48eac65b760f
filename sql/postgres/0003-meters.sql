-- What is measured: which events, which of their values, how they combine.

create table meters (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  name text not null,
  event_name text not null,
  aggregation jsonb not null,
  filters jsonb not null default '[]',
  reset_usage text not null,
  -- 'backfilling' until the events that came before the meter are counted; then 'live'.
  state text not null default 'live' check (state in ('backfilling', 'live')),
  -- Grows with each change of what the meter counts.
  version integer not null default 1,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);
create index meters_by_scope on meters (tenant_id, environment_id, created_at, id);
create index meters_by_event on meters (tenant_id, environment_id, event_name) where status = 'published';
