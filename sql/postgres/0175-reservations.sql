-- What is set apart for a customer before it is used (docs/rules/reservations.md): units of a feature, or credits of a wallet.
create table reservations (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  -- No key refers to it: whoever makes an invoice holds the customer before the wallet, and who holds credits the wallet alone.
  customer_id text not null,
  feature_id text references features (id),
  wallet_id text references wallets (id),
  -- The feature or the wallet: with the customer it says what reservations share.
  subject_id text not null generated always as (coalesce(feature_id, wallet_id)) stored,
  quantity numeric not null check (quantity > 0),
  committed_quantity numeric check (committed_quantity >= 0),
  reservation_status text not null,
  -- Why it could be held.
  reason text not null,
  on_expiry text not null,
  expires_at timestamptz not null,
  ended_at timestamptz,
  ended_by text,
  properties jsonb,
  -- What was committed as one event of the customer, and how often it is sent, under ids of its own; the same text each time.
  event_text text,
  event_count integer not null default 0,
  event_at timestamptz,
  -- False while the log may not have it.
  is_sent boolean not null default true,
  wallet_transaction_id text references wallet_transactions (id),
  metadata jsonb,
  idempotency_key text,
  status text not null default 'published',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by text not null default '',
  updated_by text not null default '',
  check (num_nonnulls(feature_id, wallet_id) = 1),
  check (reservation_status in ('held', 'committed', 'released', 'expired')),
  check (on_expiry in ('release', 'charge')),
  check ((reservation_status = 'held') = (ended_at is null)),
  check ((reservation_status = 'committed') = (committed_quantity is not null))
);
create unique index reservations_idempotency_key on reservations (tenant_id, environment_id, idempotency_key)
  where idempotency_key is not null;
create index reservations_held on reservations (tenant_id, environment_id, customer_id, subject_id, expires_at)
  where reservation_status = 'held';
create index reservations_due on reservations (expires_at) where reservation_status = 'held';
create index reservations_next on reservations (tenant_id, environment_id, expires_at) where reservation_status = 'held';
create index reservations_unsent on reservations (tenant_id, environment_id, customer_id, subject_id) where not is_sent;
create index reservations_list on reservations (tenant_id, environment_id, created_at desc, id desc);
create index reservations_customer on reservations (tenant_id, environment_id, customer_id, created_at desc, id desc);
create index reservations_feature on reservations (tenant_id, environment_id, feature_id, created_at desc, id desc)
  where feature_id is not null;
create index reservations_wallet on reservations (tenant_id, environment_id, wallet_id, created_at desc, id desc)
  where wallet_id is not null;

-- What is held of one feature, or of one wallet, of a customer: whoever decides about it holds the row, and the trigger on reservations
-- alone writes it, so that the sum is that of the rows on whatever path they change.
create table reservation_pools (
  tenant_id text not null,
  environment_id text not null,
  customer_id text not null,
  subject_id text not null,
  held numeric not null default 0 check (held >= 0),
  held_count integer not null default 0 check (held_count >= 0),
  primary key (tenant_id, environment_id, customer_id, subject_id)
);

-- Where in the log the events of a reservation stand: until the answer of a reader of usage has come so far they count as used beside it,
-- and from there on within it, so that they are counted once whoever has read when.
create table reservation_events (
  tenant_id text not null,
  environment_id text not null,
  reservation_id text not null references reservations (id),
  customer_id text not null,
  subject_id text not null,
  partition integer not null,
  log_offset bigint not null,
  units numeric not null,
  event_at timestamptz not null,
  primary key (tenant_id, environment_id, reservation_id, partition)
);
create index reservation_events_place on reservation_events
  (tenant_id, environment_id, customer_id, subject_id, partition, log_offset);

create function add_to_reservation_pools() returns trigger language plpgsql as $$
begin
  insert into reservation_pools as pool (tenant_id, environment_id, customer_id, subject_id, held, held_count)
  select tenant_id, environment_id, customer_id, subject_id, sum(quantity), count(*)
    from added where reservation_status = 'held'
   group by tenant_id, environment_id, customer_id, subject_id
   order by tenant_id, environment_id, customer_id, subject_id
      on conflict (tenant_id, environment_id, customer_id, subject_id)
      do update set held = trim_scale(pool.held + excluded.held), held_count = pool.held_count + excluded.held_count;
  return null;
end $$;
create trigger reservations_added after insert on reservations
  referencing new table as added for each statement execute function add_to_reservation_pools();

create function take_from_reservation_pools() returns trigger language plpgsql as $$
begin
  update reservation_pools pool
     set held = trim_scale(pool.held - gone.held), held_count = pool.held_count - gone.held_count
    from (select o.tenant_id, o.environment_id, o.customer_id, o.subject_id, sum(o.quantity) as held, count(*) as held_count
            from before o join after n on n.id = o.id
           where o.reservation_status = 'held' and n.reservation_status <> 'held'
           group by o.tenant_id, o.environment_id, o.customer_id, o.subject_id) gone
   where (pool.tenant_id, pool.environment_id, pool.customer_id, pool.subject_id)
       = (gone.tenant_id, gone.environment_id, gone.customer_id, gone.subject_id);
  return null;
end $$;
create trigger reservations_ended after update on reservations
  referencing old table as before new table as after for each statement execute function take_from_reservation_pools();

-- What ended stays ended, but for a reservation that expired and is committed after all; and whose it is, and how much, stays.
create function refuse_change_of_reservation() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    raise exception 'reservation % is not deleted', old.id using errcode = 'restrict_violation';
  end if;
  if (new.tenant_id, new.environment_id, new.customer_id, new.quantity) is distinct from (old.tenant_id, old.environment_id, old.customer_id, old.quantity)
     or (new.feature_id, new.wallet_id) is distinct from (old.feature_id, old.wallet_id) then
    raise exception 'what reservation % holds stays', old.id using errcode = 'restrict_violation';
  end if;
  if new.reservation_status <> old.reservation_status and old.reservation_status <> 'held'
     and (old.reservation_status, new.reservation_status) <> ('expired', 'committed') then
    raise exception 'reservation % has ended', old.id using errcode = 'restrict_violation';
  end if;
  return new;
end $$;
create trigger reservations_stay before update or delete on reservations
  for each row execute function refuse_change_of_reservation();

create function refuse_pool_without_reservation() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' or pg_trigger_depth() < 2 then
    if tg_op <> 'INSERT' or (new.held, new.held_count) <> (0, 0) then
      raise exception 'what is held of % changes with its reservations alone', coalesce(new.subject_id, old.subject_id)
        using errcode = 'restrict_violation';
    end if;
  end if;
  return coalesce(new, old);
end $$;
create trigger reservation_pools_by_reservations before insert or update or delete on reservation_pools
  for each row execute function refuse_pool_without_reservation();
