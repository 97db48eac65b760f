-- What is to happen to a subscription at an instant that lies ahead: a cancellation, or another plan. `status` is how far it is.
create table subscription_schedules (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  status text not null default 'pending',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default '',
  subscription_id text not null references subscriptions (id),
  schedule_type text not null,
  scheduled_at timestamptz not null,
  configuration jsonb,
  executed_at timestamptz,
  cancelled_at timestamptz,
  execution_result jsonb,
  error_message text,
  metadata jsonb
);
create index subscription_schedules_list on subscription_schedules (tenant_id, environment_id, created_at desc, id desc);
create index subscription_schedules_subscription on subscription_schedules
  (tenant_id, environment_id, subscription_id, created_at desc, id desc);
-- Of two requests that come at once the second is refused.
create unique index subscription_schedules_one_pending on subscription_schedules (subscription_id)
  where status in ('pending', 'executing');
