-- Who changed what: one row for each record that was made or changed, written in the transaction of the change.

create table audit_entries (
  id text primary key,
  tenant_id text not null,
  -- '' for what lies above the environments: the tenant, its environments and users.
  environment_id text not null,
  entity_type text not null,
  entity_id text not null,
  action text not null,
  -- `system` for what the clock does.
  user_id text not null,
  secret_id text,
  request_id text,
  -- The record, as it is answered, without its secrets; null before it was made.
  before jsonb,
  after jsonb,
  created_at timestamptz not null
);
create index audit_entries_list on audit_entries (tenant_id, environment_id, created_at, id);
create index audit_entries_entity on audit_entries (tenant_id, environment_id, entity_id, created_at, id);
create index audit_entries_type on audit_entries (tenant_id, environment_id, entity_type, created_at, id);
create index audit_entries_user on audit_entries (tenant_id, environment_id, user_id, created_at, id);
