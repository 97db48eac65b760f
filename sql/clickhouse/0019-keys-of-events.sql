-- Customer and name complete the key of the event in `events`: an event is found by its id without a search among the others of its month.
-- Rows from before these columns have no name, and their events are searched by time.
ALTER TABLE event_identities {on_cluster} ADD COLUMN external_customer_id String AFTER event_id;

ALTER TABLE event_identities {on_cluster} ADD COLUMN event_name LowCardinality(String) AFTER external_customer_id;
