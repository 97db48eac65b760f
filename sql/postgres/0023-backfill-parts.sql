-- A day is back-filled in parts, ranges of its customers: which one is in hand, and how many events make one, so that who
-- goes on with a back-fill cuts the day as it was begun.
alter table meter_versions
  add column backfilling_part     integer not null default 0,
  add column backfill_part_events integer;

-- Days that were in hand until now were written as one: they are rebuilt, because their token is not known any more.
update meter_versions set uncertain_days = uncertain_days || backfilling_day
 where state in ('announced', 'backfilling') and backfilling_day > coalesce(backfilled_until, backfilling_day - 1)
   and not backfilling_day = any(uncertain_days);
