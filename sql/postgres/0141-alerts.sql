-- What is watched of spending: of a subscription, of one of its lines, or of those of its lines that belong to a group.
create table alert_settings (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  entity_type text not null,
  entity_id text not null,
  parent_entity_type text,
  parent_entity_id text,
  enabled boolean not null,
  config jsonb not null,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);
create unique index alert_settings_one on alert_settings
  (tenant_id, environment_id, entity_type, entity_id, coalesce(parent_entity_id, '')) where status = 'published';
create index alert_settings_list on alert_settings (tenant_id, environment_id, status, created_at, id);
create index alert_settings_subscription on alert_settings
  (tenant_id, environment_id, (coalesce(parent_entity_id, entity_id))) where status = 'published' and enabled;

-- In which state each alert is: whoever changes the row tells it, so that every change is told once.
create table alert_states (
  tenant_id text not null,
  environment_id text not null,
  alert_type text not null,
  entity_id text not null,
  parent_entity_id text not null default '',
  alert_status text not null,
  updated_at timestamptz not null default now(),
  primary key (tenant_id, environment_id, entity_id, parent_entity_id, alert_type)
);

create table alert_logs (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  entity_type text not null,
  entity_id text not null,
  parent_entity_type text,
  parent_entity_id text,
  customer_id text,
  alert_type text not null,
  alert_status text not null,
  alert_info jsonb not null,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);
create index alert_logs_list on alert_logs (tenant_id, environment_id, status, created_at, id);
create index alert_logs_entity on alert_logs (tenant_id, environment_id, entity_id, created_at desc);
create index alert_logs_customer on alert_logs (tenant_id, environment_id, customer_id, created_at desc)
  where customer_id is not null;

-- Who watches balances: looked for with every slice of usage, so by indexes of those alone.
create index wallets_alerted on wallets (tenant_id, environment_id, customer_id)
  where wallet_status = 'active' and status = 'published' and (alert_settings ->> 'alert_enabled') = 'true';
create index features_alerted on features (tenant_id, environment_id)
  where status = 'published' and (alert_settings ->> 'alert_enabled') = 'true';
