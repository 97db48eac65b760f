-- The place of the event itself is a pair: the partition on which it was stored and its offset there. A correction may stand on another
-- partition, because partitions were added since. Rows from before this column say the correction's partition, which is the event's
-- wherever no partition was added between the two; the audit finds the others and mends them (docs/operations.md, "correction_differs").
ALTER TABLE event_corrections {on_cluster} ADD COLUMN event_partition UInt16 DEFAULT partition;

CREATE OR REPLACE VIEW current_events {on_cluster} AS
SELECT tenant_id, environment_id, external_customer_id, event_name, timestamp, event_id, customer_id, source, properties,
       received_at, partition, offset, position
  FROM events
 WHERE (tenant_id, environment_id, event_id) NOT IN (SELECT tenant_id, environment_id, event_id FROM event_corrections)
UNION ALL
SELECT tenant_id, environment_id, external_customer_id, event_name, timestamp, event_id, customer_id, source, properties,
       received_at, event_partition AS partition, event_offset AS offset, event_position AS position
  FROM event_corrections
 WHERE action = 'replace'
   AND (tenant_id, environment_id, event_id, sequence) IN
       (SELECT tenant_id, environment_id, event_id, max(sequence) FROM event_corrections GROUP BY tenant_id, environment_id, event_id)
 LIMIT 1 BY tenant_id, environment_id, event_id;
