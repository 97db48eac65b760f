-- A connection may be an account of the tenant at a provider (docs/integrations/README.md, "Connections"). It needs attention when the
-- provider refuses its credentials, and is not used until a person has acted.
alter table connections
  add column has_account boolean not null default false,
  add column provider_account_id text,
  add column connection_state text not null default 'active' check (connection_state in ('active', 'needs_attention')),
  add column attention_reason text;

-- With two accounts at one provider it would be open which one is charged.
create unique index connections_one_account on connections (tenant_id, environment_id, provider_type)
  where has_account and status = 'published';
