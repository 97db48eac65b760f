-- What coupons take off and what taxes add: told line by line, coupon by coupon and rate by rate (docs/rules/coupons.md, docs/rules/taxes.md).
alter table invoice_line_items
  add column tax_amount numeric not null default 0,
  add column included_tax_amount numeric not null default 0,
  add column taxes jsonb;

alter table tax_rates add column tax_behavior text not null default 'exclusive';

alter table customers
  add column tax_exempt text not null default 'none',
  add column tax_ids jsonb;

create table coupon_applications (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  coupon_id text not null,
  coupon_association_id text,
  invoice_id text not null,
  invoice_line_item_id text,
  subscription_id text,
  position integer not null,
  applied_at timestamptz not null,
  original_price numeric not null,
  final_price numeric not null,
  discounted_amount numeric not null,
  discount_type text not null,
  discount_percentage numeric,
  currency text not null,
  coupon_snapshot jsonb,
  metadata jsonb,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);
create unique index coupon_applications_invoice on coupon_applications (tenant_id, environment_id, invoice_id, position);
create index coupon_applications_association on coupon_applications (tenant_id, environment_id, coupon_association_id)
  where coupon_association_id is not null;

create table taxes_applied (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  tax_rate_id text not null,
  entity_type text not null,
  entity_id text not null,
  tax_association_id text,
  position integer not null,
  taxable_amount numeric not null,
  tax_amount numeric not null,
  tax_behavior text not null,
  currency text not null,
  applied_at timestamptz not null,
  idempotency_key text,
  metadata jsonb,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);
create unique index taxes_applied_entity on taxes_applied (tenant_id, environment_id, entity_type, entity_id, position);
create index taxes_applied_rate on taxes_applied (tenant_id, environment_id, tax_rate_id);
