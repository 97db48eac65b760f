-- Whose events, and whose deliveries, are next is found by going from one environment, or endpoint, to the next in an index: what somebody
-- has waiting is not read for that (docs/decisions/0058-turns-of-webhooks.md).
create index system_events_to_dispatch on system_events (tenant_id, environment_id, sequence) where dispatched_at is null;
drop index system_events_undispatched;

-- Of the managed service, which has no endpoints, an environment is one.
create index webhook_deliveries_first on webhook_deliveries (tenant_id, environment_id, coalesce(endpoint_id, ''), sequence)
  where delivery_status = 'pending' and failure_count = 0;
-- Those that are to be tried later are passed over in the index.
create index webhook_deliveries_again on webhook_deliveries (tenant_id, environment_id, coalesce(endpoint_id, ''), sequence, next_attempt_at)
  where delivery_status = 'pending' and failure_count > 0;
drop index webhook_deliveries_due;

-- Whether an earlier one of its record is before it: "is not distinct from" is looked up in no index.
create index webhook_deliveries_of_record on webhook_deliveries (entity_id, coalesce(endpoint_id, ''), sequence)
  where delivery_status = 'pending';
drop index webhook_deliveries_order;
