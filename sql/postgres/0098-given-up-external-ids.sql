-- Until when which customer had an external id that it has no more: it was archived, or got another one. Usage is recorded under
-- external ids, so what came before is not the next holder's to pay (docs/rules/identity.md, "Who an external id is"). The
-- database writes it, so that no verb can forget it.
create table given_up_external_ids (
  tenant_id text not null,
  environment_id text not null,
  external_id text not null,
  customer_id text not null references customers (id),
  given_up_at timestamptz not null,
  primary key (tenant_id, environment_id, external_id, customer_id, given_up_at)
);

insert into given_up_external_ids
  select tenant_id, environment_id, external_id, id, updated_at from customers where status = 'archived';

create function keep_given_up_external_id() returns trigger language plpgsql as $$
begin
  insert into given_up_external_ids (tenant_id, environment_id, external_id, customer_id, given_up_at)
  values (old.tenant_id, old.environment_id, old.external_id, old.id, new.updated_at)
  on conflict do nothing;
  return null;
end
$$;

create trigger customers_keep_given_up_external_id after update on customers
  for each row
  when (old.status = 'published' and (new.status <> 'published' or new.external_id <> old.external_id))
  execute function keep_given_up_external_id();
