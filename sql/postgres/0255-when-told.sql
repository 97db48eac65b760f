-- How far revenue is known: since when, by the instants of its environment, what was told has been so
-- (docs/rules/revenue.md, "How fresh it is"). With a clock that is where the clock stood before the advance in which it was told.
alter table revenue_outbox add column happened_at timestamptz;
update revenue_outbox o
   set happened_at = coalesce((select c.advanced_from from test_clocks c
                                where (c.tenant_id, c.environment_id) = (o.tenant_id, o.environment_id)), o.told_at);
alter table revenue_outbox alter column happened_at set not null, alter column happened_at set default now();

-- Whoever tells holds the lock of the environment until the transaction ends, so that who reads sees that something is to come
-- (storage/revenue/outbox.ts). Nobody waits for it: all hold it together.
create function revenue_happened_at(tenant text, environment text, stamped timestamptz) returns timestamptz language plpgsql as $$
begin
  perform pg_advisory_xact_lock_shared(25501, hashtext(tenant || '/' || environment));
  return coalesce((select advanced_from from test_clocks where (tenant_id, environment_id) = (tenant, environment)),
                  least(stamped, now()));
end $$;

create or replace function tell_revenue_of_invoice() returns trigger language plpgsql as $$
begin
  insert into revenue_outbox (tenant_id, environment_id, kind, entity_id, happened_at)
  values (new.tenant_id, new.environment_id, 'invoice', new.id,
          revenue_happened_at(new.tenant_id, new.environment_id,
                              case new.invoice_status when 'VOIDED' then new.voided_at
                                                      when 'FINALIZED' then new.finalized_at else new.updated_at end));
  return null;
end $$;

create or replace function tell_revenue_of_subscription() returns trigger language plpgsql as $$
begin
  insert into revenue_outbox (tenant_id, environment_id, kind, entity_id, happened_at)
  values (new.tenant_id, new.environment_id, 'subscription', new.id,
          revenue_happened_at(new.tenant_id, new.environment_id, new.updated_at));
  return null;
end $$;

create or replace function tell_revenue_of_line() returns trigger language plpgsql as $$
begin
  insert into revenue_outbox (tenant_id, environment_id, kind, entity_id, happened_at)
  values (new.tenant_id, new.environment_id, 'subscription', new.subscription_id,
          revenue_happened_at(new.tenant_id, new.environment_id, new.updated_at));
  return null;
end $$;
