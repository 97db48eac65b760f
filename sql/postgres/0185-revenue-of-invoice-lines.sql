-- What subscriptions, and customers without one, were charged for a time: revenue is read by it (docs/rules/costs.md, "What is revenue").
create index invoice_line_items_earned on invoice_line_items (tenant_id, environment_id, subscription_id, period_end);
create index invoice_line_items_earned_by_hand on invoice_line_items (tenant_id, environment_id, customer_id, period_end)
  where subscription_id is null;
