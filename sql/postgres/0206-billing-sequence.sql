-- Which number the next invoice of a subscription has in its own count is read from the end of this, however many it has had.
create index invoices_sequence on invoices (tenant_id, environment_id, subscription_id, billing_sequence)
  where billing_sequence is not null;
