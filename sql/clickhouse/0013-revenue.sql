-- Revenue of final invoices: of a customer, a currency and a year, by the instants at which what was charged began to be served. A row is made
-- of all that Postgres has for it, and of two rows with one key that with the greater version holds (docs/decisions/0025-revenue-rows.md).
CREATE TABLE revenue {on_cluster}
(
  tenant_id      LowCardinality(String),
  environment_id LowCardinality(String),
  customer_id    String,
  currency       LowCardinality(String),
  year           UInt16,
  earned_at      Array(DateTime64(3, 'UTC')),
  usage          Array(Decimal(38, 4)),
  fixed          Array(Decimal(38, 4)),
  -- Their sums: whole years are read without the rest.
  usage_of_year  Decimal(38, 4),
  fixed_of_year  Decimal(38, 4),
  version        UInt64
)
ENGINE = {engine:ReplacingMergeTree(version)}
PARTITION BY year
ORDER BY (tenant_id, environment_id, customer_id, currency, year)
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
