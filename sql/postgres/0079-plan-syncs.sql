-- One synchronisation of a plan at a time: a second one that is asked for while the first runs is refused.
create unique index workflow_runs_plan_sync on workflow_runs (tenant_id, environment_id, entity_id)
  where workflow_type = 'PriceSyncWorkflow' and workflow_status = 'Running';

-- The subscriptions of a plan that do not know its last price yet, in the order of their ids.
create index subscriptions_plan_sync on subscriptions (tenant_id, environment_id, plan_id, id)
  where status = 'published' and subscription_status <> 'cancelled';
