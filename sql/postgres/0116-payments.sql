-- Payments of invoices, their attempts and refunds, the ways to pay of customers, and the book of the sandbox.

create table payments (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default '',
  idempotency_key text not null,
  customer_id text not null,
  destination_type text not null default 'INVOICE',
  destination_id text not null references invoices (id),
  invoice_number text,
  payment_method_type text not null,
  payment_method_id text not null default '',
  payment_gateway text,
  amount numeric not null,
  currency text not null,
  payment_status text not null,
  track_attempts boolean not null default true,
  gateway_payment_id text,
  gateway_tracking_id text,
  gateway_metadata jsonb,
  payment_url text,
  success_url text,
  cancel_url text,
  metadata jsonb,
  succeeded_at timestamptz,
  failed_at timestamptz,
  refunded_at timestamptz,
  voided_at timestamptz,
  error_message text,
  save_card_and_make_default boolean not null default false,
  is_automatic boolean not null default false,
  attempt_count integer not null default 0,
  refunded_amount numeric not null default 0,
  next_attempt_at timestamptz,
  version integer not null default 1,
  check (amount > 0),
  check (refunded_amount >= 0 and refunded_amount <= amount)
);
create index payments_list on payments (tenant_id, environment_id, created_at desc, id desc);
create index payments_destination on payments (tenant_id, environment_id, destination_id);
-- A replayed request leaves one payment.
create unique index payments_idempotency_key on payments (tenant_id, environment_id, idempotency_key)
  where status = 'published';
-- Races are decided here: an invoice has one charge on its way, and one automatic collection.
create unique index payments_one_in_flight on payments (tenant_id, environment_id, destination_id)
  where payment_status = 'PROCESSING' and status = 'published';
create unique index payments_one_automatic on payments (tenant_id, environment_id, destination_id)
  where is_automatic and payment_status in ('PENDING', 'PROCESSING') and status = 'published';
create index payments_gateway_payment on payments (tenant_id, environment_id, gateway_payment_id)
  where gateway_payment_id is not null;
create index payments_gateway_tracking on payments (tenant_id, environment_id, gateway_tracking_id)
  where gateway_tracking_id is not null;
create index payments_method on payments (tenant_id, environment_id, payment_method_type, created_at, id);
create index payments_gateway on payments (tenant_id, environment_id, payment_gateway, created_at, id);
create index payments_currency on payments (tenant_id, environment_id, currency, created_at, id);
create index payments_not_succeeded on payments (tenant_id, environment_id, payment_status, created_at, id)
  where payment_status <> 'SUCCEEDED';
-- What is to be tried, or asked after: by the scheduler across tenants, and by the clock of an environment.
create index payments_due on payments (next_attempt_at) where next_attempt_at is not null and status = 'published';
create index payments_next on payments (tenant_id, environment_id, next_attempt_at)
  where next_attempt_at is not null and status = 'published';

create table payment_attempts (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default '',
  payment_id text not null references payments (id),
  attempt_number integer not null,
  payment_status text not null,
  payment_method_id text not null default '',
  amount numeric not null,
  error_message text,
  metadata jsonb
);
create unique index payment_attempts_number on payment_attempts (tenant_id, environment_id, payment_id, attempt_number);

create table payment_refunds (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default '',
  payment_id text not null references payments (id),
  amount numeric not null,
  refund_status text not null,
  reason text,
  gateway_refund_id text,
  error_message text,
  idempotency_key text not null,
  check (amount > 0)
);
create unique index payment_refunds_key on payment_refunds (tenant_id, environment_id, payment_id, idempotency_key);

create table payment_methods (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default '',
  customer_id text not null references customers (id),
  payment_gateway text not null,
  gateway_payment_method_id text not null,
  payment_method_type text not null,
  payment_method_status text not null default 'ACTIVE',
  is_default boolean not null default false
);
create index payment_methods_list on payment_methods (tenant_id, environment_id, created_at desc, id desc);
create unique index payment_methods_once on payment_methods
  (tenant_id, environment_id, customer_id, payment_gateway, gateway_payment_method_id) where status = 'published';
create unique index payment_methods_default on payment_methods (tenant_id, environment_id, customer_id)
  where is_default and status = 'published';

-- What the sandbox has charged: the book of a provider that is in the house. One key is one charge.
create table sandbox_charges (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  created_at timestamptz not null default now(),
  idempotency_key text not null,
  kind text not null,
  amount numeric not null,
  currency text not null,
  payment_method_id text not null default '',
  charge_status text not null,
  payment_url text,
  error text,
  -- When it ends by itself, and how.
  ends_at timestamptz,
  ends_as text,
  refunded numeric not null default 0,
  refund_keys text[] not null default '{}',
  check (refunded <= amount)
);
create unique index sandbox_charges_key on sandbox_charges (tenant_id, environment_id, idempotency_key);
-- Beside the keys, which are looked for, nothing is asked of it but by its id.

-- That an invoice is overdue is told once.
alter table invoices add column overdue_told_at timestamptz;
create index invoices_overdue on invoices (due_date)
  where invoice_status = 'FINALIZED' and status = 'published' and amount_remaining > 0 and overdue_told_at is null;
create index invoices_unpaid_due on invoices (tenant_id, environment_id, due_date)
  where invoice_status = 'FINALIZED' and status = 'published' and amount_remaining > 0;
