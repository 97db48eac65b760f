-- A correction deletes usage rows before it writes them anew. A delete writes one column of a wide part, and all of a compact part. Parts of
-- slices stay compact, because few of them reach this size; merged parts are wide. Deletes of a rebuild then take about two thirds of the time.
ALTER TABLE usage_buckets {on_cluster} MODIFY SETTING min_bytes_for_wide_part = 1000000;
