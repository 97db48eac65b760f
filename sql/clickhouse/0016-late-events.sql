-- What has arrived since a place of the log, whenever it happened: scheduled files have late events (docs/decisions/0036-each-record-in-one-file.md).
-- Parts from before it have none, and are read.
ALTER TABLE events {on_cluster} ADD INDEX late offset TYPE minmax GRANULARITY 1;
