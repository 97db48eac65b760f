-- Every try to write something to ClickHouse has a number of its own (storage/attempts.ts, docs/decisions/0009). A number is
-- taken in the statement that proves who may write, so whoever takes over has a greater one than all before.
create sequence write_attempts;

do $$ begin
  if exists (select from slices where phase = 'buckets') then
    raise exception 'a slice of the version before is half written: start that version once more, let it finish, and stop it with SIGTERM';
  end if;
end $$;

alter table slices
  -- The newest number that was given to the owner of the partition.
  add column attempt bigint not null default 0,
  -- Of the usage rows of the slice in progress: tries from this number on may have written them. Null until the first one.
  add column rows_since bigint,
  -- Set while a rebuild behind the closed gate may have taken rows away or written them: the gate stays closed then.
  add column gate_attempt bigint,
  -- CRC-32 of the last record before next_offset: tells this log from another that has the same offsets.
  add column last_record bigint,
  -- Slices whose usage rows are of several months: a question over more than one month may see one of them in part.
  add column is_wide boolean not null default false,
  add column wide_slices bigint not null default 0,
  drop column planned_at,
  drop column write_until;

-- The part of a back-fill that is in hand: tries from this number on may have written it. A day that a version before had in
-- hand is left to a rebuild.
alter table meter_versions add column part_since bigint;
update meter_versions set uncertain_days = uncertain_days || backfilling_day
 where state in ('announced', 'backfilling') and backfilling_day is not null
   and backfilling_day > coalesce(backfilled_until, backfilling_day - 1) and not backfilling_day = any(uncertain_days);
alter table meter_versions drop column backfilling_since;

-- What became of the records of the log, added up over ranges of offsets without a gap: written in the statement that moves
-- next_offset. Of each partition the records before the first range are those of a version that did not count them.
create table slice_ledger (
  partition    integer not null,
  from_offset  bigint not null,
  to_offset    bigint not null check (to_offset > from_offset),
  records      bigint not null,
  -- What the producer put into them, as the log says.
  events       bigint not null,
  -- Rows in `events`, and in `event_outcomes` instead.
  stored       bigint not null,
  duplicates   bigint not null,
  conflicts    bigint not null,
  dead_letters bigint not null,
  -- Events of records that could not be read as a list and are one dead letter each: what that one leaves uncounted.
  unread       bigint not null,
  primary key (partition, from_offset),
  check (records = to_offset - from_offset),
  check (events = stored + duplicates + conflicts + dead_letters + unread)
);
create unique index slice_ledger_by_end on slice_ledger (partition, to_offset);

-- How many events were ever appended, since ranges are counted: equals what the ledger says and what still waits.
alter table log_partitions add column accepted_events bigint not null default 0;
update log_partitions p set accepted_events = coalesce((
  select sum(r.event_count) from log_records r
   where r.partition = p.partition
     and r."offset" >= coalesce((select s.next_offset from slices s where s.partition = p.partition), 0)), 0);

-- Which corrections a back-fill may have read before or after: in an order that no clock gives. What stands from before is
-- taken for later, which costs a rebuild and no more.
alter table meter_versions add column announced_number bigint not null default 0;
alter table meter_versions alter column announced_number set default nextval('write_attempts');
alter table event_corrections add column applied_number bigint not null default 0;
