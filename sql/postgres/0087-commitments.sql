-- The times of day of a windowed commitment stand on the price; the line item says them again, as it began with them.
alter table subscription_line_items add column commitment_time_buckets jsonb;
