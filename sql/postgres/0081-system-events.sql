-- System events: what was changed, told in the transaction of the change. Their sequence orders those of one record, whose row
-- is locked from before its event gets a number until the commit.
create table system_events (
  id             text primary key,
  sequence       bigint not null generated always as identity,
  tenant_id      text not null,
  environment_id text not null,
  event_name     text not null,
  entity_type    text not null,
  entity_id      text not null,
  user_id        text not null default '',
  payload        json not null, -- Not jsonb: its keys keep their order.
  dispatched_at  timestamptz,
  streamed_at    timestamptz,
  status         text not null default 'published',
  created_at     timestamptz not null default now(),
  updated_at     timestamptz not null default now(),
  created_by     text not null default '',
  updated_by     text not null default ''
);
create index system_events_list on system_events (tenant_id, environment_id, status, created_at, id);
create index system_events_entity on system_events (tenant_id, environment_id, entity_id, created_at);
create index system_events_name on system_events (tenant_id, environment_id, event_name, created_at);
create index system_events_undispatched on system_events (sequence) where dispatched_at is null;
create index system_events_unstreamed on system_events (sequence) where streamed_at is null;
create index system_events_age on system_events (created_at);
