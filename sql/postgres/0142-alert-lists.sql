-- What is watched of one subscription, as lists ask for it.
create index alert_settings_parent on alert_settings (tenant_id, environment_id, parent_entity_id, created_at, id)
  where parent_entity_id is not null;
