-- Revenue of final invoices: of a customer, a currency and the instant at which what was charged began to be served. A row is made of all
-- that Postgres has for it, and of two rows with one key that with the greater version holds (docs/decisions/0025-revenue-rows.md).
CREATE TABLE revenue {on_cluster}
(
  tenant_id      LowCardinality(String),
  environment_id LowCardinality(String),
  currency       LowCardinality(String),
  earned_at      DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  customer_id    String,
  usage          Decimal(38, 4),
  fixed          Decimal(38, 4),
  version        UInt64
)
ENGINE = {engine:ReplacingMergeTree(version)}
PARTITION BY toYear(earned_at)
ORDER BY (tenant_id, environment_id, customer_id, currency, earned_at)
SETTINGS {deduplication_window}, fsync_after_insert = 1, fsync_part_directory = 1;

-- What recurs: a fixed charge of a line item of a subscription, by the month, while it is charged. One that is not is 0.
CREATE TABLE recurring_revenue {on_cluster}
(
  tenant_id      LowCardinality(String),
  environment_id LowCardinality(String),
  line_item_id   String,
  customer_id    String,
  currency       LowCardinality(String),
  starts_at      DateTime64(3, 'UTC'),
  ends_at        DateTime64(3, 'UTC'),
  monthly        Decimal(38, 4),
  version        UInt64
)
ENGINE = {engine:ReplacingMergeTree(version)}
ORDER BY (tenant_id, environment_id, customer_id, line_item_id)
SETTINGS {deduplication_window}, fsync_after_insert = 1, fsync_part_directory = 1;
