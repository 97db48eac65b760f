-- Day rows are made when the day is over (docs/decisions/0008): those that were written with every slice go, and come again.
ALTER TABLE usage_buckets {on_cluster} DELETE WHERE size = 'DAY';
