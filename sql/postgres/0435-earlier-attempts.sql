-- An event of the provider may report the charge of an attempt after the next attempt has begun (docs/rules/payments.md, "Tried again").
alter table payment_attempts add column gateway_payment_id text;
create index payment_attempts_gateway_payment on payment_attempts (tenant_id, environment_id, gateway_payment_id)
  where gateway_payment_id is not null;
