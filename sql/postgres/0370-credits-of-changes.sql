-- The invoice whose left-over credit an adjustment spends (docs/rules/credit-notes.md, "Adjustments of changes"); null of a note that a
-- person made. The lines of that invoice say already what was credited, so the lines of such a note are not counted a second time.
alter table credit_notes add column change_invoice_id text references invoices (id);
create index credit_notes_change_invoice on credit_notes (tenant_id, environment_id, change_invoice_id)
  where change_invoice_id is not null;
