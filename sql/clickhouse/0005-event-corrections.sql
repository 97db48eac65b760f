-- Corrections of accepted events: the raw row stays as it is, and what stands here takes its place wherever events are read
-- (storage/events/corrected.ts). Of several the one with the greatest sequence counts.
CREATE TABLE event_corrections {on_cluster}
(
  tenant_id            LowCardinality(String),
  environment_id       LowCardinality(String),
  event_id             String,
  sequence             UInt64,
  -- void, replace
  action               LowCardinality(String),
  -- Where the correction stands in the log: an answer up to an offset knows the corrections before it.
  partition            UInt16,
  offset               UInt64,
  -- What the event says from here on; of a voided one what it said last.
  external_customer_id String,
  event_name           LowCardinality(String),
  timestamp            DateTime64(6, 'UTC'),
  customer_id          String,
  source               LowCardinality(String),
  properties           String CODEC(ZSTD(1)),
  received_at          DateTime64(6, 'UTC'),
  -- The place of the event itself.
  event_offset         UInt64,
  event_position       UInt32
)
ENGINE = {engine:MergeTree}
ORDER BY (tenant_id, environment_id, event_id, sequence)
SETTINGS {deduplication_window}, fsync_after_insert = 1, fsync_part_directory = 1;

-- The events as they count now: without the voided ones, with what replaced the others.
CREATE VIEW current_events {on_cluster} AS
SELECT tenant_id, environment_id, external_customer_id, event_name, timestamp, event_id, customer_id, source, properties,
       received_at, partition, offset, position
  FROM events
 WHERE (tenant_id, environment_id, event_id) NOT IN (SELECT tenant_id, environment_id, event_id FROM event_corrections)
UNION ALL
SELECT tenant_id, environment_id, external_customer_id, event_name, timestamp, event_id, customer_id, source, properties,
       received_at, partition, event_offset AS offset, event_position AS position
  FROM event_corrections
 WHERE action = 'replace'
   AND (tenant_id, environment_id, event_id, sequence) IN
       (SELECT tenant_id, environment_id, event_id, max(sequence) FROM event_corrections GROUP BY tenant_id, environment_id, event_id)
 LIMIT 1 BY tenant_id, environment_id, event_id;
