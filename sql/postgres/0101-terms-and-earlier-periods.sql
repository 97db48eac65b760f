-- Of a line that follows another whose commitment goes on: the line with which the terms of the commitment began. Null is itself.
alter table subscription_line_items add column commitment_line_id text;
-- Of a subscription whose periods began anew: those in which it was before, the oldest first, each until when, with its anchor, period
-- and count. Null is none.
alter table subscriptions add column earlier_periods jsonb;
