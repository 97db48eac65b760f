-- Files of FOCUS have late invoices, too (0240-export-arrivals.sql).
drop trigger export_of_new_invoice on invoices;
drop trigger export_of_invoice on invoices;
create trigger export_of_new_invoice after insert on invoices for each row
  when (new.finalized_at is not null) execute function note_export_arrival('invoice', 'invoice,invoice_lines,focus');
create trigger export_of_invoice after update on invoices for each row
  when (old.finalized_at is null and new.finalized_at is not null)
  execute function note_export_arrival('invoice', 'invoice,invoice_lines,focus');

-- Transactions that began before these triggers have noted nothing for FOCUS: the next file waits for them.
update scheduled_tasks set noted_since = null where entity_type = 'focus';

-- Arrivals up to this cut are older than the schedule. Null for schedules of earlier versions.
alter table scheduled_tasks add column arrivals_after bigint;
