-- Sign-ins of browsers (docs/decisions/0035-browser-sessions.md). The cookie has the token; only its hash is stored.
create table sessions (
  id text primary key,
  tenant_id text not null references tenants (id),
  user_id text not null references users (id),
  token_hash text not null unique,
  user_agent text,
  created_at timestamptz not null,
  -- Written at most once in five minutes.
  last_used_at timestamptz not null,
  -- The latest end; a session that is not used ends earlier.
  expires_at timestamptz not null
);
create index sessions_of_user on sessions (tenant_id, user_id);
create index sessions_expired on sessions (expires_at);

-- API processes cache the holder of a session, as they cache that of a key (0084-access-changes.sql).
create trigger sessions_tell_access after delete on sessions
  for each row execute function tell_access_change();

-- The one-time link of `npm start`, one per tenant. A later start replaces it, and its use deletes it.
create table console_links (
  tenant_id text primary key references tenants (id),
  user_id text not null references users (id),
  token_hash text not null unique,
  expires_at timestamptz not null
);
