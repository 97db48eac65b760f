-- Tokens of a connection that its owner granted in a browser (docs/decisions/0028-oauth-tokens.md). A refresh may end the old refresh
-- token, so one process at a time refreshes: it holds the lease until it has stored the new tokens.
alter table connections
  add column oauth_tokens text not null default '',
  add column refreshing_until timestamptz,
  add column refreshing_by text;

-- A flow that was begun. Its credentials and its state are sealed. The row is deleted when the browser comes back.
create table oauth_sessions (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  provider_type text not null,
  secret text not null,
  expires_at timestamptz not null,
  created_at timestamptz not null,
  created_by text not null default ''
);
create index oauth_sessions_expired on oauth_sessions (tenant_id, environment_id, expires_at);
