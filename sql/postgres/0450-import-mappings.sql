-- Mappings of imported files (docs/rules/imports.md, "Mappings").
create table import_mappings (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  name text not null,
  entity_type text not null,
  preset text,
  delimiter text not null,
  decimal_separator text not null,
  date_format text not null,
  time_zone text not null,
  encoding text,
  other_columns text not null,
  property_names text not null,
  fields jsonb not null,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);
create unique index import_mappings_name_unique on import_mappings (tenant_id, environment_id, name) where status = 'published';
create index import_mappings_list on import_mappings (tenant_id, environment_id, status, created_at, id);

-- `mapping_terms` are those of the mapping when the import was accepted: a resumed import must read its file as before.
alter table tasks
  add column mapping text,
  add column mapping_terms jsonb,
  add column encoding text,
  add column same_file_as text;
create index tasks_by_sha256 on tasks (tenant_id, environment_id, sha256) where sha256 is not null and task_type = 'IMPORT';
