-- When the first and the last event of a row happened, in microseconds since 1970. A row all of whose events lie in the range of
-- a question answers it also where the range ends inside of the row's hour: "until now" reads no raw events
-- (docs/decisions/0010). Of rows from before nobody knows it: they say that they reach beyond any range.
ALTER TABLE usage_buckets {on_cluster} ADD COLUMN first_us SimpleAggregateFunction(min, Int64) DEFAULT -9000000000000000000 CODEC(Delta(8), ZSTD(1));

ALTER TABLE usage_buckets {on_cluster} ADD COLUMN last_us SimpleAggregateFunction(max, Int64) DEFAULT 9000000000000000000 CODEC(Delta(8), ZSTD(1));
