-- A credit that goes into the wallet stands on an invoice of 0, which is skipped: it lowers what was earned like any other.
drop trigger revenue_of_new_invoice on invoices;
create trigger revenue_of_new_invoice after insert on invoices for each row
  when (new.invoice_status in ('FINALIZED', 'SKIPPED')) execute function tell_revenue_of_invoice();

-- Of one that stays skipped and is computed again the lines may be others.
drop trigger revenue_of_invoice on invoices;
create trigger revenue_of_invoice after update on invoices for each row
  when (((new.invoice_status in ('FINALIZED', 'VOIDED') or old.invoice_status in ('FINALIZED', 'SKIPPED'))
         and (new.invoice_status, new.status) is distinct from (old.invoice_status, old.status))
        or new.invoice_status = 'SKIPPED')
  execute function tell_revenue_of_invoice();

insert into revenue_outbox (tenant_id, environment_id, kind, entity_id)
select i.tenant_id, i.environment_id, 'invoice', i.id
  from invoices i
 where i.invoice_status = 'SKIPPED' and i.status = 'published'
   and exists (select from invoice_line_items l
                where (l.tenant_id, l.environment_id, l.invoice_id) = (i.tenant_id, i.environment_id, i.id) and l.amount <> 0);
