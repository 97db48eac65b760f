-- Whose running usage is compared with a threshold, every few minutes: few subscriptions have one.
create index subscriptions_with_threshold on subscriptions (tenant_id, current_period_start, id)
  where status = 'published' and subscription_status = 'active' and auto_invoice_threshold > 0;
