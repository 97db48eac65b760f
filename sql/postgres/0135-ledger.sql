-- The ledger of credits (docs/decisions/0019-ledger.md): every movement is a transaction of postings that add up to 0. What a lot has left
-- and what a wallet holds are what was posted: the trigger on postings alone writes them, and whatever else tries to is refused.

-- A lot is never below 0; what a debit took beyond the lots, because it was allowed to, is owed by the customer.
alter table wallets add column credits_owed numeric not null default 0 check (credits_owed >= 0);

create table ledger_transactions (
  id text primary key,
  tenant_id text not null,
  environment_id text not null,
  idempotency_key text not null,
  reason text not null,
  reference_type text not null,
  reference_id text not null,
  occurred_at timestamptz not null,
  created_at timestamptz not null default now(),
  -- Postings of it come with it, and never later.
  written_in xid8 not null default pg_current_xact_id()
);
create unique index ledger_transactions_idempotency_key on ledger_transactions (tenant_id, environment_id, idempotency_key);

create table ledger_postings (
  tenant_id text not null,
  environment_id text not null,
  transaction_id text not null references ledger_transactions (id),
  position integer not null,
  wallet_id text not null references wallets (id),
  -- What of the wallet's history this is a part of.
  wallet_transaction_id text not null references wallet_transactions (id),
  account text not null,
  lot_id text references wallet_transactions (id),
  credits numeric not null check (credits <> 0),
  primary key (transaction_id, position),
  check (account in ('lot', 'overdraft', 'purchased', 'granted', 'refunded', 'spent', 'debited', 'expired', 'written_off')),
  check ((account = 'lot') = (lot_id is not null))
);
create index ledger_postings_lot on ledger_postings (lot_id) where lot_id is not null;
create index ledger_postings_wallet on ledger_postings (tenant_id, environment_id, wallet_id);
create index ledger_postings_wallet_transaction on ledger_postings (wallet_transaction_id);

-- What wallets held before there was a ledger: until now credits were put in, and never taken out.
insert into ledger_transactions (id, tenant_id, environment_id, idempotency_key, reason, reference_type, reference_id, occurred_at)
select 'ltxn_' || substr(id, 6), tenant_id, environment_id, idempotency_key, transaction_reason, reference_type, reference_id, created_at
  from wallet_transactions where credit_amount > 0 and transaction_status = 'completed';
insert into ledger_postings (tenant_id, environment_id, transaction_id, position, wallet_id, wallet_transaction_id, account, lot_id, credits)
select w.tenant_id, w.environment_id, 'ltxn_' || substr(w.id, 6), side.position, w.wallet_id, w.id, side.account,
       case side.account when 'lot' then w.id end, side.sign * w.credit_amount
  from wallet_transactions w,
       lateral (values (0, 'lot', 1), (1, case when w.transaction_reason like 'PURCHASED%' then 'purchased'
                                               when w.transaction_reason like '%GRANT' then 'granted'
                                               else 'refunded' end, -1)) as side (position, account, sign)
 where w.credit_amount > 0 and w.transaction_status = 'completed';

do $$
declare
  differs text;
begin
  select string_agg(w.id, ', ') into differs
    from wallets w
   where w.credit_balance <> coalesce((select sum(p.credits) from ledger_postings p where p.wallet_id = w.id and p.account = 'lot'), 0)
      or exists (select from wallet_transactions t
                  where t.wallet_id = w.id and (t.type <> 'credit' or t.credits_available <> t.credit_amount));
  if differs is not null then
    raise exception 'these wallets do not hold what was put into them, and nothing of ours can have taken it out: %', differs;
  end if;
end $$;

-- 1 credit is conversion_rate units, for good.
update wallets set balance = trim_scale(round(credit_balance * conversion_rate, 18)), credit_balance = trim_scale(credit_balance);

create function refuse_change_of_ledger() returns trigger language plpgsql as $$
begin
  raise exception '% is append only: % is refused', tg_table_name, lower(tg_op) using errcode = 'restrict_violation';
end $$;
create trigger ledger_transactions_append_only before update or delete or truncate on ledger_transactions
  for each statement execute function refuse_change_of_ledger();
create trigger ledger_postings_append_only before update or delete or truncate on ledger_postings
  for each statement execute function refuse_change_of_ledger();

-- Looked at when the transaction ends: its postings are there by then, and nothing is added later.
create function refuse_unbalanced() returns trigger language plpgsql as $$
declare
  total numeric;
begin
  select sum(credits) into total from ledger_postings where transaction_id = new.id;
  if total is distinct from 0 then
    raise exception 'the postings of ledger transaction % add up to %, not to 0', new.id, coalesce(total::text, 'nothing')
      using errcode = 'check_violation';
  end if;
  return null;
end $$;
create constraint trigger ledger_transactions_balance after insert on ledger_transactions
  deferrable initially deferred for each row execute function refuse_unbalanced();

