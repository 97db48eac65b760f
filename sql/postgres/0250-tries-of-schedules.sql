-- How often what was to happen to a subscription has failed, and when it is tried again: while that is to come the subscription is left alone.
alter table subscription_schedules
  add column failed_attempts integer not null default 0,
  add column next_attempt_at timestamptz;
