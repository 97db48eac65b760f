-- Events of providers, as their webhooks name them (docs/integrations/README.md, "Webhooks of providers"). An event only says that a record
-- at the provider changed: its state is read there, so the body is not stored.
create table provider_events (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default '',
  connection_id text not null references connections (id),
  provider_type text not null,
  provider_event_id text not null,
  event_type text not null,
  occurred_at timestamptz,
  subjects jsonb not null,
  event_state text not null check (event_state in ('received', 'processed', 'ignored', 'failed')),
  reason text,
  attempt_count integer not null default 0,
  -- When the event is processed next; null if it is not.
  next_attempt_at timestamptz,
  processed_at timestamptz
);
-- A repeated delivery has no effect.
create unique index provider_events_once on provider_events (tenant_id, environment_id, connection_id, provider_event_id);
create index provider_events_list on provider_events (tenant_id, environment_id, created_at desc, id desc);
create index provider_events_due on provider_events (tenant_id, environment_id, connection_id, next_attempt_at, id)
  where next_attempt_at is not null;
create index provider_events_old on provider_events (created_at);

create index integration_mappings_pulled on integration_mappings (tenant_id, environment_id, connection_id, next_pull_at, id)
  where next_pull_at is not null;
-- How the counterpart differs from the record in a way that a person has to resolve; null if it does not.
alter table integration_mappings add column attention_reason text;

-- Payments that a provider reported. One payment there may pay several invoices; for each of them it is recorded once.
alter table payments add column connection_id text references connections (id);
create unique index payments_of_provider_once on payments (tenant_id, environment_id, connection_id, gateway_payment_id, destination_id)
  where connection_id is not null;
