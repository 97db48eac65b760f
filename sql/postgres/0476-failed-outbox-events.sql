-- When the log refused the events for good. They are set aside, so that other entries are moved.
alter table event_outbox add column failed_at timestamptz;
