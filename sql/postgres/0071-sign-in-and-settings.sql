-- How people sign in, and what a tenant sets for itself and for each of its environments.

-- Signs the tokens of who has signed in, where JWT_SECRET is not set: random, and the same for all processes.
alter table installation add column token_key bytea not null
  default decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex');

-- Beside the users and not in them: what is read of a user, kept of it or logged about it never holds this.
create table user_passwords (
  user_id text primary key references users (id),
  tenant_id text not null references tenants (id),
  -- The email in small letters: it says whose password is meant before any tenant is known, so it has one of all.
  email_key text not null unique,
  -- scrypt$N$r$p$salt$hash
  hash text not null,
  -- Tokens from before are refused.
  changed_at timestamptz not null
);

-- What differs from the defaults (core/setting/record.ts).
create table settings (
  id text primary key,
  tenant_id text not null references tenants (id),
  environment_id text not null references environments (id),
  key text not null,
  value jsonb not null,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default '',
  unique (tenant_id, environment_id, key)
);

-- The same for what lies above the environments.
create table tenant_settings (
  id text primary key,
  tenant_id text not null references tenants (id),
  key text not null,
  value jsonb not null,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default '',
  unique (tenant_id, key)
);
