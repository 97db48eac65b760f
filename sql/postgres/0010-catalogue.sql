-- The catalogue and the customers. Keys are unique among published records only: an archived record frees its key.

create table customers (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  external_id text not null,
  name text not null,
  email text not null default '',
  contact text not null default '',
  address_line1 text not null default '',
  address_line2 text not null default '',
  address_city text not null default '',
  address_state text not null default '',
  address_postal_code text not null default '',
  address_country text not null default '',
  timezone text not null default 'UTC',
  metadata jsonb,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);
create unique index customers_external_id_unique on customers (tenant_id, environment_id, external_id)
  where status = 'published';
create index customers_list on customers (tenant_id, environment_id, status, created_at, id);
create index customers_email on customers (tenant_id, environment_id, email);
create index customers_metadata on customers using gin (metadata jsonb_path_ops);

create table features (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  name text not null,
  lookup_key text not null,
  description text,
  type text not null,
  meter_id text,
  metadata jsonb,
  unit_singular text,
  unit_plural text,
  reporting_unit jsonb,
  alert_settings jsonb,
  group_id text,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);
create unique index features_lookup_key_unique on features (tenant_id, environment_id, lookup_key)
  where status = 'published';
create index features_list on features (tenant_id, environment_id, status, created_at, id);
create index features_meter on features (tenant_id, environment_id, meter_id) where meter_id is not null;

create table plans (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  name text not null,
  lookup_key text,
  description text,
  display_order integer,
  metadata jsonb,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);
create unique index plans_lookup_key_unique on plans (tenant_id, environment_id, lookup_key)
  where status = 'published';
create index plans_list on plans (tenant_id, environment_id, status, created_at, id);
create index plans_metadata on plans using gin (metadata jsonb_path_ops);

create table prices (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  amount numeric not null,
  display_amount text not null,
  currency text not null,
  display_name text,
  description text,
  lookup_key text,
  type text not null,
  billing_model text not null,
  billing_period text not null,
  billing_period_count integer not null,
  billing_cadence text not null,
  invoice_cadence text not null,
  trial_period_days integer not null default 0,
  meter_id text,
  min_quantity numeric,
  tiers jsonb,
  tier_mode text,
  transform_quantity jsonb,
  price_unit_type text not null,
  price_unit text,
  price_unit_id text,
  price_unit_amount numeric,
  display_price_unit_amount text,
  price_unit_tiers jsonb,
  conversion_rate numeric,
  entity_type text not null,
  entity_id text not null,
  group_id text,
  -- '' and not null when there is no root: so the specification has it on the wire.
  parent_price_id text not null default '',
  sequence integer not null,
  start_date timestamptz not null,
  end_date timestamptz,
  metadata jsonb,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);
-- A price that ends leaves its lookup key to its successor.
create unique index prices_lookup_key_unique on prices (tenant_id, environment_id, lookup_key)
  where status = 'published' and end_date is null;
create index prices_lookup_key on prices (tenant_id, environment_id, lookup_key) where lookup_key is not null;
create index prices_list on prices (tenant_id, environment_id, status, created_at, id);
create index prices_entity on prices (tenant_id, environment_id, entity_type, entity_id, sequence);
create index prices_meter on prices (tenant_id, environment_id, meter_id) where meter_id is not null;
create index prices_lineage on prices (tenant_id, environment_id, parent_price_id) where parent_price_id <> '';

-- The stamp that subscription line items follow: one counter per entity (a plan, a subscription, …). The counter's row
-- is locked until its transaction ends, so stamps become visible in the order of their numbers.
create table price_sequences (
  tenant_id text not null,
  environment_id text not null,
  entity_type text not null,
  entity_id text not null,
  value integer not null,
  primary key (tenant_id, environment_id, entity_type, entity_id)
);

create function stamp_price_sequence() returns trigger language plpgsql as $$
begin
  insert into price_sequences as counter (tenant_id, environment_id, entity_type, entity_id, value)
  values (new.tenant_id, new.environment_id, new.entity_type, new.entity_id, 1)
  on conflict (tenant_id, environment_id, entity_type, entity_id) do update set value = counter.value + 1
  returning value into new.sequence;
  return new;
end
$$;

create trigger prices_stamp_on_create before insert on prices
  for each row execute function stamp_price_sequence();

-- Termination and whatever changes what is charged; names, descriptions and metadata do not.
create trigger prices_stamp_on_change before update on prices
  for each row
  when (
    (old.start_date, old.end_date, old.status, old.amount, old.currency, old.type, old.billing_model,
     old.billing_period, old.billing_period_count, old.invoice_cadence, old.trial_period_days, old.meter_id,
     old.min_quantity, old.tiers, old.tier_mode, old.transform_quantity, old.price_unit_amount, old.price_unit_tiers)
    is distinct from
    (new.start_date, new.end_date, new.status, new.amount, new.currency, new.type, new.billing_model,
     new.billing_period, new.billing_period_count, new.invoice_cadence, new.trial_period_days, new.meter_id,
     new.min_quantity, new.tiers, new.tier_mode, new.transform_quantity, new.price_unit_amount, new.price_unit_tiers)
  )
  execute function stamp_price_sequence();
