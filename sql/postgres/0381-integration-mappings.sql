-- Records of ours and their counterparts at a provider (docs/integrations/README.md, "Mappings"). A mapping is written before the call that
-- creates the counterpart, so a call that was interrupted is repeated with its key.
create table integration_mappings (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  connection_id text not null references connections (id),
  provider_type text not null,
  entity_type text not null,
  entity_id text not null,
  provider_entity_id text,
  mapping_state text not null check (mapping_state in ('intended', 'made', 'gone')),
  -- Key of the call, and the instant of the first call with it; null of a link that was made by hand.
  idempotency_key text,
  key_created_at timestamptz,
  url text,
  metadata jsonb,
  -- When the counterpart is read again; null if it is not.
  next_pull_at timestamptz,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default '',
  check (mapping_state <> 'made' or provider_entity_id is not null)
);
create unique index integration_mappings_one_counterpart
  on integration_mappings (tenant_id, environment_id, connection_id, entity_type, entity_id) where mapping_state <> 'gone';
create unique index integration_mappings_one_record
  on integration_mappings (tenant_id, environment_id, connection_id, entity_type, provider_entity_id) where mapping_state <> 'gone';
create index integration_mappings_entity on integration_mappings (tenant_id, environment_id, entity_type, entity_id, created_at, id);
create index integration_mappings_due on integration_mappings (next_pull_at) where next_pull_at is not null;
