-- Entitlements that are granted bit by bit (docs/rules/entitlements.md, "Grants"): a quota for each stretch of time.
alter table entitlements
  add column grant_measure text,
  add column grant_quota numeric check (grant_quota > 0),
  add column grant_duration_value integer check (grant_duration_value > 0),
  add column grant_duration_unit text,
  add column grant_allocation_behavior text,
  add column aggregation_mode text,
  add constraint entitlements_grants_whole check (
    (grant_quota is null) = (grant_measure is null) and (grant_quota is null) = (grant_duration_unit is null));
-- Few of many are granted bit by bit: who looks for them reads these.
create index entitlements_grants on entitlements (tenant_id, environment_id, status, created_at, id) where grant_quota is not null;
