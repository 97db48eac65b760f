-- The clock of an environment that has one of its own (docs/decisions/0016-test-clocks.md): what is due there is done when the
-- clock is advanced, and by no job that goes by the clock of the machine.
create table test_clocks (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  name text,
  test_clock_status text not null default 'ready' check (test_clock_status in ('ready', 'advancing', 'failed')),
  -- The instant that it is in the environment.
  frozen_time timestamptz not null,
  -- Where the last advance began, when the machine was asked for it, and how far it is to go.
  advanced_from timestamptz not null,
  advanced_at timestamptz not null,
  target_time timestamptz,
  workflow_id text,
  run_id text,
  progress jsonb not null,
  failure jsonb,
  metadata jsonb,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default '',
  check ((test_clock_status = 'advancing') = (target_time is not null)),
  check ((test_clock_status = 'failed') = (failure is not null))
);
-- One per environment, and jobs leave out what has one.
create unique index test_clocks_environment on test_clocks (tenant_id, environment_id);
create index test_clocks_run on test_clocks (run_id) where test_clock_status = 'advancing';

-- What of an environment is due next.
create index subscriptions_next_period_end on subscriptions (tenant_id, environment_id, current_period_end)
  where status = 'published' and subscription_status in ('active', 'trialing');
create index subscriptions_next_cancel_at on subscriptions (tenant_id, environment_id, cancel_at)
  where status = 'published' and subscription_status in ('active', 'trialing') and cancel_at is not null;
create index subscriptions_next_end_date on subscriptions (tenant_id, environment_id, end_date)
  where status = 'published' and subscription_status in ('active', 'trialing') and end_date is not null;
create index invoices_next_draft on invoices (tenant_id, environment_id, last_computed_at)
  where invoice_status = 'DRAFT' and status = 'published';

-- Who has remembered that an environment has no clock is told that it has one, as of changes of keys.
create trigger test_clocks_tell_access after insert or delete on test_clocks
  for each row execute function tell_access_change();
