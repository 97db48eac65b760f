-- What a record of one environment is called in another, since it was copied there. A copy is made once: whoever copies
-- first enters the pair, and what it names is not copied again. The scope is that of the copy.
create table environment_copies (
  tenant_id text not null,
  environment_id text not null,
  source_environment_id text not null,
  entity text not null,
  source_id text not null,
  target_id text not null,
  -- The run that has copied it.
  workflow_id text not null,
  created_at timestamptz not null,
  primary key (tenant_id, environment_id, source_environment_id, entity, source_id)
);
create index environment_copies_by_run on environment_copies (tenant_id, environment_id, workflow_id);
