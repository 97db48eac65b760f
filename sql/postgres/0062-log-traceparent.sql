-- Where a traced request stands in its trace (W3C Trace Context), so that the slice with its events continues it. Null for all
-- others: a null takes no room in a row.
alter table log_records add column traceparent text;
