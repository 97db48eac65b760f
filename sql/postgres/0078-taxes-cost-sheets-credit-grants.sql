-- Tax rates and what they are of, cost sheets, credit grants. Keys are unique among published records only.

create table tax_rates (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  name text not null,
  code text not null,
  description text,
  tax_rate_type text not null,
  tax_rate_status text not null,
  scope text not null,
  percentage_value numeric,
  fixed_value numeric,
  metadata jsonb,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);
create unique index tax_rates_code_unique on tax_rates (tenant_id, environment_id, code) where status = 'published';
create index tax_rates_list on tax_rates (tenant_id, environment_id, status, created_at, id);

-- Which rate is of which customer, subscription, invoice or tenant, and from when to when.
create table tax_associations (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  tax_rate_id text not null,
  entity_type text not null,
  entity_id text not null,
  priority integer not null,
  auto_apply boolean not null,
  currency text,
  start_date timestamptz not null,
  end_date timestamptz,
  metadata jsonb,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);
-- The same rate twice on one thing would be the same tax twice.
create unique index tax_associations_unique
  on tax_associations (tenant_id, environment_id, entity_type, entity_id, tax_rate_id, coalesce(currency, ''))
  where status = 'published';
create index tax_associations_list on tax_associations (tenant_id, environment_id, status, created_at, id);
create index tax_associations_rate on tax_associations (tenant_id, environment_id, tax_rate_id, status);

create table costsheets (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  name text not null,
  lookup_key text,
  description text,
  metadata jsonb,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);
create unique index costsheets_name_unique on costsheets (tenant_id, environment_id, name) where status = 'published';
create unique index costsheets_lookup_key_unique on costsheets (tenant_id, environment_id, lookup_key)
  where status = 'published';
create index costsheets_list on costsheets (tenant_id, environment_id, status, created_at, id);

create table credit_grants (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  name text not null,
  scope text not null,
  plan_id text,
  subscription_id text,
  addon_id text,
  credits numeric not null,
  cadence text not null,
  period text,
  period_count integer,
  expiration_type text not null,
  expiration_duration integer,
  expiration_duration_unit text,
  priority integer,
  conversion_rate numeric,
  topup_conversion_rate numeric,
  start_date timestamptz,
  end_date timestamptz,
  credit_grant_anchor timestamptz,
  metadata jsonb,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);
create index credit_grants_list on credit_grants (tenant_id, environment_id, status, created_at, id);
create index credit_grants_plan on credit_grants (tenant_id, environment_id, plan_id) where plan_id is not null;
create index credit_grants_subscription on credit_grants (tenant_id, environment_id, subscription_id)
  where subscription_id is not null;
create index credit_grants_addon on credit_grants (tenant_id, environment_id, addon_id) where addon_id is not null;
