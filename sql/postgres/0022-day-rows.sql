-- The UTC days (since 1970) before it have day rows in usage_buckets: whoever writes base rows of such a day writes day rows
-- too, and questions read them (docs/decisions/0008). The same in every row; it grows with the gate closed.
alter table slices add column days_before integer not null default 0;
