-- Search compares the beginning of lowercase texts (storage/reporting/search.ts). These indexes serve LIKE in any collation.
create index customers_search_external_id on customers (tenant_id, environment_id, lower(external_id) text_pattern_ops);
create index customers_search_email on customers (tenant_id, environment_id, lower(email) text_pattern_ops) where email <> '';
create index customers_search_name on customers (tenant_id, environment_id, lower(name) text_pattern_ops);
create index invoices_search_number on invoices (tenant_id, environment_id, lower(invoice_number) text_pattern_ops)
  where invoice_number is not null;
create index credit_notes_search_number on credit_notes (tenant_id, environment_id, lower(credit_note_number) text_pattern_ops);
create index subscriptions_search_key on subscriptions (tenant_id, environment_id, lower(lookup_key) text_pattern_ops)
  where lookup_key is not null;
create index prices_search_key on prices (tenant_id, environment_id, lower(lookup_key) text_pattern_ops)
  where lookup_key is not null;

-- The middle of a name is found by trigrams. Postgres ships both extensions, and an owner of the database may create them. Without them a
-- search reads the customers of the environment: 100,000 in about 100 ms.
do $$
begin
  if (select count(*) from pg_available_extensions where name in ('pg_trgm', 'btree_gin')) = 2 then
    create extension if not exists pg_trgm;
    create extension if not exists btree_gin;
    create index customers_search_in_name on customers using gin (tenant_id, environment_id, lower(name) gin_trgm_ops);
  end if;
exception when insufficient_privilege then
  raise notice 'without the extensions pg_trgm and btree_gin, a search by the middle of a name reads all customers of an environment';
end
$$;
