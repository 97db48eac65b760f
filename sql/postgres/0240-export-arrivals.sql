-- Which records a scheduled file has, though their transactions commit late (docs/decisions/0036-each-record-in-one-file.md). A record is
-- noted in the transaction that makes it, and numbered by the first cut that sees it.
create table export_arrivals (
  tenant_id text not null,
  environment_id text not null,
  -- invoice, or credits: a transaction of the ledger.
  kind text not null check (kind in ('invoice', 'credits')),
  record_id text not null,
  -- Null until a cut has seen it.
  cut_number bigint,
  primary key (tenant_id, environment_id, kind, record_id)
);
create index export_arrivals_waiting on export_arrivals (tenant_id, environment_id) where cut_number is null;
create index export_arrivals_cut on export_arrivals (tenant_id, environment_id, kind, cut_number) where cut_number is not null;
create sequence export_cuts;

-- What the file of the schedule's own task has: what was there by then and is in none before it.
alter table tasks add column cut_number bigint, add column cut_offsets jsonb;

-- Transactions with a smaller number may not have known of it, and have noted nothing; null until that is known.
alter table scheduled_tasks add column noted_since xid8;

create function note_export_arrival() returns trigger language plpgsql as $$
begin
  if exists (select from scheduled_tasks s
              where s.tenant_id = new.tenant_id and s.environment_id = new.environment_id
                and s.entity_type = any (string_to_array(tg_argv[1], ','))) then
    insert into export_arrivals (tenant_id, environment_id, kind, record_id)
    values (new.tenant_id, new.environment_id, tg_argv[0], new.id)
    on conflict do nothing;
  end if;
  return null;
end $$;

create index scheduled_tasks_entity on scheduled_tasks (tenant_id, environment_id, entity_type);
create trigger export_of_new_invoice after insert on invoices for each row
  when (new.finalized_at is not null) execute function note_export_arrival('invoice', 'invoice');
create trigger export_of_invoice after update on invoices for each row
  when (old.finalized_at is null and new.finalized_at is not null) execute function note_export_arrival('invoice', 'invoice');
create trigger export_of_credits after insert on ledger_transactions for each row
  execute function note_export_arrival('credits', 'credit_topups,credit_usage');

-- The triggers have waited for every transaction that wrote before them: whoever writes from now on knows of these.
update scheduled_tasks set noted_since = '0';
