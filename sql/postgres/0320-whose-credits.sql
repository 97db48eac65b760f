-- Whose credits they are is held by the ledger, too (docs/decisions/0019-ledger.md): 0135 compared what a wallet is counted in, and not in which
-- environment it is, and the scope of a posting with that of its lot alone, which other accounts have none of.

create or replace function refuse_balance_without_posting() returns trigger language plpgsql as $$
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
  if (new.id, new.tenant_id, new.environment_id, new.conversion_rate, new.currency, new.customer_id, new.wallet_type)
     is distinct from (old.id, old.tenant_id, old.environment_id, old.conversion_rate, old.currency, old.customer_id, old.wallet_type) then
    raise exception 'what wallet % is counted in, and whose it is, stays', old.id using errcode = 'restrict_violation';
  end if;
  return new;
end $$;

create or replace function refuse_available_without_posting() returns trigger language plpgsql as $$
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
  if (new.id, new.tenant_id, new.environment_id, new.type, new.credit_amount, new.wallet_id)
     is distinct from (old.id, old.tenant_id, old.environment_id, old.type, old.credit_amount, old.wallet_id)
     or (old.transaction_status <> 'pending' and new.transaction_status <> old.transaction_status) then
    raise exception 'what wallet transaction % was stays', old.id using errcode = 'restrict_violation';
  end if;
  return new;
end $$;

create or replace function post_to_wallets() returns trigger language plpgsql as $$
declare
  late text;
  foreigner text;
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
  -- Of every account: that of an overdraft changes a wallet as a lot does.
  select p.wallet_id into foreigner
    from posted p join wallets w on w.id = p.wallet_id join wallet_transactions t on t.id = p.wallet_transaction_id
   where (w.tenant_id, w.environment_id) <> (p.tenant_id, p.environment_id)
      or (t.tenant_id, t.environment_id, t.wallet_id) <> (p.tenant_id, p.environment_id, p.wallet_id)
   limit 1;
  if foreigner is not null then
    raise exception 'a posting to wallet % is of another environment, or told by a transaction of another wallet', foreigner
      using errcode = 'restrict_violation';
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

-- Looked at when the transaction ends: what was pending is completed before its credits are posted.
create function refuse_completed_without_posting() returns trigger language plpgsql as $$
declare
  posted numeric;
begin
  select coalesce(sum(credits), 0) into posted
    from ledger_postings where wallet_transaction_id = new.id and account in ('lot', 'overdraft');
  if posted <> (case new.type when 'debit' then -new.credit_amount else new.credit_amount end) then
    raise exception 'wallet transaction % is completed, and % of its % credits are posted', new.id, trim_scale(posted), trim_scale(new.credit_amount)
      using errcode = 'check_violation';
  end if;
  return null;
end $$;
create constraint trigger wallet_transactions_completed_by_posting after update on wallet_transactions
  deferrable initially deferred for each row
  when (old.transaction_status = 'pending' and new.transaction_status = 'completed')
  execute function refuse_completed_without_posting();
