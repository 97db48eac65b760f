-- Last values of cumulative series (docs/decisions/0032-cumulative-metrics.md). `series` is a hash of the resource, scope, name, attributes and
-- start time. `time_nano` is null until the transaction that adds the row has its first value.
create table otlp_series (
  tenant_id text not null,
  environment_id text not null,
  series text not null,
  time_nano numeric,
  value numeric,
  count numeric,
  seen_at timestamptz not null,
  primary key (tenant_id, environment_id, series)
);
create index otlp_series_by_age on otlp_series (seen_at);

-- Events on their way into the log: written with the values that they were computed from.
create table event_outbox (
  id bigint generated always as identity primary key,
  tenant_id text not null,
  environment_id text not null,
  received_at timestamptz not null,
  created_at timestamptz not null default now(),
  event_ids text[] not null,
  events text[] not null
);
