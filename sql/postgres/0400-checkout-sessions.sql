-- Checkout sessions (docs/rules/checkout.md): a customer pays on a page of a provider before an action takes effect.
create table checkout_sessions (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default '',
  customer_id text not null,
  action text not null,
  checkout_status text not null check (checkout_status in ('initiated', 'pending', 'completed', 'failed', 'expired')),
  payment_provider text not null,
  checkout_invoice_id text references invoices (id),
  checkout_payment_id text references payments (id),
  configuration jsonb,
  payment_provider_config jsonb,
  idempotency_key text,
  success_url text,
  failure_url text,
  cancel_url text,
  expires_at timestamptz not null,
  completed_at timestamptz,
  cancelled_at timestamptz,
  failure_reason text,
  metadata jsonb,
  -- Subscription or wallet of the action.
  subscription_id text,
  wallet_id text,
  -- The invoice existed before the session, so it stays open after an unpaid session.
  is_invoice_retained boolean not null default false
);
-- Races are decided here: one session per key, one open session per invoice, subscription and wallet.
create unique index checkout_sessions_key on checkout_sessions (tenant_id, environment_id, idempotency_key)
  where idempotency_key is not null;
create unique index checkout_sessions_one_per_wallet on checkout_sessions (tenant_id, environment_id, wallet_id)
  where checkout_status in ('initiated', 'pending');
create unique index checkout_sessions_one_per_subscription on checkout_sessions (tenant_id, environment_id, subscription_id)
  where checkout_status in ('initiated', 'pending');
create index checkout_sessions_invoice on checkout_sessions (tenant_id, environment_id, checkout_invoice_id);
create index checkout_sessions_subscription on checkout_sessions (tenant_id, environment_id, subscription_id);

-- Payment whose page belongs to a session.
alter table payments add column checkout_session_id text;
