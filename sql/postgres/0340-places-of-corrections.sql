-- Where a correction stands in the log, as the pipeline met it first: both stores say it, so the audit can compare them, and a correction
-- that is applied again keeps its place, which decides what the proof of an invoice knows of it. Null for corrections from before.
alter table event_corrections
  add column log_partition integer,
  add column log_offset    bigint,
  add check ((log_partition is null) = (log_offset is null));
create index event_corrections_by_place on event_corrections (log_partition, log_offset) where state = 'applied';
