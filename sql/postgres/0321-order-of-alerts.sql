-- Whoever changes a state tells it behind who changed it before, though asked earlier and held up (docs/rules/alerts.md, "Told once"): the instant of the last entry of
-- the log, and the milliseconds that its id begins with, which no other of this state has.
alter table alert_states add column told_at timestamptz, add column told_ms bigint;
