-- Subscriptions that have ended and for which usage has come since: whether it is on an invoice is looked at some time after the first
-- of it (docs/rules/invoices.md, "Late events"). What is taken is being looked at: what comes meanwhile is a row of its own.
create table late_usage (
  id bigint generated always as identity primary key,
  tenant_id text not null,
  environment_id text not null,
  subscription_id text not null,
  due_at timestamptz not null,
  is_taken boolean not null default false
);
create unique index late_usage_waiting on late_usage (tenant_id, environment_id, subscription_id) where not is_taken;
create index late_usage_due on late_usage (tenant_id, environment_id, due_at);

-- Whether anything of a tenant has ended behind the usage that arrives: asked for each slice of events.
create index subscriptions_ended on subscriptions (tenant_id, environment_id, end_date)
  where status = 'published' and subscription_status = 'cancelled';
