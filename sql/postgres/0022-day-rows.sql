-- The UTC days (since 1970) before it have day rows in usage_buckets: whoever writes base rows of such a day writes day rows
-- too, and questions read them (docs/decisions/0008). The same in every row; it is changed with the gate closed.
-- Versions before this one wrote day rows of every day, which is the greatest number; a new installation begins with 0.
alter table slices add column days_before integer not null default 2147483647;
