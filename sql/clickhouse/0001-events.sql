-- Every accepted event, once (design: ARCHITECTURE.md, "Exactly once"). The archive that every bucket can be rebuilt from.
-- Few, large table partitions: one per day would cost three times the CPU on insert.
CREATE TABLE events {on_cluster}
(
  tenant_id            LowCardinality(String),
  environment_id       LowCardinality(String),
  external_customer_id String,
  event_name           LowCardinality(String),
  timestamp            DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
  event_id             String,
  customer_id          String,
  source               LowCardinality(String),
  -- The JSON text as the producer sent it: numbers keep their digits.
  properties           String CODEC(ZSTD(1)),
  received_at          DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
  -- Where the event stands in the log: what decides which of two equal ids was first.
  partition            UInt16,
  offset               UInt64 CODEC(Delta, ZSTD(1)),
  position             UInt32 CODEC(Delta, ZSTD(1))
)
ENGINE = {engine:MergeTree}
PARTITION BY toYYYYMM(timestamp)
ORDER BY (tenant_id, environment_id, external_customer_id, event_name, timestamp, event_id)
SETTINGS {deduplication_window}, fsync_after_insert = 1, fsync_part_directory = 1;

-- The exact look-up behind the pipeline's hash sets. Sorted by hash, so that a shard is a range of it.
CREATE TABLE event_identities {on_cluster}
(
  id_hash        UInt64,
  tenant_id      LowCardinality(String),
  environment_id LowCardinality(String),
  event_id       String,
  timestamp      DateTime64(6, 'UTC'),
  partition      UInt16,
  offset         UInt64,
  position       UInt32,
  -- CRC-32 of what the event says: tells a re-send from a conflict.
  content_crc    UInt32
)
ENGINE = {engine:MergeTree}
ORDER BY id_hash
SETTINGS {deduplication_window}, fsync_after_insert = 1, fsync_part_directory = 1;

-- What became of events that were not stored, or not counted by a meter: nothing is dropped with a log line alone.
CREATE TABLE event_outcomes {on_cluster}
(
  tenant_id      LowCardinality(String),
  environment_id LowCardinality(String),
  event_id       String,
  -- duplicate, conflict, dead_letter, unusable
  outcome        LowCardinality(String),
  meter_id       String,
  reason         String,
  received_at    DateTime64(6, 'UTC'),
  partition      UInt16,
  offset         UInt64,
  position       UInt32,
  -- The bytes as they came, for conflicts and dead letters.
  body           String CODEC(ZSTD(1))
)
ENGINE = {engine:MergeTree}
PARTITION BY toYYYYMM(received_at)
ORDER BY (tenant_id, environment_id, event_id, received_at)
SETTINGS {deduplication_window}, fsync_after_insert = 1, fsync_part_directory = 1;

-- The pre-aggregated usage: partial states that combine in any order (core/metering/bucket.ts). `size` is the base bucket
-- of the meter (an hour, or its own bucket_size where that is finer) or the UTC day, which carries the long questions.
CREATE TABLE usage_buckets {on_cluster}
(
  tenant_id            LowCardinality(String),
  environment_id       LowCardinality(String),
  meter_id             LowCardinality(String),
  meter_version        UInt32,
  size                 LowCardinality(String),
  external_customer_id String,
  bucket_start         DateTime64(0, 'UTC') CODEC(Delta, ZSTD(1)),
  group_key            String,
  event_count          SimpleAggregateFunction(sum, UInt64),
  sum                  SimpleAggregateFunction(sum, Decimal(76, 24)),
  -- Σ value × time in microseconds since 1970.
  weighted_sum         SimpleAggregateFunction(sum, Decimal(76, 24)),
  min                  SimpleAggregateFunction(min, Nullable(Decimal(76, 24))),
  max                  SimpleAggregateFunction(max, Nullable(Decimal(76, 24))),
  -- The newest event: (microseconds, event_id, value); the event_id breaks ties.
  latest               SimpleAggregateFunction(max, Tuple(Int64, String, Decimal(76, 24))),
  uniques              AggregateFunction(uniqExact, String)
)
ENGINE = {engine:AggregatingMergeTree}
PARTITION BY toYYYYMM(bucket_start)
ORDER BY (tenant_id, environment_id, meter_id, meter_version, size, external_customer_id, bucket_start, group_key)
SETTINGS {deduplication_window}, fsync_after_insert = 1, fsync_part_directory = 1;