create function post_to_wallets() returns trigger language plpgsql as $$
declare
  late text;
  lots_posted bigint;
  lots_found bigint;
begin
  select p.transaction_id into late
    from posted p join ledger_transactions t on t.id = p.transaction_id
   where t.written_in <> pg_current_xact_id() or (t.tenant_id, t.environment_id) <> (p.tenant_id, p.environment_id)
   limit 1;
  if late is not null then
    raise exception 'ledger transaction % has its postings already, or is of another environment', late using errcode = 'restrict_violation';
  end if;
  with changed as (
    update wallet_transactions lot
       set credits_available = trim_scale(lot.credits_available + p.credits)
      from (select lot_id, wallet_id, tenant_id, environment_id, sum(credits) as credits
              from posted where account = 'lot' group by lot_id, wallet_id, tenant_id, environment_id) p
     where lot.id = p.lot_id and lot.wallet_id = p.wallet_id and lot.type = 'credit'
       and lot.tenant_id = p.tenant_id and lot.environment_id = p.environment_id
    returning lot.id
  )
  select (select count(distinct (lot_id, wallet_id)) from posted where account = 'lot'), (select count(*) from changed)
    into lots_posted, lots_found;
  if lots_posted <> lots_found then
    raise exception 'a posting names a lot that is not one of its wallet' using errcode = 'restrict_violation';
  end if;
  update wallets w
     set credit_balance = trim_scale(w.credit_balance + p.credits),
         balance = trim_scale(round((w.credit_balance + p.credits) * w.conversion_rate, 18)),
         credits_owed = trim_scale(w.credits_owed - p.overdraft),
         version = w.version + 1,
         updated_at = greatest(w.updated_at, p.occurred_at)
    from (select wallet_id, coalesce(sum(credits), 0) as credits, max(t.occurred_at) as occurred_at,
                 coalesce(sum(credits) filter (where account = 'overdraft'), 0) as overdraft
            from posted join ledger_transactions t on t.id = posted.transaction_id
           where account in ('lot', 'overdraft') group by wallet_id) p
   where w.id = p.wallet_id;
  return null;
end $$;
create trigger ledger_postings_post after insert on ledger_postings
  referencing new table as posted for each statement execute function post_to_wallets();

-- Depth 1 is a statement that somebody has sent; only the trigger above writes from deeper.
create function refuse_balance_without_posting() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    if new.balance <> 0 or new.credit_balance <> 0 or new.credits_owed <> 0 then
      raise exception 'a wallet begins empty: its credits are posted' using errcode = 'restrict_violation';
    end if;
    return new;
  end if;
  if (new.balance, new.credit_balance, new.credits_owed) is distinct from (old.balance, old.credit_balance, old.credits_owed)
     and pg_trigger_depth() < 2 then
    raise exception 'the balance of wallet % changes by postings alone', old.id using errcode = 'restrict_violation';
  end if;
  if (new.conversion_rate, new.currency, new.customer_id, new.wallet_type)
     is distinct from (old.conversion_rate, old.currency, old.customer_id, old.wallet_type) then
    raise exception 'what wallet % is counted in, and whose it is, stays', old.id using errcode = 'restrict_violation';
  end if;
  return new;
end $$;
create trigger wallets_balance_by_postings before insert or update on wallets
  for each row execute function refuse_balance_without_posting();

create function refuse_available_without_posting() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    if new.credits_available <> 0 then
      raise exception 'a lot begins empty: its credits are posted' using errcode = 'restrict_violation';
    end if;
    return new;
  end if;
  if new.credits_available <> old.credits_available and pg_trigger_depth() < 2 then
    raise exception 'what is left of lot % changes by postings alone', old.id using errcode = 'restrict_violation';
  end if;
  if (new.type, new.credit_amount, new.wallet_id) is distinct from (old.type, old.credit_amount, old.wallet_id)
     or (old.transaction_status <> 'pending' and new.transaction_status <> old.transaction_status) then
    raise exception 'what wallet transaction % was stays', old.id using errcode = 'restrict_violation';
  end if;
  return new;
end $$;
create trigger wallet_transactions_available_by_postings before insert or update on wallet_transactions
  for each row execute function refuse_available_without_posting();

-- A lot is never overdrawn, nor given back more than it had; only what was really put in can be taken.
alter table wallet_transactions add check (
  credits_available >= 0
  and credits_available <= case when type = 'credit' and transaction_status = 'completed' then credit_amount else 0 end
);
create index wallet_transactions_lots on wallet_transactions (tenant_id, environment_id, wallet_id)
  where type = 'credit' and credits_available > 0;
create index wallet_transactions_expiring on wallet_transactions (expiry_date)
  where type = 'credit' and credits_available > 0 and expiry_date is not null;
create index wallets_auto_topup on wallets (tenant_id, environment_id, id) where auto_topup is not null and wallet_status = 'active';
