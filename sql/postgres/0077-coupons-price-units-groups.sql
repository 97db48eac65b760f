-- Coupons, price units and groups. Keys are unique among published records only: an archived record frees its key.

create table coupons (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  name text not null,
  coupon_code text,
  type text not null,
  amount_off numeric,
  percentage_off numeric,
  currency text,
  cadence text not null,
  duration_in_periods integer,
  redeem_after timestamptz,
  redeem_before timestamptz,
  max_redemptions integer,
  total_redemptions integer not null default 0,
  rules jsonb,
  metadata jsonb,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);
-- People type codes, in whatever case.
create unique index coupons_code_unique on coupons (tenant_id, environment_id, lower(coupon_code))
  where status = 'published';
create index coupons_code on coupons (tenant_id, environment_id, lower(coupon_code)) where coupon_code is not null;
create index coupons_list on coupons (tenant_id, environment_id, status, created_at, id);
create index coupons_metadata on coupons using gin (metadata jsonb_path_ops);

-- Which subscription, line or phase of it has which coupon, and from when to when.
create table coupon_associations (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  coupon_id text not null,
  subscription_id text not null,
  subscription_line_item_id text,
  subscription_phase_id text,
  start_date timestamptz not null,
  end_date timestamptz,
  metadata jsonb,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);
create index coupon_associations_list on coupon_associations (tenant_id, environment_id, status, created_at, id);
create index coupon_associations_subscription
  on coupon_associations (tenant_id, environment_id, subscription_id, created_at);
create index coupon_associations_coupon on coupon_associations (tenant_id, environment_id, coupon_id, created_at);
create index coupon_associations_line on coupon_associations (tenant_id, environment_id, subscription_line_item_id)
  where subscription_line_item_id is not null;
create index coupon_associations_phase on coupon_associations (tenant_id, environment_id, subscription_phase_id)
  where subscription_phase_id is not null;

create table price_units (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  name text not null,
  code text not null,
  symbol text not null,
  base_currency text not null,
  conversion_rate numeric not null,
  metadata jsonb,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);
create unique index price_units_code_unique on price_units (tenant_id, environment_id, lower(code))
  where status = 'published';
create index price_units_list on price_units (tenant_id, environment_id, status, created_at, id);

create table groups (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  name text not null,
  entity_type text not null,
  lookup_key text not null,
  metadata jsonb,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);
create unique index groups_lookup_key_unique on groups (tenant_id, environment_id, lookup_key)
  where status = 'published';
create index groups_list on groups (tenant_id, environment_id, status, created_at, id);
create index prices_group on prices (tenant_id, environment_id, group_id) where group_id is not null;
create index features_group on features (tenant_id, environment_id, group_id) where group_id is not null;
