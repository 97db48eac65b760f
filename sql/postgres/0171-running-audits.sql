-- What the processes that keep the usage of running periods in memory have found when they compared it with the stores: an audit is
-- another process, and reads it here.
create table running_audits (
  id text primary key,
  checked_at timestamptz not null default now(),
  answers int not null,
  lines int not null,
  differences jsonb not null
);
create index on running_audits (checked_at);
