-- A subscription whose start lies ahead is opened by the scheduler when it comes; null once it is open.
alter table subscriptions add column opens_at timestamptz;
create index subscriptions_to_open on subscriptions (tenant_id, environment_id, opens_at) where opens_at is not null;
