-- Add-ons, where they are attached, and what plans, add-ons and subscriptions entitle to. Keys are unique among published
-- records only.

create table addons (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  name text not null,
  lookup_key text not null,
  description text,
  type text not null default 'onetime',
  metadata jsonb,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);
create unique index addons_lookup_key_unique on addons (tenant_id, environment_id, lookup_key)
  where status = 'published';
create index addons_list on addons (tenant_id, environment_id, status, created_at, id);
create index addons_metadata on addons using gin (metadata jsonb_path_ops);

-- An add-on of a subscription, from start to end; the same add-on may be attached twice.
create table addon_associations (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  entity_type text not null default 'subscription',
  entity_id text not null,
  addon_id text not null references addons (id),
  addon_status text not null default 'active',
  quantity integer not null default 1 check (quantity >= 1),
  start_date timestamptz not null,
  end_date timestamptz check (end_date is null or end_date >= start_date),
  cancellation_reason text,
  cancelled_at timestamptz,
  metadata jsonb,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);
create index addon_associations_entity on addon_associations (tenant_id, environment_id, entity_id);
create index addon_associations_addon on addon_associations (tenant_id, environment_id, addon_id);
create index addon_associations_list on addon_associations (tenant_id, environment_id, status, created_at, id);

create table entitlements (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  entity_type text not null,
  entity_id text not null,
  feature_id text not null references features (id),
  feature_type text not null,
  is_enabled boolean not null,
  usage_limit numeric check (usage_limit >= 0),
  usage_reset_period text,
  is_soft_limit boolean not null default false,
  static_value text,
  config_value jsonb,
  display_order integer not null default 0,
  parent_entitlement_id text references entitlements (id),
  start_date timestamptz,
  end_date timestamptz check (end_date > start_date),
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);
-- A subscription may have several of one feature, one after the other: who makes one holds the subscription's row.
create unique index entitlements_feature_unique on entitlements (tenant_id, environment_id, entity_id, feature_id)
  where status = 'published' and entity_type <> 'SUBSCRIPTION';
create index entitlements_entity on entitlements (tenant_id, environment_id, entity_id);
create index entitlements_feature on entitlements (tenant_id, environment_id, feature_id);
create index entitlements_list on entitlements (tenant_id, environment_id, status, created_at, id);
