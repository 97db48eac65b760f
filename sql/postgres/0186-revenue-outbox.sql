-- What money facts in ClickHouse are made of has changed: told by the database in the transaction of the change, so that no writer can
-- forget it, and taken by a job (actions/revenue/stream-revenue.ts, docs/decisions/0025-revenue-rows.md).
create table revenue_outbox (
  id             bigint primary key generated always as identity,
  tenant_id      text not null,
  environment_id text not null,
  -- invoice, subscription, or customer: all that is of them.
  kind           text not null check (kind in ('invoice', 'subscription', 'customer')),
  entity_id      text not null,
  told_at        timestamptz not null default now()
);

-- A number for each time that rows are made: the greater one was made of what was committed later.
create sequence revenue_versions;

create function tell_revenue_of_invoice() returns trigger language plpgsql as $$
begin
  insert into revenue_outbox (tenant_id, environment_id, kind, entity_id)
  values (new.tenant_id, new.environment_id, 'invoice', new.id);
  return null;
end $$;

create trigger revenue_of_new_invoice after insert on invoices for each row
  when (new.invoice_status = 'FINALIZED') execute function tell_revenue_of_invoice();
create trigger revenue_of_invoice after update on invoices for each row
  when ((new.invoice_status in ('FINALIZED', 'VOIDED') or old.invoice_status = 'FINALIZED')
        and (new.invoice_status, new.status) is distinct from (old.invoice_status, old.status))
  execute function tell_revenue_of_invoice();

create function tell_revenue_of_subscription() returns trigger language plpgsql as $$
begin
  insert into revenue_outbox (tenant_id, environment_id, kind, entity_id)
  values (new.tenant_id, new.environment_id, 'subscription', new.id);
  return null;
end $$;

-- Not with each period that begins: what recurs is the same in it.
create trigger revenue_of_subscription after update on subscriptions for each row
  when ((new.status, new.subscription_status, new.customer_id, new.currency, new.start_date, new.end_date, new.cancel_at,
         new.cancel_at_period_end, new.trial_end)
        is distinct from
        (old.status, old.subscription_status, old.customer_id, old.currency, old.start_date, old.end_date, old.cancel_at,
         old.cancel_at_period_end, old.trial_end))
  execute function tell_revenue_of_subscription();

create function tell_revenue_of_line() returns trigger language plpgsql as $$
begin
  insert into revenue_outbox (tenant_id, environment_id, kind, entity_id)
  values (new.tenant_id, new.environment_id, 'subscription', new.subscription_id);
  return null;
end $$;

create trigger revenue_of_new_line after insert on subscription_line_items for each row
  when (new.price_type = 'FIXED') execute function tell_revenue_of_line();
create trigger revenue_of_line after update on subscription_line_items for each row
  when (new.price_type = 'FIXED') execute function tell_revenue_of_line();

insert into revenue_outbox (tenant_id, environment_id, kind, entity_id)
select tenant_id, environment_id, 'customer', id from customers;
