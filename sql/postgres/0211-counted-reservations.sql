-- Where the events of a reservation stand in the log is asked until readers of usage have come so far, and is forgotten behind that: what they came
-- to is then said by the reservation, which the audit holds against what was committed.
alter table reservations add column counted_units numeric;
-- By the machine's clock: an environment may have another.
alter table reservation_events add column noted_at timestamptz not null default now();
create index reservation_events_noted on reservation_events (noted_at);
