-- What a list is asked for by a condition of its own is found by an index and not by reading an environment
-- (docs/decisions/0014-indexes-of-lists.md). Where few records have the column, only these are in the index: the others cost no write.

-- Also archived customers: their invoices are asked for by the id that they had.
create index customers_external_id on customers (tenant_id, environment_id, external_id);
create index users_metadata on users using gin (metadata jsonb_path_ops);
create index prices_start on prices (tenant_id, environment_id, start_date);

create index subscriptions_parent on subscriptions (tenant_id, environment_id, parent_subscription_id)
  where parent_subscription_id is not null;
create index subscriptions_invoicing_customer on subscriptions (tenant_id, environment_id, invoicing_customer_id)
  where invoicing_customer_id is not null;
create index subscriptions_trial_end on subscriptions (tenant_id, environment_id, trial_end)
  where trial_end is not null;

create index subscription_line_items_customer on subscription_line_items (tenant_id, environment_id, customer_id);
create index subscription_line_items_entity on subscription_line_items (tenant_id, environment_id, entity_id);
create index subscription_line_items_meter on subscription_line_items (tenant_id, environment_id, meter_id)
  where meter_id is not null;
create index subscription_line_items_addon on subscription_line_items (tenant_id, environment_id, addon_association_id)
  where addon_association_id is not null;

create index invoices_subscription_customer on invoices (tenant_id, environment_id, subscription_customer_id)
  where subscription_customer_id is not null;
create index invoices_period_end on invoices (tenant_id, environment_id, period_end);
create index invoices_amount_due on invoices (tenant_id, environment_id, amount_due);
-- What is still to be paid: an invoice leaves it when it is paid.
create index invoices_open on invoices (tenant_id, environment_id, amount_remaining) where amount_remaining > 0;
-- Of runs somebody looks for those that failed.
create index workflow_runs_by_status on workflow_runs (tenant_id, environment_id, workflow_status, created_at, id);
