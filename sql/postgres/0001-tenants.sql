-- Who may do what: tenants, their environments, their users and keys; and the answers kept for repeated requests.

create table tenants (
  id text primary key,
  name text not null,
  billing_details jsonb,
  metadata jsonb not null default '{}',
  -- A suspended tenant may read and may not write.
  suspended boolean not null default false,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);

create table environments (
  id text primary key,
  tenant_id text not null references tenants (id),
  name text not null,
  type text not null check (type in ('development', 'production')),
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);
create index environments_by_tenant on environments (tenant_id, created_at, id);

create table users (
  id text primary key,
  tenant_id text not null references tenants (id),
  name text not null default '',
  email text,
  type text not null check (type in ('user', 'service_account')),
  roles text[] not null default '{}',
  metadata jsonb not null default '{}',
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);
create index users_by_tenant on users (tenant_id, created_at, id);
create unique index users_email on users (tenant_id, lower(email)) where status = 'published' and email is not null;

create table secrets (
  id text primary key,
  tenant_id text not null references tenants (id),
  -- The key decides the environment; a key without one leaves it to the header.
  environment_id text references environments (id),
  user_id text not null references users (id),
  name text not null,
  type text not null check (type in ('private_key', 'publishable_key')),
  provider text not null default 'flexprice',
  -- SHA-256 of the key in hex: the key itself is shown once and kept nowhere.
  key_hash text not null unique,
  display_id text not null,
  expires_at timestamptz,
  last_used_at timestamptz,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default ''
);
create index secrets_by_scope on secrets (tenant_id, environment_id, created_at, id);
create index secrets_by_user on secrets (user_id) where status = 'published';

create table idempotency_keys (
  -- SHA-256 of tenant, environment, principal, method, path and key.
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  request_hash text not null,
  -- Who handles the request now. The lease is renewed while it lives and lets another take over when it died.
  holder text not null,
  leased_until timestamptz not null,
  -- Null while the request is in flight.
  http_status integer,
  answer bytea,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index idempotency_keys_by_expiry on idempotency_keys (expires_at);
