-- What a request with an Idempotency-Key has committed, written in the transaction that did it: whoever sends the request again after its
-- process has died does it no second time (docs/rules/errors.md, "Sending a request again").

create table request_effects (
  tenant_id text not null,
  environment_id text not null,
  -- Of the row of idempotency_keys.
  key_id text not null,
  -- Who did it: another may take the key over, and whoever has lost it commits nothing any more.
  holder text not null,
  -- [entity_type, id, what was done], in the order in which it was done.
  records jsonb not null,
  -- What is told of it, of a few that cannot be read again.
  answer jsonb,
  expires_at timestamptz not null,
  primary key (tenant_id, environment_id, key_id)
);
create index request_effects_by_expiry on request_effects (expires_at);
