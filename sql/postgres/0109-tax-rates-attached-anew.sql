-- One that has ended leaves room for the same rate on the same thing: for one time there is one of them, which who attaches it decides
-- while it holds the row of the rate.
drop index tax_associations_unique;
create unique index tax_associations_unique
  on tax_associations (tenant_id, environment_id, entity_type, entity_id, tax_rate_id, coalesce(currency, ''))
  where status = 'published' and end_date is null;
create index tax_associations_of on tax_associations (tenant_id, environment_id, entity_type, entity_id, tax_rate_id);
