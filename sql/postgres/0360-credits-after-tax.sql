-- A credit that comes from an invoice is an amount with its tax and pays after taxes; every other credit pays before them (docs/decisions/0067).
alter table wallet_transactions add column pays_after_tax boolean not null default false;

-- Lots of credit notes, changes, voids and refunds name the invoice or the payment that they come from. A credit of one of these reasons that a
-- person put in names neither. What was put back into a lot has a parent and is no lot of its own.
update wallet_transactions set pays_after_tax = true
 where type = 'credit' and transaction_reason in ('CREDIT_NOTE', 'INVOICE_VOID_REFUND')
   and reference_type in ('INVOICE', 'PAYMENT') and parent_transaction_id is null;

-- A lot that moved into a postpaid wallet keeps its kind.
update wallet_transactions moved set pays_after_tax = true
  from wallet_transactions lot
 where moved.parent_transaction_id = lot.id and moved.type = 'credit' and moved.wallet_id <> lot.wallet_id and lot.pays_after_tax;

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
  if (new.id, new.tenant_id, new.environment_id, new.type, new.credit_amount, new.wallet_id, new.pays_after_tax)
     is distinct from (old.id, old.tenant_id, old.environment_id, old.type, old.credit_amount, old.wallet_id, old.pays_after_tax)
     or (old.transaction_status <> 'pending' and new.transaction_status <> old.transaction_status) then
    raise exception 'what wallet transaction % was stays', old.id using errcode = 'restrict_violation';
  end if;
  return new;
end $$;

alter table invoices
  -- Part of amount_paid.
  add column total_credits_applied_after_tax numeric not null default 0,
  -- Part of refunded_amount, at most total_prepaid_credits_applied.
  add column prepaid_credits_returned numeric not null default 0;

alter table credit_notes add column total_prepaid_credits_returned numeric not null default 0;
alter table credit_note_line_items add column prepaid_credits_returned numeric not null default 0;

-- Until now what notes gave back of an invoice was taken from its prepaid credits first, in the order of the notes.
update credit_notes note set total_prepaid_credits_returned = given.credits
  from (
    select n.id, least(n.total_amount, i.total_prepaid_credits_applied - coalesce(sum(n.total_amount) over before, 0)) as credits
      from credit_notes n join invoices i on i.id = n.invoice_id
     where n.credit_note_type = 'REFUND' and n.credit_note_status = 'FINALIZED' and n.status = 'published' and i.total_prepaid_credits_applied > 0
    window before as (partition by n.invoice_id order by n.finalized_at, n.id rows between unbounded preceding and 1 preceding)
  ) given
 where note.id = given.id and given.credits > 0;
update credit_note_line_items line set prepaid_credits_returned = given.credits
  from (
    select c.id, least(c.amount, l.prepaid_credits_applied - coalesce(sum(c.amount) over before, 0)) as credits
      from credit_note_line_items c
      join credit_notes n on n.id = c.credit_note_id
      join invoice_line_items l on l.id = c.invoice_line_item_id
     where n.credit_note_type = 'REFUND' and n.credit_note_status = 'FINALIZED' and n.status = 'published' and l.prepaid_credits_applied > 0
    window before as (partition by c.invoice_line_item_id order by n.finalized_at, n.id, c.position, c.id rows between unbounded preceding and 1 preceding)
  ) given
 where line.id = given.id and given.credits > 0;

-- A void gave back all that was left of them.
update invoices i
   set prepaid_credits_returned = case when i.invoice_status = 'VOIDED' then i.total_prepaid_credits_applied else returned.credits end
  from (
    select i.id, coalesce(sum(n.total_prepaid_credits_returned), 0) as credits
      from invoices i left join credit_notes n on n.invoice_id = i.id
     where i.total_prepaid_credits_applied > 0 and i.refunded_amount > 0
     group by i.id
  ) returned
 where i.id = returned.id and (i.invoice_status = 'VOIDED' or returned.credits > 0);
