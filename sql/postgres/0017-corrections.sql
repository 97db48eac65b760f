-- The gate before the pre-aggregated rows (storage/bucket-gate.ts): while it is closed no other slice enters them, so that
-- rows can be taken away and written anew. It is a column of every partition's row, because the row's lock then orders
-- who closes the gate and who goes through it.
alter table slices
  add column gate       text,
  -- Seconds on the clock of ClickHouse until which what the holder of the gate has begun may still be written.
  add column gate_until bigint,
  -- Grows with each rebuild: a read that saw it change is made again.
  add column rebuilds   bigint not null default 0;

-- A message for one partition, that of this shard; null: for all of them.
alter table log_outbox add column shard integer;

-- Who voided or replaced an accepted event, when and why. Never deleted: `id` is the order in which corrections count.
create table event_corrections (
  id             bigint generated always as identity primary key,
  tenant_id      text not null,
  environment_id text not null,
  event_id       text not null,
  action         text not null check (action in ('void', 'replace')),
  -- The JSON text of the event as it should have been.
  replacement    text,
  reason         text not null,
  requested_by   text not null,
  requested_at   timestamptz not null,
  state          text not null default 'requested' check (state in ('requested', 'applied', 'unknown_event')),
  applied_at     timestamptz,
  check ((action = 'replace') = (replacement is not null))
);
create index event_corrections_by_event on event_corrections (tenant_id, environment_id, event_id, id);
create index event_corrections_applied on event_corrections (tenant_id, environment_id, applied_at);

-- Rebuilds that were asked for, by `npm run audit -- --repair` or by a back-fill that corrections overtook.
create table bucket_rebuilds (
  id             bigint generated always as identity primary key,
  tenant_id      text not null,
  environment_id text not null,
  -- [{meter_id, day, external_customer_ids}]; without a list of customers: all of that day.
  targets        jsonb not null,
  -- The version of a meter that is live once this is done: {meter_id, version}.
  settles        jsonb,
  reason         text not null,
  requested_at   timestamptz not null default now(),
  done_at        timestamptz
);

-- Dead letters that were sent through the log again, by their place in it.
create table dead_letter_replays (
  tenant_id      text not null,
  environment_id text not null,
  partition      integer not null,
  "offset"       bigint not null,
  position       integer not null,
  event_id       text not null,
  replayed_by    text not null,
  replayed_at    timestamptz not null,
  primary key (tenant_id, environment_id, partition, "offset", position)
);

-- Events that the stores refuse to take: dead-lettered with the bytes, so that they do not hold up their partition.
create table poison_events (
  partition integer not null,
  "offset"  bigint not null,
  position  integer not null,
  reason    text not null,
  found_at  timestamptz not null default now(),
  primary key (partition, "offset", position)
);

-- How far a back-fill is, so that one that was broken off goes on where it was, however long ago that is.
alter table meter_versions
  -- The last day that is certainly counted, as days since 1970.
  add column backfilled_until    integer,
  -- The day in hand, and since when.
  add column backfilling_day     integer,
  add column backfilling_since   timestamptz,
  -- Days that were in hand when a back-fill was broken off, and too long ago to be tried again under the same token.
  add column uncertain_days      integer[] not null default '{}',
  -- The rebuild that makes the version live.
  add column settling_rebuild    bigint;
