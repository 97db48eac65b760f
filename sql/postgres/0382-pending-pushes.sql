-- Records that a provider has not received yet (docs/integrations/README.md, "Sending by itself"): one job per connection sends them,
-- the longest waiting first. After a failure of the provider the connection pauses; a record that it refuses waits for a person.
alter table integration_mappings
  add column pending_since timestamptz,
  add column push_error text,
  -- The key is not the first: what an earlier call created is searched for before anything is sent.
  add column is_key_renewed boolean not null default false;
create index integration_mappings_pending on integration_mappings (tenant_id, environment_id, connection_id, pending_since, id)
  where pending_since is not null;

alter table connections
  add column paused_until timestamptz,
  add column pause_count integer not null default 0;
