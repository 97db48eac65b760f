-- Counted for the metrics: records that a provider refused and that wait for a person.
create index integration_mappings_refused on integration_mappings (tenant_id, environment_id, connection_id)
  where push_error is not null and mapping_state <> 'gone';
