-- What waits is asked for with every look at the lag; what is done stays for ever.
create index bucket_rebuilds_open on bucket_rebuilds (tenant_id, environment_id) where done_at is null;
