-- The customer that another one belongs to.
alter table customers add column parent_customer_id text references customers (id);
create index customers_parent on customers (tenant_id, environment_id, parent_customer_id)
  where parent_customer_id is not null;
