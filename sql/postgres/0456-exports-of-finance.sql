-- Exports of invoice lines, payments and credit notes: which records a scheduled file has (0240-export-arrivals.sql), and their order.
alter table export_arrivals drop constraint export_arrivals_kind_check;
alter table export_arrivals add constraint export_arrivals_kind_check
  check (kind in ('invoice', 'credits', 'payment', 'credit_note'));

drop trigger export_of_new_invoice on invoices;
drop trigger export_of_invoice on invoices;
create trigger export_of_new_invoice after insert on invoices for each row
  when (new.finalized_at is not null) execute function note_export_arrival('invoice', 'invoice,invoice_lines');
create trigger export_of_invoice after update on invoices for each row
  when (old.finalized_at is null and new.finalized_at is not null)
  execute function note_export_arrival('invoice', 'invoice,invoice_lines');

create trigger export_of_new_payment after insert on payments for each row
  when (new.succeeded_at is not null) execute function note_export_arrival('payment', 'payments');
create trigger export_of_payment after update on payments for each row
  when (old.succeeded_at is null and new.succeeded_at is not null) execute function note_export_arrival('payment', 'payments');
create trigger export_of_new_credit_note after insert on credit_notes for each row
  when (new.finalized_at is not null) execute function note_export_arrival('credit_note', 'credit_notes');
create trigger export_of_credit_note after update on credit_notes for each row
  when (old.finalized_at is null and new.finalized_at is not null) execute function note_export_arrival('credit_note', 'credit_notes');

create index payments_succeeded on payments (tenant_id, environment_id, succeeded_at, id) where succeeded_at is not null;
create index credit_notes_finalized on credit_notes (tenant_id, environment_id, finalized_at, id) where finalized_at is not null;
