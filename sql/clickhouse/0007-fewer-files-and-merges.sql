-- Parts of up to 100 MB in one file instead of one per column: an insert has fewer files to bring to the disk. And ten parts
-- of a size instead of five before they are merged: each row is written anew less often, for some more parts to read.
ALTER TABLE events {on_cluster} MODIFY SETTING min_bytes_for_wide_part = 104857600, merge_selector_base = 10;

ALTER TABLE event_identities {on_cluster} MODIFY SETTING min_bytes_for_wide_part = 104857600, merge_selector_base = 10;

ALTER TABLE event_outcomes {on_cluster} MODIFY SETTING min_bytes_for_wide_part = 104857600, merge_selector_base = 10;

ALTER TABLE usage_buckets {on_cluster} MODIFY SETTING min_bytes_for_wide_part = 104857600, merge_selector_base = 10;
