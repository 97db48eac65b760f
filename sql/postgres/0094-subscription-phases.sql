-- Phases of subscriptions. Their lines name them (subscription_line_items.subscription_phase_id).
create table subscription_phases (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default '',
  subscription_id text not null references subscriptions (id),
  start_date timestamptz not null,
  end_date timestamptz,
  metadata jsonb,
  check (end_date is null or end_date > start_date)
);
create unique index subscription_phases_start on subscription_phases
  (tenant_id, environment_id, subscription_id, start_date) where status = 'published';
