-- The scheduler asks which of those that wait for their first payment have come to their end.
create index subscriptions_unpaid on subscriptions (tenant_id, environment_id)
  where status = 'published' and subscription_status = 'incomplete';
