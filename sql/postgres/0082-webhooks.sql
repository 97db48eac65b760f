-- Where events are told to, what is to be told, and how each try went.
create table webhook_endpoints (
  id                         text primary key,
  tenant_id                  text not null,
  environment_id             text not null,
  url                        text not null,
  description                text,
  event_names                jsonb not null default '[]',
  endpoint_status            text not null default 'enabled' check (endpoint_status in ('enabled', 'disabled')),
  secret                     text not null,
  secret_hint                text not null,
  previous_secret            text,
  previous_secret_expires_at timestamptz,
  disabled_at                timestamptz,
  disabled_reason            text,
  failing_since              timestamptz,
  failures                   integer not null default 0,
  metadata                   jsonb,
  status                     text not null default 'published',
  created_at                 timestamptz not null default now(),
  updated_at                 timestamptz not null default now(),
  created_by                 text not null default '',
  updated_by                 text not null default ''
);
create index webhook_endpoints_list on webhook_endpoints (tenant_id, environment_id, status, created_at, id);

create table webhook_deliveries (
  id              text primary key,
  tenant_id       text not null,
  environment_id  text not null,
  -- Null: the endpoints are those of a managed service, which gets every event once.
  endpoint_id     text references webhook_endpoints (id) on delete cascade,
  system_event_id text not null references system_events (id) on delete cascade,
  sequence        bigint not null,
  event_name      text not null,
  entity_type     text not null,
  entity_id       text not null,
  told_at         timestamptz not null,
  delivery_status text not null default 'pending' check (delivery_status in ('pending', 'delivered', 'failed')),
  attempt_count   integer not null default 0,
  failure_count   integer not null default 0,
  next_attempt_at timestamptz,
  -- Who sends it, and until when nobody else does, by the clock of the database.
  lease           text,
  leased_until    timestamptz,
  http_status     integer,
  failure_reason  text,
  delivered_at    timestamptz,
  status          text not null default 'published',
  created_at      timestamptz not null default now(),
  updated_at      timestamptz not null default now(),
  created_by      text not null default '',
  updated_by      text not null default '',
  check ((delivery_status = 'pending') = (next_attempt_at is not null))
);
create unique index webhook_deliveries_once on webhook_deliveries (system_event_id, coalesce(endpoint_id, ''));
create index webhook_deliveries_due on webhook_deliveries (next_attempt_at) where delivery_status = 'pending';
create index webhook_deliveries_order on webhook_deliveries (endpoint_id, entity_id, sequence)
  where delivery_status = 'pending';
create index webhook_deliveries_list on webhook_deliveries (tenant_id, environment_id, status, created_at, id);
create index webhook_deliveries_endpoint on webhook_deliveries (tenant_id, environment_id, endpoint_id, created_at);
create index webhook_deliveries_by_status on webhook_deliveries (tenant_id, environment_id, delivery_status, created_at);
create index webhook_deliveries_entity on webhook_deliveries (tenant_id, environment_id, entity_id, created_at);

create table webhook_attempts (
  id             text primary key,
  tenant_id      text not null,
  environment_id text not null,
  delivery_id    text not null references webhook_deliveries (id) on delete cascade,
  attempt        integer not null,
  url            text not null,
  attempted_at   timestamptz not null,
  duration_ms    integer not null,
  http_status    integer,
  response_body  text,
  error          text
);
create index webhook_attempts_delivery on webhook_attempts (delivery_id, attempt);
