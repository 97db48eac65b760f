-- What became final at one instant follows in the order of the numbers, of which a longer one is a later one (docs/rules/exports.md,
-- "Invoices"): page after page, however many a run has made final.
drop index invoices_finalized;
create index invoices_finalized on invoices
  (tenant_id, environment_id, finalized_at, length(coalesce(invoice_number, '')), (coalesce(invoice_number, '') collate "C"), id)
  where finalized_at is not null;
