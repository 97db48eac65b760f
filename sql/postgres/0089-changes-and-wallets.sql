-- Changes inside a period: what nets credits and charges is one invoice per request, and several requests may come at one instant.
-- Whatever else bills a period stays one invoice.
drop index invoices_one_per_period;
create unique index invoices_one_per_period on invoices
  (tenant_id, environment_id, subscription_id, period_start, period_end, billing_reason)
  where invoice_type = 'SUBSCRIPTION' and billing_reason <> 'SUBSCRIPTION_UPDATE' and invoice_status <> 'VOIDED'
    and status = 'published';

-- Of a line that follows another: where the periods of its own are anchored; null is at its start. And from when on an advance line
-- is charged that began inside a period without proration; null is from its start.
alter table subscription_line_items add column period_anchor timestamptz;
alter table subscription_line_items add column charged_from timestamptz;

create table wallets (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default '',
  customer_id text not null,
  name text,
  description text not null default '',
  currency text not null,
  wallet_type text not null default 'PRE_PAID',
  wallet_status text not null default 'active',
  -- In money; credit_balance is the same in credits.
  balance numeric not null default 0,
  credit_balance numeric not null default 0,
  conversion_rate numeric not null default 1,
  topup_conversion_rate numeric not null default 1,
  price_unit text,
  config jsonb,
  auto_topup jsonb,
  alert_settings jsonb,
  alert_state text not null default 'ok',
  metadata jsonb,
  version integer not null default 1,
  check (conversion_rate > 0 and topup_conversion_rate > 0)
);
create index wallets_list on wallets (tenant_id, environment_id, created_at desc, id desc);
create index wallets_customer on wallets (tenant_id, environment_id, customer_id);
-- Two requests that both find none make one.
create unique index wallets_one_active on wallets (tenant_id, environment_id, customer_id, currency, wallet_type)
  where wallet_status = 'active' and status = 'published';

create table wallet_transactions (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default '',
  wallet_id text not null references wallets (id),
  customer_id text not null,
  type text not null,
  amount numeric not null,
  credit_amount numeric not null,
  credit_balance_before numeric not null,
  credit_balance_after numeric not null,
  -- Of a credit: what no debit has taken yet.
  credits_available numeric not null default 0,
  currency text not null,
  conversion_rate numeric not null default 1,
  topup_conversion_rate numeric not null default 1,
  transaction_status text not null default 'completed',
  transaction_reason text not null,
  reference_type text not null,
  reference_id text not null,
  parent_transaction_id text,
  expiry_date timestamptz,
  priority integer,
  idempotency_key text not null,
  description text not null default '',
  metadata jsonb,
  check (amount >= 0 and credit_amount >= 0 and credits_available >= 0)
);
create index wallet_transactions_list on wallet_transactions (tenant_id, environment_id, created_at desc, id desc);
create index wallet_transactions_wallet on wallet_transactions (tenant_id, environment_id, wallet_id, created_at desc, id desc);
create index wallet_transactions_reference on wallet_transactions (tenant_id, environment_id, reference_id);
-- A request that comes again finds what the first one did.
create unique index wallet_transactions_idempotency_key on wallet_transactions (tenant_id, environment_id, idempotency_key);
