-- Subscriptions, their line items, invoices, their lines and the counters of invoice numbers.

create table subscriptions (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default '',
  customer_id text not null,
  invoicing_customer_id text,
  plan_id text not null,
  lookup_key text,
  subscription_status text not null,
  subscription_type text not null default 'STANDALONE',
  parent_subscription_id text,
  currency text not null,
  billing_cycle text not null,
  billing_cadence text not null default 'RECURRING',
  billing_period text not null,
  billing_period_count integer not null default 1,
  billing_anchor timestamptz not null,
  timezone text not null default 'UTC',
  start_date timestamptz not null,
  end_date timestamptz,
  current_period_start timestamptz not null,
  current_period_end timestamptz not null,
  cancel_at timestamptz,
  cancelled_at timestamptz,
  cancel_at_period_end boolean not null default false,
  trial_start timestamptz,
  trial_end timestamptz,
  collection_method text not null default 'charge_automatically',
  payment_behavior text not null default 'default_active',
  gateway_payment_method_id text,
  payment_terms text,
  proration_behavior text not null default 'none',
  commitment_amount numeric,
  commitment_duration text,
  overage_factor numeric,
  enable_true_up boolean not null default false,
  auto_invoice_threshold numeric,
  synced_price_sequence integer,
  metadata jsonb,
  version integer not null default 1,
  check (billing_period_count >= 1),
  check (end_date is null or end_date >= start_date),
  check (current_period_end >= current_period_start)
);
create index subscriptions_list on subscriptions (tenant_id, environment_id, created_at desc, id desc);
create index subscriptions_customer on subscriptions (tenant_id, environment_id, customer_id);
create index subscriptions_plan on subscriptions (tenant_id, environment_id, plan_id);
create unique index subscriptions_lookup_key on subscriptions (tenant_id, environment_id, lookup_key)
  where lookup_key is not null and lookup_key <> '' and status = 'published' and subscription_status <> 'cancelled';
-- The scheduler asks across tenants: which periods are over, which cancellations are due.
create index subscriptions_due on subscriptions (current_period_end)
  where status = 'published' and subscription_status in ('active', 'trialing');

create table subscription_line_items (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default '',
  subscription_id text not null references subscriptions (id),
  customer_id text not null,
  entity_id text,
  entity_type text,
  plan_display_name text,
  price_id text not null,
  price_type text not null,
  meter_id text,
  meter_display_name text,
  price_unit_id text,
  price_unit text,
  display_name text,
  quantity numeric not null default 0,
  currency text not null,
  billing_period text not null,
  billing_period_count integer not null default 1,
  invoice_cadence text not null,
  start_date timestamptz not null,
  end_date timestamptz,
  subscription_phase_id text,
  addon_association_id text,
  trial_period_days integer not null default 0,
  commitment_amount numeric,
  commitment_quantity numeric,
  commitment_type text,
  commitment_overage_factor numeric,
  commitment_true_up_enabled boolean not null default false,
  commitment_windowed boolean not null default false,
  commitment_duration text,
  metadata jsonb,
  check (end_date is null or end_date >= start_date)
);
create index subscription_line_items_subscription on subscription_line_items (tenant_id, environment_id, subscription_id);
create index subscription_line_items_list on subscription_line_items (tenant_id, environment_id, created_at desc, id desc);
create index subscription_line_items_price on subscription_line_items (tenant_id, environment_id, price_id);

create table invoices (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default '',
  customer_id text not null,
  subscription_id text references subscriptions (id),
  subscription_customer_id text,
  invoice_type text not null,
  invoice_status text not null,
  payment_status text not null,
  billing_reason text not null,
  currency text not null,
  subtotal numeric not null default 0,
  total_discount numeric not null default 0,
  total_prepaid_credits_applied numeric not null default 0,
  total_tax numeric not null default 0,
  total numeric not null default 0,
  adjustment_amount numeric not null default 0,
  amount_due numeric not null default 0,
  amount_paid numeric not null default 0,
  amount_remaining numeric not null default 0,
  overpaid_amount numeric,
  refunded_amount numeric not null default 0,
  invoice_number text,
  idempotency_key text,
  billing_sequence integer,
  description text,
  billing_period text,
  period_start timestamptz,
  period_end timestamptz,
  issue_date timestamptz,
  due_date timestamptz,
  paid_at timestamptz,
  voided_at timestamptz,
  finalized_at timestamptz,
  last_computed_at timestamptz,
  invoice_pdf_url text,
  recalculated_invoice_id text,
  is_manually_edited boolean not null default false,
  metadata jsonb,
  version integer not null default 1,
  check (period_end is null or period_start is null or period_end >= period_start),
  check (invoice_status <> 'FINALIZED' or (invoice_number is not null and finalized_at is not null)),
  -- Either exactly what is due is split into paid and remaining, or more was paid than was due.
  check (
    amount_paid + amount_remaining = amount_due
    or (amount_remaining = 0 and overpaid_amount = amount_paid - amount_due)
  )
);
create index invoices_list on invoices (tenant_id, environment_id, created_at desc, id desc);
create index invoices_customer on invoices (tenant_id, environment_id, customer_id);
create index invoices_subscription on invoices (tenant_id, environment_id, subscription_id, period_start);
create unique index invoices_number on invoices (tenant_id, environment_id, invoice_number) where invoice_number is not null;
-- Races are decided here: two workers that bill one period leave one invoice, a replayed request leaves one invoice.
create unique index invoices_one_per_period on invoices
  (tenant_id, environment_id, subscription_id, period_start, period_end, billing_reason)
  where invoice_type = 'SUBSCRIPTION' and invoice_status <> 'VOIDED' and status = 'published';
create unique index invoices_idempotency_key on invoices (tenant_id, environment_id, idempotency_key)
  where idempotency_key is not null and invoice_status <> 'VOIDED' and status = 'published';
-- The scheduler asks across tenants: which drafts have rested long enough.
create index invoices_to_finalize on invoices (last_computed_at) where invoice_status = 'DRAFT' and status = 'published';

create table invoice_line_items (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default '',
  invoice_id text not null references invoices (id),
  customer_id text not null,
  subscription_id text,
  subscription_line_item_id text,
  parent_line_item_id text,
  entity_id text,
  entity_type text,
  plan_display_name text,
  price_id text,
  price_type text,
  meter_id text,
  meter_display_name text,
  price_unit_id text,
  price_unit text,
  price_unit_amount numeric,
  display_name text,
  quantity numeric not null,
  amount numeric not null,
  currency text not null,
  period_start timestamptz,
  period_end timestamptz,
  prepaid_credits_applied numeric not null default 0,
  line_item_discount numeric not null default 0,
  invoice_level_discount numeric not null default 0,
  adjusted_entitlement_quantity numeric,
  commitment_info jsonb,
  metadata jsonb,
  computed_from jsonb,
  check (period_end is null or period_start is null or period_end >= period_start)
);
create index invoice_line_items_invoice on invoice_line_items (tenant_id, environment_id, invoice_id);
create index invoice_line_items_service on invoice_line_items
  (tenant_id, environment_id, subscription_line_item_id, period_start, period_end);

-- The last number given per token (`202601`): taken in the finalizing transaction, so a rollback gives it back (decisions §24).
create table invoice_numbers (
  tenant_id text not null,
  environment_id text not null,
  token text not null,
  last_number bigint not null,
  primary key (tenant_id, environment_id, token)
);
