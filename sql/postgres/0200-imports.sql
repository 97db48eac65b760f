-- Files that are imported (docs/rules/imports.md): kept until they are done, so that whoever takes an import over reads the same bytes.
create table import_chunks (
  tenant_id text not null,
  environment_id text not null,
  task_id text not null,
  -- Each try to fetch a file writes one of its own; import_files names the one that is whole.
  file_id text not null,
  seq integer not null,
  bytes bytea not null,
  created_at timestamptz not null default now(),
  primary key (task_id, file_id, seq)
);
alter table import_chunks alter column bytes set storage external;
create index import_chunks_by_age on import_chunks (created_at);

create table import_files (
  tenant_id text not null,
  environment_id text not null,
  task_id text not null,
  file_id text not null,
  created_at timestamptz not null default now(),
  primary key (task_id)
);

-- Why rows were refused: written with how far the import is, once for each.
create table import_faults (
  tenant_id text not null,
  environment_id text not null,
  task_id text not null,
  row_number bigint not null,
  field text not null,
  code text not null,
  message text not null,
  primary key (task_id, row_number)
);
