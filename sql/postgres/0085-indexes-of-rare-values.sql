-- Conditions whose usual value nearly all records have: who asks for another finds the few that have it, and the usual ones cost no
-- write (docs/decisions/0014-indexes-of-lists.md).
create index invoices_not_paid on invoices (tenant_id, environment_id, payment_status, created_at, id)
  where payment_status <> 'SUCCEEDED';
create index invoices_of_no_subscription on invoices (tenant_id, environment_id, invoice_type, created_at, id)
  where invoice_type <> 'SUBSCRIPTION';
create index invoices_not_final on invoices (tenant_id, environment_id, invoice_status, created_at, id)
  where invoice_status <> 'FINALIZED';
create index subscriptions_not_active on subscriptions (tenant_id, environment_id, subscription_status, created_at, id)
  where subscription_status <> 'active';
create index webhook_deliveries_name on webhook_deliveries (tenant_id, environment_id, event_name, created_at, id);
create index audit_entries_ends on audit_entries (tenant_id, environment_id, action, created_at, id)
  where action <> 'updated';
