-- Levels at which it is told how much of a grant has been used (docs/rules/alerts.md, "Grants of entitlements").
alter table entitlements
  add column alert_settings jsonb,
  add constraint entitlements_levels_of_grants check (alert_settings is null or grant_quota is not null);
