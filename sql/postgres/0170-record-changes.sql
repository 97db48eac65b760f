-- Which records have changed, for whoever keeps in memory what was made of them (docs/decisions/0022-running-charges.md). A row is
-- written in the transaction of the change and names it, so that a snapshot says exactly which changes have become visible since
-- another: no counter that transactions would wait for, no clock. By triggers: what is changed by hand is told, too.
create table record_changes (
  xid xid8 not null,
  id text not null,
  primary key (xid, id)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.1);

-- Changes of transactions before `horizon` are forgotten; those before `next` will be next time. One row.
create table record_changes_kept (
  is_one boolean primary key default true check (is_one),
  horizon xid8 not null,
  next xid8 not null
);
insert into record_changes_kept (horizon, next) values (pg_snapshot_xmin(pg_current_snapshot()), pg_snapshot_xmin(pg_current_snapshot()));

-- A function for each table, so that its statement is planned once in a session.
do $$
declare
  watched record;
  op text;
  seen text;
begin
  for watched in
    select * from (values
      ('customers', 'update delete', array['id']),
      ('wallets', 'insert update delete', array['customer_id']),
      ('wallet_transactions', 'insert update delete', array['customer_id']),
      ('invoices', 'insert update delete', array['customer_id', 'subscription_id']),
      ('invoice_line_items', 'insert update delete', array['customer_id', 'subscription_id']),
      ('credit_notes', 'insert update delete', array['customer_id', 'subscription_id']),
      ('subscriptions', 'insert update delete', array['id', 'customer_id', 'invoicing_customer_id', 'parent_subscription_id']),
      ('subscription_line_items', 'insert update delete', array['subscription_id']),
      ('subscription_schedules', 'insert update delete', array['subscription_id']),
      ('subscription_phases', 'insert update delete', array['subscription_id']),
      ('addon_associations', 'insert update delete', array['entity_id']),
      ('coupon_associations', 'insert update delete', array['subscription_id']),
      ('coupon_applications', 'insert update delete', array['subscription_id']),
      ('coupons', 'update delete', array['id']),
      ('prices', 'update delete', array['id']),
      ('meters', 'update delete', array['id']),
      ('meter_versions', 'insert update delete', array['meter_id']),
      ('features', 'update delete', array['id']),
      ('groups', 'update delete', array['id']),
      ('plans', 'update delete', array['id']),
      ('addons', 'update delete', array['id']),
      ('entitlements', 'insert update delete', array['entity_id']),
      ('settings', 'insert update delete', array['environment_id']),
      ('test_clocks', 'insert update delete', array['environment_id'])
    ) as w(name, ops, columns)
  loop
    foreach op in array string_to_array(watched.ops, ' ') loop
      seen := case op when 'insert' then 'select * from news' when 'delete' then 'select * from olds'
                      else 'select * from news union all select * from olds' end;
      execute format(
        'create function note_%1$s_of_%2$s() returns trigger language plpgsql as $f$
         begin
           insert into record_changes (xid, id)
           select distinct pg_current_xact_id(), c.id from (%3$s) as r cross join lateral (values %4$s) as c(id)
            where c.id is not null and c.id <> ''''
           on conflict do nothing;
           return null;
         end $f$',
        op, watched.name, seen,
        (select string_agg(format('(r.%I)', name), ', ') from unnest(watched.columns) as name));
      execute format(
        'create trigger %2$s_note_%1$s after %1$s on %2$I referencing %3$s for each statement execute function note_%1$s_of_%2$s()',
        op, watched.name,
        case op when 'insert' then 'new table as news' when 'delete' then 'old table as olds'
                else 'new table as news old table as olds' end);
    end loop;
  end loop;
end $$;
