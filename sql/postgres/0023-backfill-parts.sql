-- A day is back-filled in parts, ranges of its customers: which one is in hand, and how many events make one, so that who
-- goes on with a back-fill cuts the day as it was begun.
alter table meter_versions
  add column backfilling_part     integer not null default 0,
  add column backfill_part_events integer;
