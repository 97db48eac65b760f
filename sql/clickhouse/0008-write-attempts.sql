-- Who may write: a statement that carries a smaller number than its writer's fence fails (storage/events/write-fence.ts,
-- docs/decisions/0009).
CREATE TABLE write_fences {on_cluster}
(
  writer  String,
  attempt SimpleAggregateFunction(max, UInt64)
)
ENGINE = {engine:AggregatingMergeTree}
ORDER BY writer
SETTINGS {deduplication_window}, fsync_after_insert = 1, fsync_part_directory = 1;

-- The newest try that a row holds something of. Also in the marks (size 'MARK'), one in every part that a try writes: it tells
-- later whether the part arrived, because a part is there whole or not at all.
ALTER TABLE usage_buckets {on_cluster} ADD COLUMN attempt SimpleAggregateFunction(max, UInt64) DEFAULT 0;

-- To look at what is there of a slice without reading the whole table.
ALTER TABLE events {on_cluster} ADD INDEX by_offset offset TYPE minmax GRANULARITY 1;

ALTER TABLE event_identities {on_cluster} ADD INDEX by_offset offset TYPE minmax GRANULARITY 1;

ALTER TABLE event_outcomes {on_cluster} ADD INDEX by_offset offset TYPE minmax GRANULARITY 1;

-- In the background: until then whoever looks reads more.
ALTER TABLE events {on_cluster} MATERIALIZE INDEX by_offset SETTINGS mutations_sync = 0;

ALTER TABLE event_identities {on_cluster} MATERIALIZE INDEX by_offset SETTINGS mutations_sync = 0;

ALTER TABLE event_outcomes {on_cluster} MATERIALIZE INDEX by_offset SETTINGS mutations_sync = 0;
