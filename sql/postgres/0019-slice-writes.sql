-- Until when a write of the slice in progress may still arrive, in seconds on the clock of ClickHouse: a slice that is tried
-- again when its tokens may be forgotten waits for it and then looks at what is there (pipeline/late-slice.ts).
alter table slices add column write_until bigint;
