-- How an add-on is attached: for the period in which it begins, or until it is detached.
alter table addon_associations add column cadence text not null default 'recurring'
  check (cadence in ('onetime', 'recurring'));
-- Who asks for the add-ons of a subscription wants those that have not ended.
create index addon_associations_open on addon_associations (tenant_id, environment_id, entity_id, created_at, id)
  where status = 'published';
